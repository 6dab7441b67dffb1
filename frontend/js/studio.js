// Pages where long texts are written: the editor, unsaved text, and the Studio's two panes.
import { mirrorForms } from "./studio/autosave.js";
import { mountAll } from "./studio/editor.js";
import { hearKeys } from "./studio/keys.js";
import { watchNews } from "./studio/news.js";
import { splitPanes } from "./studio/panes.js";
import { watchPreview } from "./studio/preview.js";
import { guardSaving } from "./studio/saving.js";
import { wireStretches } from "./studio/stretches.js";
import { switchViews } from "./studio/views.js";

mountAll(document);
document.addEventListener("htmx:load", (event) => mountAll(event.detail.elt));
mirrorForms();
if (document.querySelector("form[data-studio]")) {
  splitPanes();
  watchPreview();
  watchNews();
  switchViews();
  wireStretches();
  guardSaving();
  hearKeys();
}
