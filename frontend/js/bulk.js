// Lists and boards: what is ticked, and the bar that acts on it. Without script the bar stands under the list.
import { spoken, tell } from "./telling.js";

const boxes = (form) => [...document.querySelectorAll(`input[name="chosen"][form="${form.id}"]`)];

function told(place, count) {
  place.textContent = count === 1 ? place.dataset.one : place.dataset.many.replace("#", count.toLocaleString(document.documentElement.lang));
}

// Prompts of an agent count once, however many of its memories are ticked; a shared one comes to all.
function reached(ticked, everyone) {
  if (ticked.some((box) => box.dataset.agent === "")) return everyone;
  const byAgent = new Map(ticked.map((box) => [box.dataset.agent, Number(box.dataset.reach)]));
  return [...byAgent.values()].reduce((sum, count) => sum + count, 0);
}

function refresh(form) {
  const all = boxes(form);
  const ticked = all.filter((box) => box.checked);
  form.classList.toggle("is-on", ticked.length > 0);
  if (ticked.length) told(form.querySelector("[data-bulk-count]"), ticked.length);
  const effect = form.querySelector("[data-bulk-effect]");
  const knows = ticked.length && ticked.every((box) => "reach" in box.dataset);
  if (knows) told(effect, reached(ticked, Number(effect.dataset.everyone)));
  else effect.textContent = "";
  count(form, ticked.length);
  const head = document.querySelector(`[data-bulk-all="${form.id}"]`);
  if (!head) return;
  head.checked = all.length > 0 && ticked.length === all.length;
  head.indeterminate = ticked.length > 0 && ticked.length < all.length;
  head.disabled = all.length === 0;
}

// The bar comes out of hiding with its first count, which nobody would hear.
function count(form, now) {
  const before = Number(form.dataset.count ?? 0);
  form.dataset.count = now;
  if (now === before) return;
  const said = [...form.querySelectorAll("[data-bulk-count], [data-bulk-effect]")].map(spoken).join(" ");
  tell(now ? said : form.dataset.none);
}

function tick(form, on) {
  for (const box of boxes(form)) box.checked = on;
  refresh(form);
}

function onChange(event) {
  const box = event.target;
  if (box.matches?.("[data-bulk-all]")) tick(document.getElementById(box.dataset.bulkAll), box.checked);
  else if (box.name === "chosen" && box.form?.matches("[data-bulk]")) refresh(box.form);
}

// Shift and a second box: everything in between.
let last = null;
function onClick(event) {
  const none = event.target.closest("[data-bulk-none]");
  if (none) tick(none.form, false);
  const box = event.target;
  if (box.name !== "chosen" || !box.form?.matches("[data-bulk]")) return;
  const all = boxes(box.form);
  if (event.shiftKey && last && last !== box && all.includes(last)) {
    const [from, to] = [all.indexOf(last), all.indexOf(box)].sort((one, other) => one - other);
    for (const between of all.slice(from, to + 1)) between.checked = box.checked;
  }
  last = box;
  refresh(box.form);
}

// A card that leaves the board hands the focus to its neighbour; the last one, to the column.
let next = null;
function onRequest(event) {
  const card = event.detail.elt.closest?.(".dr-memo");
  if (card) next = card.nextElementSibling || card.previousElementSibling || card.closest("section");
}

function onSettled() {
  const form = document.querySelector("form[data-bulk]");
  if (form) refresh(form);
  if (next?.isConnected && document.activeElement === document.body) {
    (next.matches("section") ? next.querySelector("h2") : next.querySelector("input, a, button"))?.focus();
  }
  next = null;
}

export function listen() {
  document.addEventListener("change", onChange);
  document.addEventListener("click", onClick);
  document.addEventListener("htmx:beforeRequest", onRequest);
  document.addEventListener("htmx:afterSettle", onSettled);
  // Boxes that a browser remembers when one goes back.
  window.addEventListener("pageshow", () => document.querySelectorAll("form[data-bulk]").forEach(refresh));
}
