// The assembled prompt beside the editor: keeps its place when it is drawn anew and says when it cannot be.
import { spoken, tell } from "../telling.js";
import { say } from "./status.js";
import { words } from "./words.js";

const SLOT_PAUSE = 150;
// A section's title stays at the top of the pane and covers so much.
const TITLE = 36;
// Screen readers hear what became of it when typing rests, not with every letter.
const QUIET = 1_200;
const FAULTS = ["htmx:responseError", "htmx:sendError", "htmx:timeout"];
let before = new Set();
let place = 0;
let open = new Set();
let isDue = false;

const preview = () => document.getElementById("studio-preview");
const pane = () => preview()?.closest(".dr-studio-pane");
const isOurs = (event) => event.detail.target?.id === "studio-preview";

export function refresh() {
  document.body.dispatchEvent(new CustomEvent("studio:refresh"));
}

export function watchPreview() {
  FAULTS.forEach((name) => document.addEventListener(name, (event) => isOurs(event) && fail()));
  document.addEventListener("htmx:beforeSwap", (event) => isOurs(event) && note());
  document.addEventListener("htmx:afterSwap", (event) => isOurs(event) && settle());
  document.addEventListener("htmx:oobAfterSwap", markMistakes);
  if (document.querySelector(".dr-mistake li")) markMistakes();
  told = outcome();
  watchSlots();
}

// The last good prompt stays, paler; what is typed is safe either way.
function fail() {
  preview().classList.add("is-stale");
  say(words("preview-failed"), "error");
}

function clearFailure() {
  if (!preview().classList.contains("is-stale")) return;
  preview().classList.remove("is-stale");
  say("");
}

// --- keeping one's place ----------------------------------------------------------------------------------

const lit = () => [...(preview()?.querySelectorAll(".dr-stretch.is-edited") ?? [])];

function note() {
  isDue = true;
  before = new Set(lit().map((row) => row.textContent));
  place = pane()?.scrollTop ?? 0;
  open = new Set([...(preview()?.querySelectorAll("details[id][open]") ?? [])].map((one) => one.id));
}

// Told once for every piece of the answer; the first time is enough.
function settle() {
  if (!isDue) return;
  isDue = false;
  clearFailure();
  tellSoon();
  open.forEach((id) => document.getElementById(id)?.setAttribute("open", ""));
  const scroller = pane();
  if (!scroller) return;
  scroller.scrollTop = place;
  const changed = lit().find((row) => !before.has(row.textContent));
  if (changed && isOutside(changed, scroller)) changed.scrollIntoView({ block: "center", behavior: "instant" });
}

function isOutside(row, scroller) {
  const [inner, outer] = [row.getBoundingClientRect(), scroller.getBoundingClientRect()];
  return inner.bottom < outer.top + TITLE || inner.top > outer.bottom;
}

// --- said aloud -------------------------------------------------------------------------------------------

let told = "";
let telling;

// What is wrong, or how large it has become; the text itself stands beside, for whoever wants to read it.
function outcome() {
  const wrong = ["studio-mistakes", "studio-slot-mistakes", "studio-problem"].map(wordsOf).filter(Boolean);
  const lines = [...document.querySelectorAll(".dr-mistake")].map(spoken).filter(Boolean);
  if (wrong.length || lines.length) return [...wrong, ...lines].join(" ");
  const size = wordsOf("studio-size");
  return size && words("drawn", { size });
}

function wordsOf(id) {
  const element = document.getElementById(id);
  return element ? spoken(element) : "";
}

function tellSoon() {
  clearTimeout(telling);
  telling = setTimeout(() => {
    const now = outcome();
    if (now !== told) tell(now);
    told = now;
  }, QUIET);
}

// --- mistakes ---------------------------------------------------------------------------------------------

// The answer fills the line behind each field; the field itself has to say so too, and point at it.
function markMistakes() {
  document.querySelectorAll(".dr-mistake[id$=_mistake]").forEach((line) => {
    const field = document.getElementById(line.id.replace(/_mistake$/, ""));
    if (!field) return;
    const isWrong = Boolean(line.textContent.trim());
    pointAt(field, line.id, isWrong);
    if (isWrong) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  });
}

function pointAt(field, id, isWanted) {
  const before = field.getAttribute("aria-describedby") ?? "";
  const others = before.split(/\s+/).filter((one) => one && one !== id);
  const ids = [...others, ...(isWanted ? [id] : [])].join(" ");
  // Set again while something is wrong: the words may be others, and the editor says them by itself.
  if (ids === before && !isWanted) return;
  if (ids) field.setAttribute("aria-describedby", ids);
  else field.removeAttribute("aria-describedby");
}

// What a call would send is no part of the record's form, yet changes the prompt as well.
function watchSlots() {
  let waiting;
  document.addEventListener("input", (event) => {
    if (!event.target.closest?.("#studio-slots")) return;
    clearTimeout(waiting);
    waiting = setTimeout(refresh, SLOT_PAUSE);
  });
}
