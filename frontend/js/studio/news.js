// Somebody else saved the part, or a file changed: the page asks every few seconds, and shows an answer only when it says
// something new. Drawn again and again it would be read aloud each time, and take the focus off its own buttons.
let shown = "";

const bare = (html) => html.replace(/<time[^>]*>[^<]*<\/time>/g, "");

export function watchNews() {
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (event.detail.target?.id !== "studio-state") return;
    const news = bare(event.detail.xhr.responseText);
    if (news === shown) event.detail.shouldSwap = false;
    shown = news;
  });
}
