// Bulk actions of lists and boards: the selected rows, and the bar that acts on them. Without script the bar is below the list.
import { markActionBar } from "./action_bar.js";
import { announce, readableText } from "./announce.js";

const boxes = (form) => [...document.querySelectorAll(`input[name="chosen"][form="${form.id}"]`)];

function showCount(element, count) {
  element.textContent = count === 1 ? element.dataset.one : element.dataset.many.replace("#", count.toLocaleString(document.documentElement.lang));
}

// Counts the prompts of an agent once, however many of its memories are selected; a shared memory affects all prompts.
function countAffectedPrompts(ticked, allPrompts) {
  if (ticked.some((box) => box.dataset.agent === "")) return allPrompts;
  const byAgent = new Map(ticked.map((box) => [box.dataset.agent, Number(box.dataset.reach)]));
  return [...byAgent.values()].reduce((sum, count) => sum + count, 0);
}

function refresh(form) {
  const all = boxes(form);
  const ticked = all.filter((box) => box.checked);
  form.classList.toggle("is-on", ticked.length > 0);
  markActionBar();
  if (ticked.length) showCount(form.querySelector("[data-bulk-count]"), ticked.length);
  const effect = form.querySelector("[data-bulk-effect]");
  const isKnown = ticked.length && ticked.every((box) => "reach" in box.dataset);
  if (isKnown) showCount(effect, countAffectedPrompts(ticked, Number(effect.dataset.everyone)));
  else effect.textContent = "";
  announceCount(form, ticked.length);
  const head = document.querySelector(`[data-bulk-all="${form.id}"]`);
  if (!head) return;
  head.checked = all.length > 0 && ticked.length === all.length;
  head.indeterminate = ticked.length > 0 && ticked.length < all.length;
  head.disabled = all.length === 0;
}

// Announced separately: the bar is unhidden together with its first count, which screen readers do not announce.
function announceCount(form, now) {
  const before = Number(form.dataset.count ?? 0);
  form.dataset.count = now;
  if (now === before) return;
  const summary = [...form.querySelectorAll("[data-bulk-count], [data-bulk-effect]")].map(readableText).join(" ");
  announce(now ? summary : form.dataset.none);
}

function setAll(form, on) {
  for (const box of boxes(form)) box.checked = on;
  refresh(form);
}

function onChange(event) {
  const box = event.target;
  if (box.matches?.("[data-bulk-all]")) setAll(document.getElementById(box.dataset.bulkAll), box.checked);
  else if (box.name === "chosen" && box.form?.matches("[data-bulk]")) refresh(box.form);
}

// Shift and a click on a second box sets everything in between.
let lastClicked = null;
function onClick(event) {
  const clearButton = event.target.closest("[data-bulk-none]");
  if (clearButton) setAll(clearButton.form, false);
  const box = event.target;
  if (box.name !== "chosen" || !box.form?.matches("[data-bulk]")) return;
  const all = boxes(box.form);
  if (event.shiftKey && lastClicked && lastClicked !== box && all.includes(lastClicked)) {
    const [from, to] = [all.indexOf(lastClicked), all.indexOf(box)].sort((one, other) => one - other);
    for (const between of all.slice(from, to + 1)) between.checked = box.checked;
  }
  lastClicked = box;
  refresh(box.form);
}

// When a card leaves the board the focus moves to its neighbour, or to the column heading after the last card.
let focusNext = null;
function onRequest(event) {
  const card = event.detail.elt.closest?.(".dr-memo");
  if (card) focusNext = card.nextElementSibling || card.previousElementSibling || card.closest("section");
}

function onSettled() {
  const form = document.querySelector("form[data-bulk]");
  if (form) refresh(form);
  if (focusNext?.isConnected && document.activeElement === document.body) {
    (focusNext.matches("section") ? focusNext.querySelector("h2") : focusNext.querySelector("input, a, button"))?.focus();
  }
  focusNext = null;
}

export function listen() {
  document.addEventListener("change", onChange);
  document.addEventListener("click", onClick);
  document.addEventListener("htmx:beforeRequest", onRequest);
  document.addEventListener("htmx:afterSettle", onSettled);
  // The browser restores the boxes on back navigation.
  window.addEventListener("pageshow", () => document.querySelectorAll("form[data-bulk]").forEach(refresh));
}
