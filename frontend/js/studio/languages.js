// Editor languages by the value of data-editor.
import { markdownKeymap, markdownLanguage } from "@codemirror/lang-markdown";
import { yaml } from "@codemirror/lang-yaml";
import { Language } from "@codemirror/language";
import { keymap } from "@codemirror/view";
import { styleTags, tags } from "@lezer/highlight";

// Prompts are Markdown inside tags: tags are highlighted, and their content is still parsed as Markdown.
const parser = markdownLanguage.parser.configure({
  props: [styleTags({ HTMLTag: tags.tagName })],
  remove: ["HTMLBlock"],
});
const prompts = new Language(markdownLanguage.data, parser, [], "markdown");

export function language(name) {
  if (name === "markdown") return [prompts, keymap.of(markdownKeymap)];
  return name === "yaml" ? yaml() : [];
}
