// Marks the page while a bar with actions for the selection is up. Style sheets use the class: a `:has()` on the root element is
// evaluated again with each part of a long page that is parsed.
export function markActionBar() {
  const isUp = document.querySelector(".dr-bulk.is-on, .dr-pickbar.is-up") !== null;
  document.documentElement.classList.toggle("dr-bar-up", isUp);
}

export function listen() {
  document.addEventListener("htmx:afterSettle", markActionBar);
}
