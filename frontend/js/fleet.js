// Checkboxes of the fleet matrix: the boxes of a row, a column and the page set their cells; a bar shows the count.
import { markActionBar } from "./action_bar.js";
import { announce } from "./announce.js";

const boxes = (root, selector = "") => [...root.querySelectorAll(`[data-pick]${selector}`)];

function cellsOf(form, box) {
  if ("pickRow" in box.dataset) return boxes(box.closest("tr"));
  if ("pickColumn" in box.dataset) return boxes(form, `[data-column="${CSS.escape(box.dataset.pickColumn)}"]`);
  return boxes(form);
}

function count(form) {
  const chosen = boxes(form, ":checked").length;
  const bar = form.querySelector("[data-pickbar]");
  const label = bar?.querySelector("[data-pick-count]");
  if (!label) return;
  label.textContent = chosen === 1 ? label.dataset.one : label.dataset.many.replace("#", chosen);
  bar.classList.toggle("is-up", chosen > 0);
  markActionBar();
  // Announced separately: the bar is unhidden together with its first count, which screen readers do not announce.
  if (Number(bar.dataset.count ?? 0) !== chosen) announce(label.textContent);
  bar.dataset.count = chosen;
  form.querySelectorAll("[data-pick-row], [data-pick-column], [data-pick-all]").forEach((box) => {
    const cells = cellsOf(form, box);
    const ticked = cells.filter((cell) => cell.checked).length;
    box.checked = cells.length > 0 && ticked === cells.length;
    box.indeterminate = ticked > 0 && ticked < cells.length;
  });
}

function onChange(event) {
  const form = event.target.closest("[data-fleet]");
  if (!form || event.target.type !== "checkbox") return;
  if (!("pick" in event.target.dataset)) {
    cellsOf(form, event.target).forEach((box) => (box.checked = event.target.checked));
  }
  count(form);
}

function onClick(event) {
  const form = event.target.closest("[data-pick-none]")?.form;
  if (!form) return;
  boxes(form).forEach((box) => (box.checked = false));
  count(form);
}

// Slow actions show a busy button and cannot be submitted twice.
function onSubmit(event) {
  if (event.defaultPrevented || !event.target.matches("form[data-once]")) return;
  const button = event.target.querySelector("button");
  button.classList.add("is-busy");
  button.setAttribute("aria-busy", "true");
  setTimeout(() => (button.disabled = true));
}

// The browser restores the boxes on back navigation.
function recount() {
  document.querySelectorAll("[data-fleet]").forEach(count);
}

export function listen() {
  document.addEventListener("change", onChange);
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
  window.addEventListener("pageshow", recount);
}
