// Toasts: drawn by the server with a page, brought by a fragment (dr:toast), or made here when a request fails.
const SECONDS = 8;
// By then a screen reader hears what changes in a new page.
const ARRIVAL = 400;
const MOST = 4;
const ICONS = { success: "success", error: "error", warning: "warning" };

function place() {
  return document.getElementById("dr-alerts");
}

export function words(name) {
  return document.getElementById("dr-toast")?.dataset[name] ?? "";
}

function hidden(name, value) {
  const field = document.createElement("input");
  Object.assign(field, { type: "hidden", name, value });
  return field;
}

// Parts that are not asked for are taken out; a toast that holds an action never fades.
function fill(toast, { undo, fields = {}, again, signIn }) {
  const parts = Object.fromEntries([...toast.querySelectorAll("[data-part]")].map((part) => [part.dataset.part, part]));
  if (undo) {
    parts.undo.action = undo;
    parts.undo.append(...Object.entries(fields).map(([name, value]) => hidden(name, value)));
  } else parts.undo.remove();
  if (again) {
    parts.again.addEventListener("click", () => {
      toast.remove();
      again();
    });
  } else parts.again.remove();
  if (signIn) parts["sign-in"].href = signIn;
  else parts["sign-in"].remove();
}

// With a key there is at most one of its kind: a poll that fails each second says so once.
export function toast(said) {
  const template = document.getElementById("dr-toast");
  if (!template || !place()) return;
  const made = template.content.firstElementChild.cloneNode(true);
  const tone = said.tone in ICONS ? said.tone : "info";
  made.classList.add(`dr-alert-${tone}`);
  made.querySelector("use").setAttribute("href", `${template.dataset.sprite}#${ICONS[tone] ?? "info"}`);
  made.querySelector(".dr-alert-body").textContent = said.text;
  describe(made);
  fill(made, said);
  if (!said.undo && !said.again && !said.signIn && !["error", "warning"].includes(tone)) made.dataset.fades = "";
  if (said.key) {
    if (!said.again && isSaid(said)) return;
    dismiss(said.key);
    made.dataset.toast = said.key;
  }
  place().append(made);
  const old = [...place().children];
  old.slice(0, Math.max(0, old.length - MOST)).forEach((one) => one.remove());
}

// “Undo” and “Dismiss” say what they undo and dismiss.
let described = 0;
function describe(toast) {
  const id = `dr-toast-words-${(described += 1)}`;
  toast.querySelector(".dr-alert-body").id = id;
  toast.querySelectorAll("button, a").forEach((one) => one.setAttribute("aria-describedby", id));
}

// What stands in a page as it comes is not read aloud; put in again, it is.
function repeat() {
  const region = place();
  if (!region?.children.length || region.contains(document.activeElement)) return;
  [...region.children].forEach((one) => (one.dataset.heard = ""));
  region.append(...region.children);
}

function isSaid({ key, text }) {
  const told = place().querySelector(`[data-toast="${key}"] .dr-alert-body`);
  return told?.textContent === text;
}

export function dismiss(key) {
  place()?.querySelectorAll(`[data-toast="${key}"]`).forEach((one) => one.remove());
}

// Nothing fades while it is pointed at, holds the focus, or lies in a tab that nobody sees.
function tick() {
  const region = place();
  if (!region || document.hidden || region.matches(":hover, :focus-within")) return;
  region.querySelectorAll("[data-fades]").forEach((one) => {
    one.dataset.fades = String(Number(one.dataset.fades) + 1);
    if (Number(one.dataset.fades) >= SECONDS) one.remove();
  });
}

export function listen() {
  place()?.querySelectorAll(":scope > .dr-alert").forEach(describe);
  setTimeout(repeat, ARRIVAL);
  document.addEventListener("dr:toast", (event) => (event.detail.toasts ?? [event.detail]).forEach(toast));
  setInterval(tick, 1000);
}
