// Live region for screen readers. Every page contains it from the start: screen readers do not announce a region that is
// inserted or unhidden together with its text.
const DELAY = 150;
// Screen readers ignore changes made right after a page has loaded.
const PAGE_LOAD_DELAY = 600;
let timer = 0;

export function announce(text, delay = DELAY) {
  const region = document.getElementById("dr-told");
  if (!region || !text) return;
  clearTimeout(timer);
  // Emptied first, so that the same text is announced again.
  region.textContent = "";
  timer = setTimeout(() => (region.textContent = text), delay);
}

export function readableText(element) {
  return element.textContent.replace(/\s+/g, " ").trim();
}

function announceFrom(root, delay) {
  const elements = [...root.querySelectorAll("[data-tell]")];
  if (root.matches?.("[data-tell]")) elements.unshift(root);
  announce(elements.map(readableText).join(" "), delay);
}

// Announces the text of elements marked data-tell when their page or fragment arrives.
export function listen() {
  announceFrom(document, PAGE_LOAD_DELAY);
  document.addEventListener("htmx:load", (event) => event.detail.elt !== document.body && announceFrom(event.detail.elt));
}
