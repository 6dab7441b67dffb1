// Command palette: a combobox over pages, actions and the server's search results.
import { clearVisits, filterEntries, mergeEntries, pageEntries, recentEntries, recordVisit, searchServer, SignedOut } from "./palette_entries.js";
import { showSignedOut } from "./progress.js";
import { viewEntries } from "./saved_views.js";
import { setTheme } from "./theme_switch.js";

const DELAY = 120;
const MIN_LENGTH = 2;

function element(tag, className, text) {
  const node = document.createElement(tag);
  node.className = className;
  if (text) node.textContent = text;
  return node;
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

function groupEntries(entries) {
  const groups = new Map();
  entries.forEach((entry) => {
    const name = entry.group || "";
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(entry);
  });
  return groups;
}

// Entries that change something are sent as a POST form, never followed as a link.
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
    serverEntries: [],
    shown: [],
    active: 0,
    timer: 0,
    request: null,
    init() {
      this.all = pageEntries();
      document.addEventListener("dr:palette", () => this.show());
      document.addEventListener("submit", (event) => {
        if (event.target.action?.endsWith(this.$root.dataset.signOut)) clearVisits();
      });
      this.$root.addEventListener("close", () => this.request?.abort());
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
      this.request?.abort();
      this.serverEntries = [];
      this.showState("");
      if (text.length >= MIN_LENGTH) {
        this.timer = setTimeout(() => this.queryServer(text), DELAY);
        this.showState("searching");
      }
      this.draw(text);
      this.mark(0);
    },
    async queryServer(text) {
      this.request = new AbortController();
      const { signal } = this.request;
      try {
        this.serverEntries = await searchServer(this.$root.dataset.find, text, signal);
        this.showState("");
        this.redraw(text);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof SignedOut) {
          this.$root.close();
          return showSignedOut();
        }
        this.showState("failed");
      }
    },
    // Keeps the active option when results are added above or below it.
    redraw(text) {
      const before = this.active ? this.shown[this.active] : undefined;
      this.draw(text);
      this.mark(Math.max(0, this.shown.indexOf(before)));
    },
    draw(text) {
      const local = filterEntries(this.all, text);
      const visited = text ? [] : recentEntries(this.$root.dataset.base, this.$root.dataset.recent);
      const views = filterEntries(viewEntries(this.$root.dataset.base, this.$root.dataset.viewsGroup), text);
      const entries = mergeEntries(visited, views, local, this.serverEntries);
      const { list, status, none } = this.$refs;
      list.replaceChildren();
      this.shown = [];
      for (const [name, members] of groupEntries(entries)) {
        const group = element("div", "");
        const title = element("div", "dr-palette-group", name);
        title.id = `dr-palette-group-${this.shown.length}`;
        group.setAttribute("role", "group");
        group.setAttribute("aria-labelledby", title.id);
        group.append(title, ...members.map((entry) => this.option(entry, this.shown.push(entry) - 1)));
        list.append(group);
      }
      list.hidden = !entries.length;
      none.hidden = entries.length > 0 || !this.$refs.searching.hidden || !this.$refs.failed.hidden;
      this.$refs.input.setAttribute("aria-expanded", String(entries.length > 0));
      status.textContent = `${entries.length} ${entries.length === 1 ? status.dataset.one : status.dataset.many}`;
    },
    showState(name) {
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
    go(number, inNewTab) {
      const entry = this.shown[number];
      if (!entry) return;
      this.$root.close();
      if (entry.theme) setTheme(entry.theme);
      else if (entry.opens) document.dispatchEvent(new CustomEvent(`dr:${entry.opens}`));
      else if (entry.post) send(entry.post);
      else {
        recordVisit(entry);
        if (inNewTab) window.open(entry.url, "_blank", "noopener");
        else location.assign(entry.url);
      }
    },
  };
}
