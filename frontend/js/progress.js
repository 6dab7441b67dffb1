// Progress of requests: a bar at the top, busy buttons that cannot be pressed twice, and messages for failed requests.
import { dismiss, message, toast } from "./toasts.js";

// Fast responses show no bar. A form that downloads a file never leaves the page, so its button is released after a while.
const DELAY = 250;
const RELEASE_AFTER = 20_000;
let running = 0;
let timer = 0;

function bar() {
  return document.querySelector(".dr-progress") ?? document.body.appendChild(createBar());
}

function createBar() {
  const bar = document.createElement("div");
  bar.className = "dr-progress";
  bar.hidden = true;
  bar.setAttribute("aria-hidden", "true");
  return bar;
}

export function begin() {
  running += 1;
  if (running === 1) timer = setTimeout(() => (bar().hidden = false), DELAY);
}

export function end() {
  running = Math.max(0, running - 1);
  if (running) return;
  clearTimeout(timer);
  bar().hidden = true;
}

// --- forms -----------------------------------------------------------------------------------------------

function leavesPage(event) {
  const form = event.target;
  const target = event.submitter?.formTarget || form.target;
  return form.method !== "dialog" && !["_blank", "_top"].includes(target);
}

function onSubmit(event) {
  if (event.defaultPrevented || !leavesPage(event)) return;
  const form = event.target;
  if ("sent" in form.dataset) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "";
  form.setAttribute("aria-busy", "true");
  event.submitter?.setAttribute("aria-busy", "true");
  begin();
  setTimeout(() => "sent" in form.dataset && release(form), RELEASE_AFTER);
}

function release(form) {
  delete form.dataset.sent;
  form.removeAttribute("aria-busy");
  form.querySelectorAll("[aria-busy]").forEach((one) => one.removeAttribute("aria-busy"));
  end();
}

// A page restored from the back/forward cache would still be busy.
function onShow(event) {
  if (event.persisted) document.querySelectorAll("form[data-sent]").forEach(release);
}

// --- fragments -------------------------------------------------------------------------------------------

// Polling elements must not show the bar on every request.
function isQuiet(element) {
  return element.closest("[data-quiet]") || /\bevery\b/.test(element.getAttribute("hx-trigger") ?? "");
}

function onBefore(event) {
  const { elt, target } = event.detail;
  if (isQuiet(elt)) return;
  begin();
  target?.setAttribute("aria-busy", "true");
}

function onAfter(event) {
  const { elt, target, successful, xhr } = event.detail;
  if (successful && !isSignedOut(xhr.responseURL)) dismiss("request");
  if (isQuiet(elt)) return;
  end();
  target?.removeAttribute("aria-busy");
}

export function signInUrl() {
  const here = location.pathname + location.search;
  return `${message("login")}?next=${encodeURIComponent(here)}`;
}

export function isSignedOut(address) {
  return Boolean(address) && new URL(address, location.href).pathname === message("login");
}

export function showSignedOut() {
  toast({ tone: "warning", text: message("ended"), signIn: signInUrl(), key: "request" });
}

// When the session has ended the response is the sign-in page: do not swap it in as a fragment.
function onSwap(event) {
  if (!isSignedOut(event.detail.xhr?.responseURL)) return;
  event.detail.shouldSwap = false;
  showSignedOut();
}

function messageForStatus(status) {
  if (status >= 500) return message("broken");
  if (status === 403 || status === 401) return message("refused");
  if (status === 404 || status === 410) return message("missing");
  return status === 429 ? message("busy") : message("broken");
}

function retry(detail) {
  const { verb, path, formData, target } = detail.requestConfig;
  return () => window.htmx.ajax(verb, path, { source: detail.elt, target, values: formData });
}

// The CSRF token ends with the session, so a 401 or 403 may only mean that the session has ended.
async function hasSessionEnded(status) {
  if (status !== 403 && status !== 401) return false;
  try {
    return isSignedOut((await fetch(location.href, { method: "HEAD" })).url);
  } catch {
    return false;
  }
}

async function onError(event) {
  const { elt, xhr } = event.detail;
  if (isSignedOut(xhr?.responseURL) || (await hasSessionEnded(xhr?.status))) return showSignedOut();
  const text = xhr?.status ? messageForStatus(xhr.status) : message("offline");
  toast({ tone: "error", text, key: "request", again: isQuiet(elt) ? undefined : retry(event.detail) });
}

export function listen() {
  document.addEventListener("submit", onSubmit);
  window.addEventListener("pageshow", onShow);
  document.addEventListener("htmx:beforeRequest", onBefore);
  document.addEventListener("htmx:afterRequest", onAfter);
  document.addEventListener("htmx:beforeSwap", onSwap);
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, onError);
}
