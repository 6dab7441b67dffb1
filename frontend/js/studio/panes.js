// The Studio's two panes: side by side with a splitter, or one at a time under tabs on narrow screens.
import { loadItem, storeItem } from "../storage.js";
import { message } from "./messages.js";

const KEY = "studio-split";
const MIN = 28;
const MAX = 72;
const NARROW = window.matchMedia("(width < 56rem)");

export function splitPanes() {
  const studio = document.querySelector("[data-studio-panes]");
  const panes = studio ? [...studio.querySelectorAll(":scope > .dr-studio-pane")] : [];
  if (panes.length !== 2) return;
  splitter(studio, studio.querySelector("[data-splitter]"), panes[0]);
  studio.before(tabs(studio, panes));
}

// --- splitter ---------------------------------------------------------------------------------------------

function splitter(studio, line, first) {
  line.tabIndex = 0;
  const attributes = { role: "separator", "aria-orientation": "vertical", "aria-valuemin": MIN, "aria-valuemax": MAX };
  Object.entries({ ...attributes, "aria-label": message("splitter"), "aria-controls": first.id }).forEach(([name, value]) => line.setAttribute(name, value));
  const move = (share, isStored = true) => {
    const at = Math.min(MAX, Math.max(MIN, Math.round(share * 10) / 10));
    studio.style.setProperty("--split", `${at}%`);
    line.setAttribute("aria-valuenow", Math.round(at));
    if (isStored) storeItem(KEY, at === 50 ? null : String(at));
  };
  move(Number(loadItem(KEY)) || 50, false);
  line.addEventListener("keydown", (event) => onKey(event, line, move));
  line.addEventListener("dblclick", () => move(50));
  line.addEventListener("pointerdown", (event) => drag(event, line, studio, move));
}

function onKey(event, line, move) {
  const now = Number(line.getAttribute("aria-valuenow"));
  const positions = { ArrowLeft: now - 2, ArrowRight: now + 2, Home: MIN, End: MAX, Enter: 50 };
  if (!(event.key in positions)) return;
  event.preventDefault();
  move(positions[event.key]);
}

function drag(event, line, studio, move) {
  const box = studio.getBoundingClientRect();
  const follow = (moved) => move(((moved.clientX - box.left) / box.width) * 100);
  line.setPointerCapture(event.pointerId);
  line.addEventListener("pointermove", follow);
  line.addEventListener("lostpointercapture", () => line.removeEventListener("pointermove", follow), { once: true });
}

// --- tabs -------------------------------------------------------------------------------------------------

function tabs(studio, panes) {
  const list = document.createElement("div");
  list.className = "dr-tabs dr-pane-tabs";
  const buttons = panes.map((pane, at) => tab(pane, message(at ? "tab-prompt" : "tab-edit")));
  list.append(...buttons);
  const choose = (at) => {
    buttons.forEach((button, number) => {
      button.setAttribute("aria-selected", String(number === at));
      button.tabIndex = number === at ? 0 : -1;
    });
    studio.dataset.shown = panes[at].id;
  };
  buttons.forEach((button, at) => button.addEventListener("click", () => choose(at)));
  list.addEventListener("keydown", (event) => {
    if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
    const next = 1 - buttons.indexOf(document.activeElement);
    choose(next);
    buttons[next].focus();
  });
  const roles = () => setRoles(list, buttons, panes);
  NARROW.addEventListener("change", roles);
  roles();
  choose(0);
  document.addEventListener("studio:show", (event) => choose(event.detail === "edit" ? 0 : 1));
  return list;
}

function tab(pane, label) {
  const button = document.createElement("button");
  button.type = "button";
  button.id = `${pane.id}-tab`;
  button.textContent = label;
  button.setAttribute("aria-controls", pane.id);
  return button;
}

// Side by side the panes are no tabs, so they get the ARIA roles only on narrow screens.
function setRoles(list, buttons, panes) {
  list.hidden = !NARROW.matches;
  list.setAttribute("role", "tablist");
  list.setAttribute("aria-label", message("tabs"));
  buttons.forEach((button) => button.setAttribute("role", "tab"));
  panes.forEach((pane, at) => {
    for (const [name, value] of [["role", "tabpanel"], ["aria-labelledby", buttons[at].id]]) {
      if (NARROW.matches) pane.setAttribute(name, value);
      else pane.removeAttribute(name);
    }
  });
}
