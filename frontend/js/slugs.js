// Fill the slug of a new record from its name, until someone edits the slug.
export function toSlug(name) {
  return name
    .normalize("NFKD")
    .replace(/[\u0300-\u036f]/g, "")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "");
}

function onInput(event) {
  const form = event.target.form;
  const slug = form?.elements.namedItem("slug");
  if (!(slug instanceof HTMLInputElement) || slug.readOnly || slug.disabled) return;
  if (event.target === slug) return void (slug.dataset.edited = "");
  if (event.target.name !== "name" || slug.dataset.edited !== undefined) return;
  if (slug.dataset.filled === undefined && slug.value) return;
  slug.dataset.filled = "";
  const most = slug.maxLength > 0 ? slug.maxLength : 64;
  slug.value = toSlug(event.target.value).slice(0, most).replace(/-+$/, "");
}

export function listen() {
  document.addEventListener("input", onInput);
}
