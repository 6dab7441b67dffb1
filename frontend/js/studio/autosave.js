// Forms marked data-draft-key: unsaved input is copied to localStorage and offered on the next visit.
import { announce, readableText } from "../announce.js";
import { dropCopy, loadCopy, storeCopy } from "../drafts.js";
import { formatRelativeTime } from "./relative_time.js";

const DELAY = 250;
// Screen readers ignore changes made right after a page has loaded.
const PAGE_LOAD_DELAY = 600;
const PRIVATE = new Set(["csrfmiddlewaretoken", "revision", "overwrite", "message"]);

export function mirrorForms() {
  document.querySelectorAll("form[data-draft-key]:not([data-draft-drop])").forEach(mirror);
}

function mirror(form) {
  const initial = JSON.stringify(valuesOf(form));
  offerCopy(form, initial);
  let timer;
  const write = () => {
    clearTimeout(timer);
    timer = undefined;
    const values = valuesOf(form);
    if (JSON.stringify(values) === initial && !("refused" in form.dataset)) dropCopy(form.dataset.draftKey);
    else storeCopy(form.dataset.draftKey, values, form.dataset.baseRevision ?? "");
  };
  const schedule = (event) => {
    if (event.target.closest("[data-unmirrored]")) return;
    clearTimeout(timer);
    timer = setTimeout(write, DELAY);
  };
  form.addEventListener("input", schedule);
  form.addEventListener("change", schedule);
  // A tab closed within the delay still stores the last input.
  window.addEventListener("pagehide", () => timer && write());
  form.addEventListener("studio:kept", () => {
    clearTimeout(timer);
    timer = undefined;
  });
}

// Form values by control name, each as a list (checkboxes share a name).
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

function offerCopy(form, now) {
  const key = form.dataset.draftKey;
  const copy = loadCopy(key);
  if (!copy || form.querySelector(":disabled[data-editor], [readonly][data-editor]")) return;
  if ("refused" in form.dataset) return;
  if (JSON.stringify(copy.values) === now) return dropCopy(key);
  const template = document.querySelector("template[data-draft-offer]");
  if (!template) return;
  const note = template.content.firstElementChild.cloneNode(true);
  note.querySelector("[data-ago]").textContent = formatRelativeTime(copy.at);
  const moved = note.querySelector("[data-moved]");
  if (moved) moved.hidden = String(copy.revision) === (form.dataset.baseRevision ?? "");
  note.querySelector("[data-take]").addEventListener("click", () => {
    restoreValues(form, copy.values);
    closeOffer(form, note);
  });
  note.querySelector("[data-forget]").addEventListener("click", () => {
    dropCopy(key);
    closeOffer(form, note);
  });
  const region = document.getElementById("studio-found");
  region?.removeAttribute("hidden");
  if (region) region.replaceChildren(note);
  else form.prepend(note);
  announce(readableText(note.querySelector("p")), PAGE_LOAD_DELAY);
}

// Closing the offer would lose the focus, so it moves to the form.
function closeOffer(form, note) {
  note.remove();
  (form.querySelector("input:not([type=hidden]), textarea:not([hidden])") ?? form).focus?.();
}

function restoreValues(form, values) {
  for (const control of form.elements) {
    const saved = values[control.name];
    if (!saved) continue;
    if (control.type === "checkbox" || control.type === "radio") control.checked = saved.includes(control.value);
    else if (saved.length === 1 && control.type !== "hidden") control.value = saved[0];
    else continue;
    control.dispatchEvent(new Event("input", { bubbles: true }));
  }
}
