// Signs of work: a thin bar at the top, busy buttons that cannot be pressed twice, and failed requests told in words.
import { dismiss, toast, words } from "./toasts.js";

// Quick answers need no bar; a form whose answer is a file never leaves the page, so its button comes back.
const DELAY = 250;
const LONGEST = 20_000;
let running = 0;
let timer = 0;

function bar() {
  return document.querySelector(".dr-progress") ?? document.body.appendChild(made());
}

function made() {
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
  setTimeout(() => "sent" in form.dataset && release(form), LONGEST);
}

function release(form) {
  delete form.dataset.sent;
  form.removeAttribute("aria-busy");
  form.querySelectorAll("[aria-busy]").forEach((one) => one.removeAttribute("aria-busy"));
  end();
}

// A page that comes back from the browser's memory is as it was left: busy.
function onShow(event) {
  if (event.persisted) document.querySelectorAll("form[data-sent]").forEach(release);
}

// --- fragments -------------------------------------------------------------------------------------------

// What asks by itself must not flash a bar each second.
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

export function signIn() {
  const here = location.pathname + location.search;
  return `${words("login")}?next=${encodeURIComponent(here)}`;
}

export function isSignedOut(address) {
  return Boolean(address) && new URL(address, location.href).pathname === words("login");
}

export function tellSignedOut() {
  toast({ tone: "warning", text: words("ended"), signIn: signIn(), key: "request" });
}

// The log-in page is an answer like any other: it must not be put in the place of a fragment.
function onSwap(event) {
  if (!isSignedOut(event.detail.xhr?.responseURL)) return;
  event.detail.shouldSwap = false;
  tellSignedOut();
}

function wordsFor(status) {
  if (status >= 500) return words("broken");
  if (status === 403 || status === 401) return words("refused");
  if (status === 404 || status === 410) return words("missing");
  return status === 429 ? words("busy") : words("broken");
}

function again(detail) {
  const { verb, path, formData, target } = detail.requestConfig;
  return () => window.htmx.ajax(verb, path, { source: detail.elt, target, values: formData });
}

// A form's token goes with the session, so that a refusal may only mean that the session has ended.
async function hasEnded(status) {
  if (status !== 403 && status !== 401) return false;
  try {
    return isSignedOut((await fetch(location.href, { method: "HEAD" })).url);
  } catch {
    return false;
  }
}

async function onFault(event) {
  const { elt, xhr } = event.detail;
  if (isSignedOut(xhr?.responseURL) || (await hasEnded(xhr?.status))) return tellSignedOut();
  const text = xhr?.status ? wordsFor(xhr.status) : words("offline");
  toast({ tone: "error", text, key: "request", again: isQuiet(elt) ? undefined : again(event.detail) });
}

export function listen() {
  document.addEventListener("submit", onSubmit);
  window.addEventListener("pageshow", onShow);
  document.addEventListener("htmx:beforeRequest", onBefore);
  document.addEventListener("htmx:afterRequest", onAfter);
  document.addEventListener("htmx:beforeSwap", onSwap);
  for (const name of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) document.addEventListener(name, onFault);
}
