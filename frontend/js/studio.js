// Entry point of pages with a text editor: the editor, copies of unsaved text, and the Studio's two panes.
import { mirrorForms } from "./studio/autosave.js";
import { mountAll } from "./studio/editor.js";
import { listenForKeys } from "./studio/keys.js";
import { splitPanes } from "./studio/panes.js";
import { watchPreview } from "./studio/preview.js";
import { watchDraft } from "./studio/save_draft.js";
import { linkSpans } from "./studio/spans.js";
import { watchUpdates } from "./studio/updates.js";
import { switchViews } from "./studio/views.js";

mountAll(document);
document.addEventListener("htmx:load", (event) => mountAll(event.detail.elt));
mirrorForms();
if (document.querySelector("form[data-studio]")) {
  splitPanes();
  watchPreview();
  watchUpdates();
  switchViews();
  linkSpans();
  watchDraft();
  listenForKeys();
}
