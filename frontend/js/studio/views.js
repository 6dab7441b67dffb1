// Switches channel or layout of the same draft in place, so that unsaved text stays; the URL is updated.
import { refresh } from "./preview.js";

const LINKS = ".dr-studio-head nav a, #studio-layouts a[href*='layout=']";
const FIELDS = { channel: "view-channel", layout: "view-layout" };
let shown = location.search;

export function switchViews() {
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(LINKS);
    if (!link || event.defaultPrevented || event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const url = new URL(link.href);
    if (url.pathname !== location.pathname || !isLive()) return;
    event.preventDefault();
    history.pushState(null, "", url);
    show();
  });
  window.addEventListener("popstate", () => location.search !== shown && show());
}

// Without edit permission there is no live form; then the link is followed normally.
function isLive() {
  return document.getElementById("studio-form").hasAttribute("hx-post");
}

function show() {
  shown = location.search;
  const here = new URL(location.href);
  const form = document.getElementById("studio-form");
  for (const [name, field] of Object.entries(FIELDS)) form.elements[field].value = here.searchParams.get(name) ?? "";
  document.querySelectorAll(".dr-studio-part").forEach((link) => follow(link, here));
  refresh();
}

// Links to other parts keep the current channel and layout.
function follow(link, here) {
  const to = new URL(link.href);
  for (const name of Object.keys(FIELDS)) {
    if (here.searchParams.has(name)) to.searchParams.set(name, here.searchParams.get(name));
    else to.searchParams.delete(name);
  }
  link.href = to;
}
