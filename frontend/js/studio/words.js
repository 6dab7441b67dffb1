// Sentences that scripts say; the page brings them, so that they are translated with it.
export function words(name, facts = {}) {
  for (const template of document.querySelectorAll("template[data-words]")) {
    const found = template.content.querySelector(`[data-say="${name}"]`);
    if (found) return filled(found.textContent.trim(), facts);
  }
  return "";
}

function filled(sentence, facts) {
  return Object.entries(facts).reduce((text, [name, value]) => text.replaceAll(`{${name}}`, value), sentence);
}

// The editor's own words, such as those of its search panel, in ours.
export function phrases() {
  const templates = [...document.querySelectorAll("template[data-words]")];
  const said = templates.flatMap((template) => [...template.content.querySelectorAll("[data-phrase]")]);
  return Object.fromEntries(said.map((one) => [one.dataset.phrase, one.textContent.trim()]));
}
