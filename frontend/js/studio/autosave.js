// Forms marked data-draft-key: what is typed is mirrored in the browser and offered back on the next visit.
import { dropCopy, keepCopy, keptCopy } from "../drafts.js";
import { spoken, tell } from "../telling.js";
import { ago } from "./ago.js";

const PAUSE = 250;
// By then a screen reader hears what changes in a new page.
const ARRIVAL = 600;
const PRIVATE = new Set(["csrfmiddlewaretoken", "revision", "overwrite", "message"]);

export function mirrorForms() {
  document.querySelectorAll("form[data-draft-key]:not([data-draft-drop])").forEach(mirror);
}

function mirror(form) {
  const before = JSON.stringify(valuesOf(form));
  offer(form, before);
  let waiting;
  const write = () => {
    clearTimeout(waiting);
    waiting = undefined;
    const values = valuesOf(form);
    if (JSON.stringify(values) === before && !("refused" in form.dataset)) dropCopy(form.dataset.draftKey);
    else keepCopy(form.dataset.draftKey, values, form.dataset.baseRevision ?? "");
  };
  const soon = (event) => {
    if (event.target.closest("[data-unmirrored]")) return;
    clearTimeout(waiting);
    waiting = setTimeout(write, PAUSE);
  };
  form.addEventListener("input", soon);
  form.addEventListener("change", soon);
  // A tab closed within the pause still keeps its last words.
  window.addEventListener("pagehide", () => waiting && write());
  form.addEventListener("studio:kept", () => {
    clearTimeout(waiting);
    waiting = undefined;
  });
}

// Every control by its name; several with one name (boxes) as a list.
export function valuesOf(form) {
  const values = {};
  for (const control of form.elements) {
    const { name, type } = control;
    if (!name || PRIVATE.has(name) || ["file", "password", "hidden", "submit", "button", "fieldset"].includes(type)) continue;
    const chosen = type === "checkbox" || type === "radio" ? (control.checked ? [control.value] : []) : [control.value];
    values[name] = [...(values[name] ?? []), ...chosen];
  }
  return values;
}

function offer(form, now) {
  const key = form.dataset.draftKey;
  const copy = keptCopy(key);
  if (!copy || form.querySelector(":disabled[data-editor], [readonly][data-editor]")) return;
  if ("refused" in form.dataset) return;
  if (JSON.stringify(copy.values) === now) return dropCopy(key);
  const template = document.querySelector("template[data-draft-offer]");
  if (!template) return;
  const note = template.content.firstElementChild.cloneNode(true);
  note.querySelector("[data-ago]").textContent = ago(copy.at);
  const moved = note.querySelector("[data-moved]");
  if (moved) moved.hidden = String(copy.revision) === (form.dataset.baseRevision ?? "");
  note.querySelector("[data-take]").addEventListener("click", () => {
    take(form, copy.values);
    goOn(form, note);
  });
  note.querySelector("[data-forget]").addEventListener("click", () => {
    dropCopy(key);
    goOn(form, note);
  });
  const place = document.getElementById("studio-found");
  place?.removeAttribute("hidden");
  if (place) place.replaceChildren(note);
  else form.prepend(note);
  tell(spoken(note.querySelector("p")), ARRIVAL);
}

// The offer goes and had the focus; the form has it next.
function goOn(form, note) {
  note.remove();
  (form.querySelector("input:not([type=hidden]), textarea:not([hidden])") ?? form).focus?.();
}

function take(form, values) {
  for (const control of form.elements) {
    const said = values[control.name];
    if (!said) continue;
    if (control.type === "checkbox" || control.type === "radio") control.checked = said.includes(control.value);
    else if (said.length === 1 && control.type !== "hidden") control.value = said[0];
    else continue;
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
