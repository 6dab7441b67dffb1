// Languages by the word in data-editor.
import { markdownKeymap, markdownLanguage } from "@codemirror/lang-markdown";
import { yaml } from "@codemirror/lang-yaml";
import { Language } from "@codemirror/language";
import { keymap } from "@codemirror/view";
import { styleTags, tags } from "@lezer/highlight";

// Prompts are Markdown with tags around it: a tag is coloured, and what it holds is still read as Markdown.
const parser = markdownLanguage.parser.configure({
  props: [styleTags({ HTMLTag: tags.tagName })],
  remove: ["HTMLBlock"],
});
const prompts = new Language(markdownLanguage.data, parser, [], "markdown");

export function language(name) {
  if (name === "markdown") return [prompts, keymap.of(markdownKeymap)];
  return name === "yaml" ? yaml() : [];
}
