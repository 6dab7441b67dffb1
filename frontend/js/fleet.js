// The fleet's boxes: a row's, a column's and the page's own box tick the cells they stand for; a bar counts them.
import { tell } from "./telling.js";

const boxes = (root, more = "") => [...root.querySelectorAll(`[data-pick]${more}`)];

function standsFor(form, box) {
  if ("pickRow" in box.dataset) return boxes(box.closest("tr"));
  if ("pickColumn" in box.dataset) return boxes(form, `[data-column="${CSS.escape(box.dataset.pickColumn)}"]`);
  return boxes(form);
}

function count(form) {
  const chosen = boxes(form, ":checked").length;
  const bar = form.querySelector("[data-pickbar]");
  const words = bar?.querySelector("[data-pick-count]");
  if (!words) return;
  words.textContent = chosen === 1 ? words.dataset.one : words.dataset.many.replace("#", chosen);
  bar.classList.toggle("is-up", chosen > 0);
  // It comes out of hiding with its first count, which nobody would hear.
  if (Number(bar.dataset.count ?? 0) !== chosen) tell(words.textContent);
  bar.dataset.count = chosen;
  form.querySelectorAll("[data-pick-row], [data-pick-column], [data-pick-all]").forEach((box) => {
    const cells = standsFor(form, box);
    const ticked = cells.filter((cell) => cell.checked).length;
    box.checked = cells.length > 0 && ticked === cells.length;
    box.indeterminate = ticked > 0 && ticked < cells.length;
  });
}

function onChange(event) {
  const form = event.target.closest("[data-fleet]");
  if (!form || event.target.type !== "checkbox") return;
  if (!("pick" in event.target.dataset)) {
    standsFor(form, event.target).forEach((box) => (box.checked = event.target.checked));
  }
  count(form);
}

function onClick(event) {
  const form = event.target.closest("[data-pick-none]")?.form;
  if (!form) return;
  boxes(form).forEach((box) => (box.checked = false));
  count(form);
}

// What takes a second or two shows that it is under way, and is not asked for twice.
function onSubmit(event) {
  if (event.defaultPrevented || !event.target.matches("form[data-once]")) return;
  const button = event.target.querySelector("button");
  button.classList.add("is-busy");
  button.setAttribute("aria-busy", "true");
  setTimeout(() => (button.disabled = true));
}

// A page that was left and come back to keeps its ticks.
function recount() {
  document.querySelectorAll("[data-fleet]").forEach(count);
}

export function listen() {
  document.addEventListener("change", onChange);
  document.addEventListener("click", onClick);
  document.addEventListener("submit", onSubmit);
  window.addEventListener("pageshow", recount);
}
