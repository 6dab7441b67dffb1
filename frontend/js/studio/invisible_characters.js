// Shows invisible characters as boxes with their code point, as everywhere else in the product.
import { highlightSpecialChars } from "@codemirror/view";

// Beyond the editor's own list: fillers, word joiners, variation letters of the tag block.
const MORE = /[\u115f\u1160\u180e\u2060-\u206f\u3164\uffa0\u{e0000}-\u{e007f}]/gu;

function box(code, description) {
  const element = document.createElement("span");
  const point = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  element.className = "cm-specialChar";
  element.textContent = point;
  element.title = description || point;
  return element;
}

export const invisibleCharacters = highlightSpecialChars({ render: box, addSpecialChars: MORE });
