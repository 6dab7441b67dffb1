// Spans of the preview carry their record: hovering highlights all spans of that record, a click opens it in the editor.
import { EditorView } from "@codemirror/view";
import { viewOf } from "./editor.js";

const SEARCH_KEY = "studio-sought";

export function linkSpans() {
  const preview = () => document.getElementById("studio-preview");
  document.addEventListener("pointerover", (event) => highlight(preview(), partAt(event)));
  document.addEventListener("focusin", (event) => highlight(preview(), partAt(event)));
  document.addEventListener("click", (event) => {
    const span = event.target.closest?.("#studio-preview [data-part]");
    if (span && !event.target.closest("a, button, summary") && !String(getSelection())) openRecord(span);
  });
  selectStored();
}

const partAt = (event) => event.target.closest?.("#studio-preview [data-part]")?.dataset.part;
let highlighted;

function highlight(preview, part) {
  if (part === highlighted || !preview) return;
  highlighted = part;
  preview.querySelectorAll(".is-same").forEach((one) => one.classList.remove("is-same"));
  if (part) preview.querySelectorAll(`[data-part="${CSS.escape(part)}"]`).forEach((one) => one.classList.add("is-same"));
}

function openRecord(span) {
  const text = span.textContent.trim();
  const { part } = span.dataset;
  if (part === editedPart()) return selectText(text);
  const link = document.querySelector(`#studio-preview a.dr-origin-name[data-part="${CSS.escape(part)}"]`);
  if (!link) return;
  sessionStorage.setItem(SEARCH_KEY, text);
  link.click();
}

function editedPart() {
  const chosen = document.querySelector(".dr-studio-part[aria-current]");
  return chosen && new URL(chosen.href).searchParams.get("part");
}

// Selects the clicked text after its record was opened.
function selectStored() {
  const text = sessionStorage.getItem(SEARCH_KEY);
  sessionStorage.removeItem(SEARCH_KEY);
  if (text) selectText(text);
}

// The prompt may render the text differently from the record, for example as a list item: then search its longest line,
// also without its list or heading marker.
function selectText(text) {
  const field = document.querySelector("form[data-studio] textarea[data-editor]");
  const view = field && viewOf(field);
  if (!view) return;
  const lines = text.split("\n").map((line) => line.trim()).sort((a, b) => b.length - a.length);
  const bare = lines.map((line) => line.replace(/^(?:[-*>#]+|\d+\.)\s+/, ""));
  const doc = view.state.doc.toString();
  const match = [text, ...lines, ...bare].find((one) => one && doc.includes(one));
  document.dispatchEvent(new CustomEvent("studio:show", { detail: "edit" }));
  view.focus();
  if (!match) return;
  const at = doc.indexOf(match);
  view.dispatch({ selection: { anchor: at, head: at + match.length }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
}
