// Keeps the draft on the server without leaving the page, and before another part is opened.
import { dropCopy } from "../drafts.js";
import { valuesOf } from "./autosave.js";
import { say } from "./status.js";
import { words } from "./words.js";

const PATIENCE = 2_000;
let saved = "";

const form = () => document.getElementById("studio-form");

export function isDirty() {
  return JSON.stringify(valuesOf(form())) !== saved;
}

export function guardSaving() {
  if (!form().dataset.saveUrl) return;
  saved = JSON.stringify(valuesOf(form()));
  form().addEventListener("input", () => say(isDirty() ? words("unsaved") : ""));
  document.getElementById("studio-save")?.addEventListener("click", (event) => {
    event.preventDefault();
    saveDraft();
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href*='part=']");
    if (link && !(event.ctrlKey || event.metaKey || event.shiftKey || event.button)) leaveBy(event, link);
  });
}

export async function saveDraft() {
  if (!form().dataset.saveUrl) return false;
  const values = JSON.stringify(valuesOf(form()));
  say(words("saving"));
  try {
    const answer = await fetch(form().dataset.saveUrl, {
      method: "POST",
      body: new FormData(form()),
      headers: { "HX-Request": "true" },
      signal: AbortSignal.timeout(20_000),
    });
    if (!answer.ok) return refused(answer.status);
    const body = new DOMParser().parseFromString(await answer.text(), "text/html").body;
    // Whoever is signed out is sent to the log-in page, which answers well.
    if (!body.querySelector("[data-saved-at]")) return refused(401);
    kept(values, body);
    return true;
  } catch {
    return refused(0);
  }
}

function kept(values, answer) {
  saved = values;
  dropCopy(form().dataset.draftKey);
  form().dispatchEvent(new CustomEvent("studio:kept"));
  const said = answer.textContent.replace(/\s+/g, " ").trim();
  document.querySelector("#studio-kept time")?.replaceWith(...answer.querySelectorAll("time"));
  say(isDirty() ? words("unsaved") : said, "success");
}

// The preview tells which field is wrong; this line only says that nothing was kept.
function refused(status) {
  const reasons = { 401: "signed-out", 422: "save-refused" };
  say(words(reasons[status] ?? "save-failed"), "error");
  return false;
}

async function leaveBy(event, link) {
  if (event.defaultPrevented || !isDirty()) return;
  event.preventDefault();
  await Promise.race([saveDraft(), new Promise((resolve) => setTimeout(resolve, PATIENCE))]);
  location.assign(link.href);
}
