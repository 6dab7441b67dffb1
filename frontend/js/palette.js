// Command palette: a combobox over pages, actions and what the server finds while somebody types.
import { ask, forgetVisits, joined, matches, noteVisit, pageEntries, recent, SignedOut } from "./palette_entries.js";
import { tellSignedOut } from "./progress.js";
import { setTheme } from "./theme_switch.js";

const PAUSE = 120;
const SHORTEST = 2;

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

function grouped(entries) {
  const groups = new Map();
  entries.forEach((entry) => {
    const name = entry.group || "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(entry);
  });
  return groups;
}

// What changes something is sent as a form, never followed as a link.
function send(address) {
  const form = element("form", "");
  const token = element("input", "");
  Object.assign(form, { method: "post", action: address });
  Object.assign(token, {
    type: "hidden",
    name: "csrfmiddlewaretoken",
    value: document.querySelector('meta[name="csrf-token"]').content,
  });
  form.append(token);
  document.body.append(form);
  form.requestSubmit();
}

export function palette() {
  return {
    all: [],
    found: [],
    shown: [],
    active: 0,
    timer: 0,
    asking: null,
    init() {
      this.all = pageEntries();
      document.addEventListener("dr:palette", () => this.show());
      document.addEventListener("submit", (event) => {
        if (event.target.action?.endsWith(this.$root.dataset.signOut)) forgetVisits();
      });
      this.$root.addEventListener("close", () => this.asking?.abort());
    },
    show() {
      if (this.$root.open) return;
      this.$refs.input.value = "";
      this.search();
      this.$root.showModal();
      this.$refs.input.focus();
    },
    search() {
      const text = this.$refs.input.value.trim();
      clearTimeout(this.timer);
      this.asking?.abort();
      this.found = [];
      this.say("");
      if (text.length >= SHORTEST) {
        this.timer = setTimeout(() => this.askServer(text), PAUSE);
        this.say("searching");
      }
      this.draw(text);
      this.mark(0);
    },
    async askServer(text) {
      this.asking = new AbortController();
      const { signal } = this.asking;
      try {
        this.found = await ask(this.$root.dataset.find, text, signal);
        this.say("");
        this.redraw(text);
      } catch (fault) {
        if (signal.aborted) return;
        if (fault instanceof SignedOut) {
          this.$root.close();
          return tellSignedOut();
        }
        this.say("failed");
      }
    },
    // What was marked stays marked when more comes in below or above it.
    redraw(text) {
      const before = this.active ? this.shown[this.active] : undefined;
      this.draw(text);
      this.mark(Math.max(0, this.shown.indexOf(before)));
    },
    draw(text) {
      const local = matches(this.all, text);
      const lately = text ? [] : recent(this.$root.dataset.base, this.$root.dataset.recent);
      const offered = joined(lately, local, this.found);
      const { list, status, none } = this.$refs;
      list.replaceChildren();
      this.shown = [];
      for (const [name, members] of grouped(offered)) {
        const group = element("div", "");
        const title = element("div", "dr-palette-group", name);
        title.id = `dr-palette-group-${this.shown.length}`;
        group.setAttribute("role", "group");
        group.setAttribute("aria-labelledby", title.id);
        group.append(title, ...members.map((entry) => this.option(entry, this.shown.push(entry) - 1)));
        list.append(group);
      }
      list.hidden = !offered.length;
      none.hidden = offered.length > 0 || !this.$refs.searching.hidden || !this.$refs.failed.hidden;
      this.$refs.input.setAttribute("aria-expanded", String(offered.length > 0));
      status.textContent = `${offered.length} ${offered.length === 1 ? status.dataset.one : status.dataset.many}`;
    },
    say(name) {
      for (const state of ["searching", "failed"]) this.$refs[state].hidden = state !== name;
      this.$refs.list.setAttribute("aria-busy", String(name === "searching"));
      this.$refs.none.hidden = Boolean(name) || this.shown.length > 0;
    },
    option(entry, number) {
      const row = element("div", "dr-palette-option");
      row.id = `dr-palette-option-${number}`;
      row.setAttribute("role", "option");
      row.setAttribute("aria-selected", "false");
      row.append(icon(this.$root.dataset.sprite, entry.icon || "chevron-right"));
      const label = element("span", "dr-palette-label", entry.label);
      label.dir = "auto";
      row.append(label);
      if (entry.hint) row.append(element("span", "dr-palette-hint", entry.hint));
      row.addEventListener("click", (event) => this.go(number, event.ctrlKey || event.metaKey));
      row.addEventListener("mousemove", () => this.mark(number));
      return row;
    },
    mark(number) {
      const rows = [...this.$refs.list.querySelectorAll("[role=option]")];
      this.active = 0;
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
        this.go(this.active, event.ctrlKey || event.metaKey);
      }
    },
    again() {
      this.search();
      this.$refs.input.focus();
    },
    go(number, apart) {
      const entry = this.shown[number];
      if (!entry) return;
      this.$root.close();
      if (entry.theme) setTheme(entry.theme);
      else if (entry.opens) document.dispatchEvent(new CustomEvent(`dr:${entry.opens}`));
      else if (entry.post) send(entry.post);
      else {
        noteVisit(entry);
        if (apart) window.open(entry.url, "_blank", "noopener");
        else location.assign(entry.url);
      }
    },
  };
}
