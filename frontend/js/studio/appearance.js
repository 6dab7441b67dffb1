// Theme of the editor. All colours are the page's CSS variables, which reach into the shadow root and follow the theme.
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorView } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const BUTTON = {
  minHeight: "1.625rem",
  padding: "0 0.5rem",
  border: "1px solid var(--dr-line)",
  borderRadius: "0.375rem",
  background: "var(--dr-raised)",
  color: "inherit",
  font: "inherit",
  cursor: "pointer",
};

const theme = EditorView.theme({
  "&": {
    height: "var(--editor-height, auto)",
    minHeight: "var(--editor-min, 6rem)",
    maxHeight: "var(--editor-max, 70dvh)",
    background: "transparent",
    color: "var(--color-base-content)",
    fontSize: "var(--editor-size, 0.8125rem)",
  },
  "&.cm-focused": { outline: "none" },
  ".cm-scroller": { overflow: "auto", fontFamily: "var(--font-mono)", lineHeight: "1.6" },
  ".cm-content": { padding: "0.5rem 0", caretColor: "var(--color-primary)" },
  ".cm-line": { padding: "0 0.75rem" },
  ".cm-content ::selection": { background: "color-mix(in oklab, var(--color-primary) 28%, transparent)" },
  ".cm-placeholder": { color: "var(--dr-muted)" },
  ".cm-specialChar": {
    padding: "0 0.25rem",
    border: "1px solid var(--dr-error)",
    borderRadius: "0.25rem",
    background: "color-mix(in oklab, var(--dr-error) 12%, transparent)",
    color: "var(--dr-error)",
    fontSize: "0.6875rem",
  },
  ".cm-panels": { background: "var(--dr-sunken)", color: "inherit", fontFamily: "var(--font-sans)" },
  ".cm-panels-top": { borderBottom: "1px solid var(--dr-line)" },
  ".cm-search": { display: "flex", flexWrap: "wrap", alignItems: "center", gap: "0.375rem", padding: "0.5rem 2.25rem 0.5rem 0.75rem" },
  ".cm-search br": { flexBasis: "100%", height: "0" },
  ".cm-search label": { display: "inline-flex", alignItems: "center", gap: "0.25rem", minHeight: "1.5rem", fontSize: "0.75rem" },
  ".cm-search input[type=checkbox]": { width: "1rem", height: "1rem", margin: "0" },
  ".cm-textfield": { ...BUTTON, padding: "0 0.5rem", borderColor: "var(--dr-line-strong)", fontSize: "0.75rem", cursor: "text" },
  ".cm-textfield::placeholder": { color: "var(--dr-muted)", opacity: "1" },
  ".cm-button": { ...BUTTON, backgroundImage: "none", fontSize: "0.75rem" },
  ".cm-panel.cm-search [name=close]": { top: "0.375rem", right: "0.5rem", width: "1.625rem", height: "1.625rem", fontSize: "1.125rem", color: "inherit" },
  ".cm-panels :focus-visible": { outline: "2px solid var(--color-primary)", outlineOffset: "1px" },
  ".cm-searchMatch": { background: "color-mix(in oklab, var(--color-accent) 38%, transparent)" },
  ".cm-searchMatch-selected": { background: "color-mix(in oklab, var(--color-accent) 75%, transparent)", color: "var(--color-base-content)" },
});

const code = { color: "var(--dr-info)" };
const highlight = HighlightStyle.define([
  { tag: tags.heading, color: "var(--dr-link)", fontWeight: "650" },
  { tag: tags.strong, fontWeight: "700" },
  { tag: tags.emphasis, fontStyle: "italic" },
  { tag: tags.strikethrough, textDecoration: "line-through" },
  { tag: [tags.monospace, tags.string, tags.number, tags.bool], ...code },
  { tag: [tags.link, tags.url], color: "var(--dr-link)", textDecoration: "underline" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName), tags.labelName], color: "var(--dr-accent)" },
  { tag: [tags.quote, tags.comment], color: "var(--dr-muted)" },
  { tag: [tags.angleBracket, tags.tagName], color: "var(--dr-accent)" },
  { tag: [tags.processingInstruction, tags.contentSeparator, tags.punctuation, tags.separator], color: "var(--dr-muted)" },
  { tag: tags.list, color: "inherit" },
]);

export const appearance = [theme, syntaxHighlighting(highlight)];
