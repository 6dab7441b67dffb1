// Rows of lists and boards under the keyboard: the focus rests on a row's link, so that Enter opens it by itself.
// What counts as a row stands in the table of shortcuts.
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

function restOn(row) {
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
  restOn(all[at < 0 ? (step > 0 ? 0 : all.length - 1) : Math.min(all.length - 1, Math.max(0, at + step))]);
  return true;
}

export function openRow() {
  const link = currentRow() && linkOf(currentRow());
  link?.click();
  return Boolean(link);
}

// Space on a button, a box or a summary is theirs.
export function tickRow(event) {
  if (event.key === " " && event.target.closest("button, input, summary, [role=button]")) return false;
  const box = currentRow()?.querySelector("input[type=checkbox]");
  box?.click();
  return Boolean(box);
}
