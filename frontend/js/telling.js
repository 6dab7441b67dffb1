// One line that only screen readers hear. It stands in every page from the start: a region that comes into the page, or
// out of hiding, together with its words is not read.
const PAUSE = 150;
// A browser needs a moment until it hears what changes in a new page.
const ARRIVAL = 600;
let waiting = 0;

export function tell(text, pause = PAUSE) {
  const line = document.getElementById("dr-told");
  if (!line || !text) return;
  clearTimeout(waiting);
  // Emptied first, so that the same words are heard again.
  line.textContent = "";
  waiting = setTimeout(() => (line.textContent = text), pause);
}

export function spoken(element) {
  return element.textContent.replace(/\s+/g, " ").trim();
}

function tellFrom(root, pause) {
  const said = [...root.querySelectorAll("[data-tell]")];
  if (root.matches?.("[data-tell]")) said.unshift(root);
  tell(said.map(spoken).join(" "), pause);
}

// What a page or a fragment marks with data-tell is told as it comes.
export function listen() {
  tellFrom(document, ARRIVAL);
  document.addEventListener("htmx:load", (event) => event.detail.elt !== document.body && tellFrom(event.detail.elt));
}
