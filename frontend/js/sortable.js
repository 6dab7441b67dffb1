// Lists that people put in order: by dragging a handle, or by Alt and an arrow key on it. Saved at once, said aloud.
const rows = (list) => [...list.querySelectorAll(":scope > [data-id]")];
const order = (list) => rows(list).map((row) => row.dataset.id);

let drag = null;

function said(list) {
  return list.parentElement.querySelector("[data-sortable-said]");
}

function say(list, words, isError = false) {
  const place = said(list);
  if (!place) return;
  place.textContent = words;
  place.classList.toggle("is-error", isError);
}

function place(list, row) {
  const all = rows(list);
  const words = { title: row.dataset.title, place: all.indexOf(row) + 1, count: all.length };
  return list.dataset.moved.replace(/%(\w+)%/g, (_, name) => words[name]);
}

// The others make way: an element that is moved itself loses the pointer and the focus.
function put(list, row, next) {
  const others = rows(list).filter((other) => other !== row);
  const at = next ? others.indexOf(next) : others.length;
  const follows = (other) => row.compareDocumentPosition(other) & Node.DOCUMENT_POSITION_FOLLOWING;
  others.slice(0, at).filter(follows).forEach((other) => list.insertBefore(other, row));
  const late = others.slice(at).filter((other) => !follows(other));
  late.reverse().forEach((other) => list.insertBefore(other, row.nextElementSibling));
}

// The buttons that work without script stay true to the new order.
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

// One after the other: of two moves in haste the later order must be the one that stays.
function save(list, row, before) {
  const wanted = order(list);
  refreshButtons(list);
  const words = place(list, row);
  say(list, words);
  list.saving = (list.saving || Promise.resolve()).then(() => send(list, wanted, before, words));
}

async function send(list, wanted, before, words) {
  const body = new URLSearchParams(list.dataset.sortableAlso);
  wanted.forEach((id) => body.append(list.dataset.sortableName, id));
  const token = document.querySelector('meta[name="csrf-token"]').content;
  try {
    const answer = await fetch(list.dataset.sortable, { method: "POST", body, headers: { "X-CSRFToken": token } });
    if (answer.ok) return say(list, `${words} ${list.dataset.saved}`);
    fail(list, before, answer.status === 409 ? await answer.text() : list.dataset.failed);
  } catch {
    fail(list, before, list.dataset.failed);
  }
}

function fail(list, before, words) {
  restore(list, before);
  say(list, words, true);
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
  put(list, row, next);
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
  if (!other) return say(list, place(list, row));
  const before = order(list);
  put(list, row, step < 0 ? other : other.nextElementSibling);
  save(list, row, before);
}

export function listen() {
  document.addEventListener("pointerdown", onDown);
  document.addEventListener("pointermove", onMove);
  document.addEventListener("pointerup", onEnd);
  document.addEventListener("pointercancel", onEnd);
  document.addEventListener("keydown", onKey);
}
