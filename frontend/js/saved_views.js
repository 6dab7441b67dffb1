// Saved views: filters, search and sorting of a list under a name. Kept in this browser, for this list only.
import { loadItem, storeItem } from "./storage.js";

// Each account that uses this browser has its own views.
const key = () => `saved-views-${document.getElementById("dr-palette")?.dataset.user ?? ""}`;
const MAX_VIEWS = 30;

function loadViews() {
  try {
    const views = JSON.parse(loadItem(key()) ?? "[]");
    return views.filter(({ name, path, query }) => [name, path, query].every((part) => typeof part === "string"));
  } catch {
    return [];
  }
}

function storeViews(views) {
  storeItem(key(), JSON.stringify(views.slice(-MAX_VIEWS)));
}

// The entries of the command palette for the views of this workspace.
export function viewEntries(base, group) {
  return loadViews()
    .filter(({ path }) => path.startsWith(base))
    .map(({ name, path, query }) => ({ label: name, url: `${path}?${query}`, icon: "filter", group }));
}

// The query of the list without the page, which is no part of a view.
function currentQuery() {
  const params = new URLSearchParams(location.search);
  params.delete("page");
  for (const [name, value] of [...params]) if (!value) params.delete(name, value);
  params.sort();
  return params.toString();
}

function draw(menu) {
  const path = menu.dataset.views;
  const list = menu.querySelector("[data-part=list]");
  const item = menu.querySelector("template[data-part=item]");
  const views = loadViews().filter((view) => view.path === path);
  list.replaceChildren();
  list.hidden = !views.length;
  for (const view of views) {
    const row = item.content.cloneNode(true);
    const link = row.querySelector("[data-part=link]");
    const button = row.querySelector("[data-part=delete]");
    link.textContent = view.name;
    link.href = `${path}?${view.query}`;
    if (view.query === currentQuery()) link.setAttribute("aria-current", "page");
    button.setAttribute("aria-label", `${button.dataset.label}: ${view.name}`);
    button.addEventListener("click", () => {
      storeViews(loadViews().filter((one) => one.path !== path || one.name !== view.name));
      draw(menu);
      menu.querySelector("summary").focus();
    });
    list.append(row);
  }
}

export function listen() {
  const menu = document.querySelector(".dr-views");
  if (!menu) return;
  menu.hidden = false;
  draw(menu);
  const field = menu.querySelector("[data-part=name]");
  const save = () => {
    const path = menu.dataset.views;
    const name = field.value.trim();
    if (!name) return field.focus();
    const others = loadViews().filter((one) => one.path !== path || one.name !== name);
    storeViews([...others, { name, path, query: currentQuery() }]);
    field.value = "";
    draw(menu);
    [...menu.querySelectorAll("[data-part=list] a")].at(-1)?.focus();
  };
  menu.querySelector("[data-part=save]").addEventListener("click", save);
  // The field is inside the form of the filters, which Enter would send.
  field.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    save();
  });
}
