// Keyboard navigation in lists and boards: the row's link gets the focus, so that Enter opens it natively.
// The help dialog's table of shortcuts defines which elements are rows.
function selector() {
  return document.querySelector('#dr-help [data-does="next"]')?.dataset.when ?? "[data-row]";
}

function rows() {
  return [...document.querySelectorAll(selector())].filter((row) => row.checkVisibility());
}

function currentRow() {
  return document.activeElement?.closest(selector()) ?? document.querySelector("[data-row-now]");
}

function linkOf(row) {
  return row.querySelector("[data-row-link], .dr-row-link, .dr-card-link, th a[href], a[href]");
}

function focusRow(row) {
  document.querySelectorAll("[data-row-now]").forEach((one) => delete one.dataset.rowNow);
  row.dataset.rowNow = "";
  const link = linkOf(row) ?? row;
  if (link === row && !row.hasAttribute("tabindex")) row.tabIndex = -1;
  link.focus();
  row.scrollIntoView({ block: "nearest" });
}

export function moveRow(step) {
  const all = rows();
  if (!all.length) return false;
  const at = all.indexOf(currentRow());
  focusRow(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))]);
  return true;
}

export function openRow() {
  const link = currentRow() && linkOf(currentRow());
  link?.click();
  return Boolean(link);
}

// Space keeps its native meaning on buttons, inputs and summaries.
export function tickRow(event) {
  if (event.key === " " && event.target.closest("button, input, summary, [role=button]")) return false;
  const box = currentRow()?.querySelector("input[type=checkbox]");
  box?.click();
  return Boolean(box);
}
