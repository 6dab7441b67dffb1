// Toasts: rendered by the server with a page, sent with a fragment (dr:toast), or created here when a request fails.
const SECONDS = 8;
// Screen readers ignore changes made right after a page has loaded.
const PAGE_LOAD_DELAY = 400;
const MAX_TOASTS = 4;
const ICONS = { success: "success", error: "error", warning: "warning" };

function alertRegion() {
  return document.getElementById("dr-alerts");
}

export function message(name) {
  return document.getElementById("dr-toast")?.dataset[name] ?? "";
}

function hidden(name, value) {
  const field = document.createElement("input");
  Object.assign(field, { type: "hidden", name, value });
  return field;
}

// Removes the template's unused actions; a toast with an action never fades.
function addActions(toast, { undo, fields = {}, again, signIn }) {
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

// At most one toast per key is shown: a poll that fails each second shows one message.
export function toast(options) {
  const template = document.getElementById("dr-toast");
  if (!template || !alertRegion()) return;
  const element = template.content.firstElementChild.cloneNode(true);
  const tone = options.tone in ICONS ? options.tone : "info";
  element.classList.add(`dr-alert-${tone}`);
  element.querySelector("use").setAttribute("href", `${template.dataset.sprite}#${ICONS[tone] ?? "info"}`);
  element.querySelector(".dr-alert-body").textContent = options.text;
  describe(element);
  addActions(element, options);
  if (!options.undo && !options.again && !options.signIn && !["error", "warning"].includes(tone)) element.dataset.fades = "";
  if (options.key) {
    if (!options.again && isShown(options)) return;
    dismiss(options.key);
    element.dataset.toast = options.key;
  }
  alertRegion().append(element);
  const old = [...alertRegion().children];
  old.slice(0, Math.max(0, old.length - MAX_TOASTS)).forEach((one) => one.remove());
}

// Gives “Undo” and “Dismiss” the toast's text as their accessible description.
let described = 0;
function describe(toast) {
  const id = `dr-toast-words-${(described += 1)}`;
  toast.querySelector(".dr-alert-body").id = id;
  toast.querySelectorAll("button, a").forEach((one) => one.setAttribute("aria-describedby", id));
}

// Screen readers do not announce toasts that arrive with the page; inserting them again makes them do so.
function reinsert() {
  const region = alertRegion();
  if (!region?.children.length || region.contains(document.activeElement)) return;
  [...region.children].forEach((one) => (one.dataset.heard = ""));
  region.append(...region.children);
}

function isShown({ key, text }) {
  const body = alertRegion().querySelector(`[data-toast="${key}"] .dr-alert-body`);
  return body?.textContent === text;
}

export function dismiss(key) {
  alertRegion()?.querySelectorAll(`[data-toast="${key}"]`).forEach((one) => one.remove());
}

// Nothing fades while it is hovered, has the focus, or the tab is in the background.
function fade() {
  const region = alertRegion();
  if (!region || document.hidden || region.matches(":hover, :focus-within")) return;
  region.querySelectorAll("[data-fades]").forEach((one) => {
    one.dataset.fades = String(Number(one.dataset.fades) + 1);
    if (Number(one.dataset.fades) >= SECONDS) one.remove();
  });
}

export function listen() {
  alertRegion()?.querySelectorAll(":scope > .dr-alert").forEach(describe);
  setTimeout(reinsert, PAGE_LOAD_DELAY);
  document.addEventListener("dr:toast", (event) => (event.detail.toasts ?? [event.detail]).forEach(toast));
  setInterval(fade, 1000);
}
