// Sortable lists: drag a handle, or press Alt and an arrow key on it. The order is saved at once and announced.
import { askForReview, showReview } from "./review.js";

const rows = (list) => [...list.querySelectorAll(":scope > [data-id]")];
const order = (list) => rows(list).map((row) => row.dataset.id);

let drag = null;

function statusLine(list) {
  return list.parentElement.querySelector("[data-sortable-said]");
}

function showStatus(list, text, isError = false) {
  const line = statusLine(list);
  if (!line) return;
  line.textContent = text;
  line.classList.toggle("is-error", isError);
}

function describePosition(list, row) {
  const all = rows(list);
  const values = { title: row.dataset.title, place: all.indexOf(row) + 1, count: all.length };
  return list.dataset.moved.replace(/%(\w+)%/g, (_, name) => values[name]);
}

// Moves the other rows around this one: moving an element itself loses pointer capture and focus.
function moveBefore(list, row, next) {
  const others = rows(list).filter((other) => other !== row);
  const at = next ? others.indexOf(next) : others.length;
  const follows = (other) => row.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  others.slice(0, at).filter(follows).forEach((other) => list.insertBefore(other, row));
  const preceding = others.slice(at).filter((other) => !follows(other));
  preceding.reverse().forEach((other) => list.insertBefore(other, row.nextElementSibling));
}

// Updates the up and down buttons (the way without script) to the new order.
function refreshButtons(list) {
  const all = rows(list);
  all.forEach((row, at) => {
    const up = row.querySelector("[data-up]");
    const down = row.querySelector("[data-down]");
    if (up) up.disabled = at === 0;
    if (down) down.disabled = at === all.length - 1;
  });
}

function restore(list, before) {
  const byId = new Map(rows(list).map((row) => [row.dataset.id, row]));
  before.forEach((id) => list.append(byId.get(id)));
  refreshButtons(list);
}

// Requests run one after the other, so that of two quick moves the later order is the one that stays.
function save(list, row, before) {
  const ids = order(list);
  refreshButtons(list);
  const text = describePosition(list, row);
  showStatus(list, text);
  list.saving = (list.saving || Promise.resolve()).then(() => send(list, ids, before, text));
}

async function send(list, ids, before, text) {
  const body = new URLSearchParams(list.dataset.sortableAlso);
  ids.forEach((id) => body.append(list.dataset.sortableName, id));
  const token = document.querySelector('meta[name="csrf-token"]').content;
  try {
    const review = await askForReview(list.dataset.sortable, body);
    if (review !== null && !(await isConfirmed(review, body))) return fail(list, before, "");
    const response = await fetch(list.dataset.sortable, { method: "POST", body, headers: { "X-CSRFToken": token } });
    if (response.ok) return showStatus(list, `${text} ${list.dataset.saved}`);
    fail(list, before, response.status === 409 ? await response.text() : list.dataset.failed);
  } catch {
    fail(list, before, list.dataset.failed);
  }
}

// Shows the review, and adds its token to the request.
function isConfirmed(review, body) {
  return new Promise((resolve) => {
    const confirm = (form) => {
      body.append("reviewed", form.elements.reviewed.value);
      resolve(true);
    };
    showReview(review, confirm, () => resolve(false));
  });
}

function fail(list, before, text) {
  restore(list, before);
  showStatus(list, text, true);
}

function onDown(event) {
  const handle = event.target.closest("[data-sortable] [data-handle]");
  if (!handle || event.button !== 0) return;
  const row = handle.closest("[data-id]");
  const list = row.parentElement;
  drag = { handle, row, list, before: order(list) };
  handle.setPointerCapture(event.pointerId);
  row.classList.add("is-dragged");
}

function onMove(event) {
  if (!drag) return;
  const { list, row } = drag;
  const middle = (other) => other.getBoundingClientRect().top + other.offsetHeight / 2;
  const next = rows(list).find((other) => other !== row && event.clientY < middle(other));
  moveBefore(list, row, next);
  row.scrollIntoView({ block: "nearest" });
}

function onEnd(event) {
  if (!drag) return;
  const { handle, list, row, before } = drag;
  drag = null;
  row.classList.remove("is-dragged");
  if (event.type === "pointercancel") return restore(list, before);
  handle.focus();
  if (order(list).join() !== before.join()) save(list, row, before);
}

function onKey(event) {
  if (event.key === "Escape" && drag) return onEnd({ type: "pointercancel" });
  const step = { ArrowUp: -1, ArrowDown: 1 }[event.key];
  const handle = event.target instanceof Element && event.target.closest("[data-sortable] [data-handle]");
  if (!handle || !step || !event.altKey) return;
  event.preventDefault();
  const row = handle.closest("[data-id]");
  const list = row.parentElement;
  const other = step < 0 ? row.previousElementSibling : row.nextElementSibling;
  if (!other) return showStatus(list, describePosition(list, row));
  const before = order(list);
  moveBefore(list, row, step < 0 ? other : other.nextElementSibling);
  save(list, row, before);
}

export function listen() {
  document.addEventListener("pointerdown", onDown);
  document.addEventListener("pointermove", onMove);
  document.addEventListener("pointerup", onEnd);
  document.addEventListener("pointercancel", onEnd);
  document.addEventListener("keydown", onKey);
}
