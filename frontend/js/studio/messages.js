// Messages shown by scripts; the page supplies them, so that they are translated with it.
export function message(name, values = {}) {
  for (const template of document.querySelectorAll("template[data-words]")) {
    const element = template.content.querySelector(`[data-say="${name}"]`);
    if (element) return fillPlaceholders(element.textContent.trim(), values);
  }
  return "";
}

function fillPlaceholders(template, values) {
  return Object.entries(values).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value), template);
}

// Translations of CodeMirror's own phrases, such as those of its search panel.
export function editorPhrases() {
  const templates = [...document.querySelectorAll("template[data-words]")];
  const elements = templates.flatMap((template) => [...template.content.querySelectorAll("[data-phrase]")]);
  return Object.fromEntries(elements.map((one) => [one.dataset.phrase, one.textContent.trim()]));
}
