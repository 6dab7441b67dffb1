// Preview of the assembled prompt: keeps its scroll position when it is refreshed and shows failures.
import { announce, readableText } from "../announce.js";
import { message } from "./messages.js";
import { showStatus } from "./status.js";

const SLOT_DELAY = 150;
// Height of the sticky section title at the top of the pane.
const TITLE = 36;
// The result is announced after a pause in typing, not with every letter.
const ANNOUNCE_DELAY = 1_200;
const ERRORS = ["htmx:responseError", "htmx:sendError", "htmx:timeout"];
let before = new Set();
let scrollTop = 0;
let open = new Set();
let isDue = false;

const preview = () => document.getElementById("studio-preview");
const pane = () => preview()?.closest(".dr-studio-pane");
const isPreview = (event) => event.detail.target?.id === "studio-preview";

export function refresh() {
  document.body.dispatchEvent(new CustomEvent("studio:refresh"));
}

export function watchPreview() {
  ERRORS.forEach((name) => document.addEventListener(name, (event) => isPreview(event) && fail()));
  document.addEventListener("htmx:beforeSwap", (event) => isPreview(event) && saveState());
  document.addEventListener("htmx:afterSwap", (event) => isPreview(event) && restoreState());
  document.addEventListener("htmx:oobAfterSwap", markMistakes);
  if (document.querySelector(".dr-mistake li")) markMistakes();
  announced = outcome();
  watchSlots();
}

// The last good prompt stays, greyed out; the typed text is not affected.
function fail() {
  preview().classList.add("is-stale");
  showStatus(message("preview-failed"), "error");
}

function clearFailure() {
  if (!preview().classList.contains("is-stale")) return;
  preview().classList.remove("is-stale");
  showStatus("");
}

// --- scroll position --------------------------------------------------------------------------------------

const editedSpans = () => [...(preview()?.querySelectorAll(".dr-stretch.is-edited") ?? [])];

function saveState() {
  isDue = true;
  before = new Set(editedSpans().map((row) => row.textContent));
  scrollTop = pane()?.scrollTop ?? 0;
  open = new Set([...(preview()?.querySelectorAll("details[id][open]") ?? [])].map((one) => one.id));
}

// htmx sends the event once per swapped fragment; the first one is enough.
function restoreState() {
  if (!isDue) return;
  isDue = false;
  clearFailure();
  announceSoon();
  open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
  const scroller = pane();
  if (!scroller) return;
  scroller.scrollTop = scrollTop;
  const changed = editedSpans().find((row) => !before.has(row.textContent));
  if (changed && isOutside(changed, scroller)) changed.scrollIntoView({ block: "center", behavior: "instant" });
}

function isOutside(row, scroller) {
  const [inner, outer] = [row.getBoundingClientRect(), scroller.getBoundingClientRect()];
  return inner.bottom < outer.top + TITLE || inner.top > outer.bottom;
}

// --- announcements ----------------------------------------------------------------------------------------

let announced = "";
let announceTimer;

// The errors, or the new size of the prompt; the prompt's text itself is not announced.
function outcome() {
  const problems = ["studio-mistakes", "studio-slot-mistakes", "studio-problem"].map(textOfId).filter(Boolean);
  const lines = [...document.querySelectorAll(".dr-mistake")].map(readableText).filter(Boolean);
  if (problems.length || lines.length) return [...problems, ...lines].join(" ");
  const size = textOfId("studio-size");
  return size && message("drawn", { size });
}

function textOfId(id) {
  const element = document.getElementById(id);
  return element ? readableText(element) : "";
}

function announceSoon() {
  clearTimeout(announceTimer);
  announceTimer = setTimeout(() => {
    const now = outcome();
    if (now !== announced) announce(now);
    announced = now;
  }, ANNOUNCE_DELAY);
}

// --- field errors -----------------------------------------------------------------------------------------

// The response fills the error line of each field; the field gets aria-invalid and refers to that line.
function markMistakes() {
  document.querySelectorAll(".dr-mistake[id$=_mistake]").forEach((line) => {
    const field = document.getElementById(line.id.replace(/_mistake$/, ""));
    if (!field) return;
    const isWrong = Boolean(line.textContent.trim());
    setDescription(field, line.id, isWrong);
    if (isWrong) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  });
}

function setDescription(field, id, isWrong) {
  const before = field.getAttribute("aria-describedby") ?? "";
  const others = before.split(/\s+/).filter((one) => one && one !== id);
  const ids = [...others, ...(isWrong ? [id] : [])].join(" ");
  // Set again while there is an error: its text may have changed, and the editor copies it on every change.
  if (ids === before && !isWrong) return;
  if (ids) field.setAttribute("aria-describedby", ids);
  else field.removeAttribute("aria-describedby");
}

// The slot values of a call are not part of the record's form, but they change the prompt too.
function watchSlots() {
  let timer;
  document.addEventListener("input", (event) => {
    if (!event.target.closest?.("#studio-slots")) return;
    clearTimeout(timer);
    timer = setTimeout(refresh, SLOT_DELAY);
  });
}
