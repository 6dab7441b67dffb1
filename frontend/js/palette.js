// Command palette: a combobox over the entries the server sent with the page.
const LIMIT = 40;

function entries() {
  const data = document.getElementById("dr-palette-data");
  return data ? JSON.parse(data.textContent) : [];
}

// Every typed word must occur; the earlier and the closer to a word's start, the better.
function score(entry, words) {
  const label = entry.label.toLowerCase();
  const rest = `${entry.group ?? ""} ${entry.hint ?? ""}`.toLowerCase();
  let total = 0;
  for (const word of words) {
    const at = label.indexOf(word);
    if (at === 0) total += 100;
    else if (at > 0) total += /\W/.test(label[at - 1]) ? 60 : 30;
    else if (rest.includes(word)) total += 10;
    else return -1;
  }
  return total - label.length / 100;
}

export function matches(all, text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (!words.length) return all.slice(0, LIMIT);
  return all
    .map((entry) => [score(entry, words), entry])
    .filter(([points]) => points >= 0)
    .sort((a, b) => b[0] - a[0])
    .slice(0, LIMIT)
    .map(([, entry]) => entry);
}

function element(tag, className, text) {
  const made = document.createElement(tag);
  made.className = className;
  if (text) made.textContent = text;
  return made;
}

function icon(sprite, name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  svg.setAttribute("class", "dr-icon");
  svg.setAttribute("aria-hidden", "true");
  use.setAttribute("href", `${sprite}#${name}`);
  svg.append(use);
  return svg;
}

export function palette() {
  return {
    all: [],
    active: 0,
    init() {
      this.all = entries();
      document.addEventListener("dr:palette", () => this.show());
    },
    show() {
      if (this.$root.open) return;
      this.$refs.input.value = "";
      this.search();
      this.$root.showModal();
      this.$refs.input.focus();
    },
    search() {
      this.draw(matches(this.all, this.$refs.input.value));
      this.mark(0);
    },
    draw(found) {
      const { list, status } = this.$refs;
      list.replaceChildren();
      const groups = new Map();
      found.forEach((entry) => {
        const name = entry.group || "Go to";
        if (!groups.has(name)) groups.set(name, []);
        groups.get(name).push(entry);
      });
      let number = 0;
      for (const [name, members] of groups) {
        const group = element("div", "");
        const title = element("div", "dr-palette-group", name);
        title.id = `dr-palette-group-${number}`;
        group.setAttribute("role", "group");
        group.setAttribute("aria-labelledby", title.id);
        group.append(title, ...members.map((entry) => this.option(entry, number++)));
        list.append(group);
      }
      list.hidden = !found.length;
      this.$refs.none.hidden = found.length > 0;
      this.$refs.input.setAttribute("aria-expanded", String(found.length > 0));
      status.textContent = found.length === 1 ? "1 result" : `${found.length} results`;
    },
    option(entry, number) {
      const row = element("div", "dr-palette-option");
      row.id = `dr-palette-option-${number}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      row.dataset.url = entry.url;
      row.append(icon(this.$root.dataset.sprite, entry.icon || "chevron-right"));
      row.append(element("span", "dr-palette-label", entry.label));
      if (entry.hint) row.append(element("span", "dr-palette-hint", entry.hint));
      row.addEventListener("click", () => this.go(row));
      row.addEventListener("mousemove", () => this.mark(number));
      return row;
    },
    options() {
      return [...this.$refs.list.querySelectorAll("[role=option]")];
    },
    mark(number) {
      const rows = this.options();
      if (!rows.length) return this.$refs.input.removeAttribute("aria-activedescendant");
      this.active = (number + rows.length) % rows.length;
      rows.forEach((row, at) => row.setAttribute("aria-selected", String(at === this.active)));
      const row = rows[this.active];
      this.$refs.input.setAttribute("aria-activedescendant", row.id);
      row.scrollIntoView({ block: "nearest" });
    },
    key(event) {
      const moves = { ArrowDown: this.active + 1, ArrowUp: this.active - 1, Home: 0, End: -1 };
      if (event.isComposing) return;
      if (event.key in moves && !(event.key.length < 5 && this.$refs.input.value)) {
        event.preventDefault();
        this.mark(moves[event.key]);
      } else if (event.key === "Enter") {
        event.preventDefault();
        const row = this.options()[this.active];
        if (row) this.go(row);
      }
    },
    go(row) {
      this.$root.close();
      location.assign(row.dataset.url);
    },
  };
}
