// Notices about changes by others: the page polls for them and swaps a response only when it differs from the last one.
// Otherwise screen readers would read the notice each time, and its buttons would lose the focus.
let shown = "";

const withoutTimes = (html) => html.replace(/<time[^>]*>[^<]*<\/time>/g, "");

export function watchUpdates() {
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target?.id !== "studio-state") return;
    const text = withoutTimes(event.detail.xhr.responseText);
    if (text === shown) event.detail.shouldSwap = false;
    shown = text;
  });
}
