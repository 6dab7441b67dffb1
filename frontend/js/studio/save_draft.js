// Saves the draft on the server without leaving the page, and before another part is opened.
import { dropCopy } from "../drafts.js";
import { valuesOf } from "./autosave.js";
import { message } from "./messages.js";
import { showStatus } from "./status.js";

const MAX_WAIT = 2_000;
let saved = "";

const form = () => document.getElementById("studio-form");

export function isDirty() {
  return JSON.stringify(valuesOf(form())) !== saved;
}

export function watchDraft() {
  if (!form().dataset.saveUrl) return;
  saved = JSON.stringify(valuesOf(form()));
  form().addEventListener("input", () => showStatus(isDirty() ? message("unsaved") : ""));
  document.getElementById("studio-save")?.addEventListener("click", (event) => {
    event.preventDefault();
    saveDraft();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href*='part=']");
    if (link && !(event.ctrlKey || event.metaKey || event.shiftKey || event.button)) saveAndFollow(event, link);
  });
}

export async function saveDraft() {
  if (!form().dataset.saveUrl) return false;
  const values = JSON.stringify(valuesOf(form()));
  showStatus(message("saving"));
  try {
    const response = await fetch(form().dataset.saveUrl, {
      method: "POST",
      body: new FormData(form()),
      headers: { "HX-Request": "true" },
      signal: AbortSignal.timeout(20_000),
    });
    if (!response.ok) return onRefused(response.status);
    const body = new DOMParser().parseFromString(await response.text(), "text/html").body;
    // After the session has ended the response is the sign-in page, with status 200.
    if (!body.querySelector("[data-saved-at]")) return onRefused(401);
    onSaved(values, body);
    return true;
  } catch {
    return onRefused(0);
  }
}

function onSaved(values, body) {
  saved = values;
  dropCopy(form().dataset.draftKey);
  form().dispatchEvent(new CustomEvent("studio:kept"));
  const text = body.textContent.replace(/\s+/g, " ").trim();
  document.querySelector("#studio-kept time")?.replaceWith(...body.querySelectorAll("time"));
  showStatus(isDirty() ? message("unsaved") : text, "success");
}

// The preview shows which field is wrong; this line only says that nothing was saved.
function onRefused(status) {
  const reasons = { 401: "signed-out", 422: "save-refused" };
  showStatus(message(reasons[status] ?? "save-failed"), "error");
  return false;
}

async function saveAndFollow(event, link) {
  if (event.defaultPrevented || !isDirty()) return;
  event.preventDefault();
  await Promise.race([saveDraft(), new Promise((resolve) => setTimeout(resolve, MAX_WAIT))]);
  location.assign(link.href);
}
