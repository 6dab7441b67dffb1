// Small behaviours of server-rendered pages. Events are delegated, so that swapped-in HTML has them too.
import { announce } from "./announce.js";
import { confirmSubmit } from "./confirm.js";
import { loadItem, storeItem } from "./storage.js";
import { message, toast } from "./toasts.js";

function closeMenus(except) {
  document.querySelectorAll("details.dr-menu[open]").forEach((menu) => {
    if (menu !== except) menu.open = false;
  });
}

function onClick(event) {
  closeMenus(event.target.closest("details.dr-menu"));
  const closer = event.target.closest("[data-close]");
  if (closer) closeElement(closer.closest("dialog, .dr-alert"));
  if (event.target instanceof HTMLDialogElement && event.target.open) event.target.close();
  const copy = event.target.closest("[data-copy]");
  if (copy) copyFrom(copy);
}

// Removing the focused message would lose the focus, so it moves to the main element.
function closeElement(closed) {
  const holdsFocus = closed.contains(document.activeElement);
  if (closed instanceof HTMLDialogElement) return closed.close();
  closed.remove();
  if (holdsFocus) document.getElementById("main")?.focus({ preventScroll: true });
}

async function copyFrom(button) {
  const source = document.getElementById(button.dataset.copy);
  const label = button.querySelector("[data-copy-label]") || button;
  if (label.dataset.before) return;
  try {
    await navigator.clipboard.writeText(source.value ?? source.dataset.text ?? source.textContent);
  } catch {
    source.select?.();
    return toast({ tone: "warning", text: message("uncopied"), key: "copy" });
  }
  label.dataset.before = label.textContent;
  label.textContent = message("copied");
  announce(message("copied"));
  setTimeout(() => restore(label), 1600);
}

function restore(label) {
  label.textContent = label.dataset.before;
  delete label.dataset.before;
}

function onKey(event) {
  if (event.key !== "Escape") return;
  const menu = document.querySelector("details.dr-menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
}

function onSubmit(event) {
  const form = event.target;
  const question = event.submitter?.dataset.confirm || form.dataset.confirm;
  if (!question || form.dataset.confirmed !== undefined) {
    delete form.dataset.confirmed;
    delete form.dataset.dirty;
    return;
  }
  event.preventDefault();
  // HTMX listens on the form itself and must not send it either.
  event.stopImmediatePropagation();
  confirmSubmit(form, event.submitter, question);
}

// A form marked data-guard warns before unsaved input is lost.
function onInput(event) {
  const form = event.target.form;
  if (form && "guard" in form.dataset) form.dataset.dirty = "";
}

// A list's filters apply when a choice changes. The next page puts the focus back on the same control.
const FILTER_FOCUS = "dr-filter-focus";

function onChange(event) {
  const form = event.target.form;
  if (!form?.matches("form[data-auto]") || !event.target.matches("select, input[type=checkbox]")) return;
  applyFilters(form, event.target.name);
}

// Typed values of a filter panel apply when the focus leaves its fields, so that a range of two dates is
// one request. Enter applies them too.
function onFocusOut(event) {
  const field = event.target;
  if (!field.matches?.(".dr-filter-panel[data-auto] input") || field.value === field.defaultValue) return;
  if (field.form.contains(event.relatedTarget) || !field.form.checkValidity()) return;
  applyFilters(field.form, field.name);
}

function applyFilters(form, name) {
  storeItem(FILTER_FOCUS, `${location.pathname} ${name}`);
  form.requestSubmit();
}

function restoreFilterFocus() {
  const [path, name] = (loadItem(FILTER_FOCUS) ?? "").split(" ");
  storeItem(FILTER_FOCUS, null);
  if (path === location.pathname) document.querySelector(`form[data-auto] [name="${CSS.escape(name)}"]`)?.focus();
}

function onLeave(event) {
  if (document.querySelector("form[data-dirty]")) event.preventDefault();
}

// HTMX sends the token as a header; the cookie is not readable from here.
function onHtmxRequest(event) {
  const token = document.querySelector('meta[name="csrf-token"]');
  if (token) event.detail.headers["X-CSRFToken"] = token.content;
}

// Cancelling a passkey prompt is no error of the page: show a message instead of logging an error.
function onAllauthError(event) {
  event.preventDefault();
  const region = document.getElementById("dr-alerts");
  const template = document.getElementById("dr-passkey-error");
  if (region && template) region.replaceChildren(template.content.cloneNode(true));
}

// On a wide screen the sidebar is a column of the page; left open as a popover, its column would be empty.
function onWideScreen(event) {
  const sidebar = document.getElementById("dr-sidebar");
  if (event.matches && sidebar?.matches(":popover-open")) sidebar.hidePopover();
}

export function listen() {
  matchMedia("(width >= 64rem)").addEventListener("change", onWideScreen);
  document.addEventListener("click", onClick);
  // Leaving a menu by keyboard closes it.
  document.addEventListener("focusin", (event) => closeMenus(event.target.closest("details.dr-menu")));
  document.addEventListener("keydown", onKey);
  document.addEventListener("submit", onSubmit, true);
  document.addEventListener("input", onInput);
  document.addEventListener("change", onChange);
  document.addEventListener("focusout", onFocusOut);
  restoreFilterFocus();
  document.addEventListener("htmx:configRequest", onHtmxRequest);
  document.addEventListener("allauth.error", onAllauthError);
  window.addEventListener("beforeunload", onLeave);
}
