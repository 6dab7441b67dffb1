// Ctrl-S saves the draft, Ctrl-Enter opens the review.
import { saveDraft } from "./save_draft.js";

export function listenForKeys() {
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey || event.isComposing) return;
    if (event.key.toLowerCase() === "s") {
      event.preventDefault();
      saveDraft();
    } else if (event.key === "Enter") {
      const review = document.getElementById("studio-review");
      if (!review || document.querySelector("dialog[open]")) return;
      event.preventDefault();
      review.form.requestSubmit(review);
    }
  });
}
