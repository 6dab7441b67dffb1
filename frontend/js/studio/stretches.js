// Words in the prompt know their record: pointing lights all that it said, a click goes where it is written.
import { EditorView } from "@codemirror/view";
import { viewOf } from "./editor.js";

const SOUGHT = "studio-sought";

export function wireStretches() {
  const preview = () => document.getElementById("studio-preview");
  document.addEventListener("pointerover", (event) => light(preview(), partAt(event)));
  document.addEventListener("focusin", (event) => light(preview(), partAt(event)));
  document.addEventListener("click", (event) => {
    const stretch = event.target.closest?.("#studio-preview [data-part]");
    if (stretch && !event.target.closest("a, button, summary") && !String(getSelection())) go(stretch);
  });
  arrive();
}

const partAt = (event) => event.target.closest?.("#studio-preview [data-part]")?.dataset.part;
let shown;

function light(preview, part) {
  if (part === shown || !preview) return;
  shown = part;
  preview.querySelectorAll(".is-same").forEach((one) => one.classList.remove("is-same"));
  if (part) preview.querySelectorAll(`[data-part="${CSS.escape(part)}"]`).forEach((one) => one.classList.add("is-same"));
}

function go(stretch) {
  const words = stretch.textContent.trim();
  const { part } = stretch.dataset;
  if (part === edited()) return find(words);
  const link = document.querySelector(`#studio-preview a.dr-origin-name[data-part="${CSS.escape(part)}"]`);
  if (!link) return;
  sessionStorage.setItem(SOUGHT, words);
  link.click();
}

function edited() {
  const chosen = document.querySelector(".dr-studio-part[aria-current]");
  return chosen && new URL(chosen.href).searchParams.get("part");
}

// After another part was opened by a click on its words.
function arrive() {
  const words = sessionStorage.getItem(SOUGHT);
  sessionStorage.removeItem(SOUGHT);
  if (words) find(words);
}

// The words may stand otherwise in the prompt than in the record, as an item of a list for one: then their longest line
// is looked for, without what marks it.
function find(words) {
  const field = document.querySelector("form[data-studio] textarea[data-editor]");
  const view = field && viewOf(field);
  if (!view) return;
  const lines = words.split("\n").map((line) => line.trim()).sort((a, b) => b.length - a.length);
  const bare = lines.map((line) => line.replace(/^(?:[-*>#]+|\d+\.)\s+/, ""));
  const text = view.state.doc.toString();
  const sought = [words, ...lines, ...bare].find((one) => one && text.includes(one));
  document.dispatchEvent(new CustomEvent("studio:show", { detail: "edit" }));
  view.focus();
  if (!sought) return;
  const at = text.indexOf(sought);
  view.dispatch({ selection: { anchor: at, head: at + sought.length }, effects: EditorView.scrollIntoView(at, { y: "center" }) });
}
