// CodeMirror over a textarea marked data-editor; the form still sends the textarea.
// In a shadow root its styles are constructed sheets, which the content security policy allows.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { appearance } from "./appearance.js";
import { mirrorField } from "./field.js";
import { invisibleCharacters } from "./invisible_characters.js";
import { language } from "./languages.js";
import { editorPhrases, message } from "./messages.js";
import { replaceSelection } from "./replace_selection.js";
import { textDirection } from "./text_direction.js";
import { syncTextarea } from "./transfer.js";

const views = new WeakMap();
// Ctrl-Enter belongs to the page.
const keys = [...defaultKeymap.filter((binding) => binding.key !== "Mod-Enter"), ...historyKeymap, ...searchKeymap];

export function viewOf(textarea) {
  return views.get(textarea);
}

export function mountAll(within) {
  within.querySelectorAll("textarea[data-editor]").forEach((textarea) => views.has(textarea) || mount(textarea));
}

function mount(textarea) {
  const host = document.createElement("div");
  host.className = "dr-editor";
  host.style.setProperty("--rows", textarea.rows);
  const root = host.attachShadow({ mode: "open" });
  const field = mirrorField(textarea, host);
  const view = new EditorView({ root, parent: root, state: EditorState.create({ doc: textarea.value, extensions: extensions(textarea, field) }) });
  views.set(textarea, view);
  view.setTabFocusMode(true);
  textarea.after(host);
  textarea.hidden = true;
  field.follow(view);
  host.addEventListener("keydown", stopLetters);
}

function extensions(textarea, field) {
  return [
    // Before the language's own keys, so that Tab and Escape stay ours.
    keymap.of([{ key: "Ctrl-m", run: toggleTab }]),
    language(textarea.dataset.editor),
    history(),
    EditorState.phrases.of(editorPhrases()),
    replaceSelection,
    search({ top: true }),
    keymap.of([...keys, indentWithTab]),
    EditorView.lineWrapping,
    textDirection,
    invisibleCharacters,
    appearance,
    textarea.placeholder ? placeholder(textarea.placeholder) : [],
    field.extension,
    syncTextarea(textarea),
  ];
}

// Tab leaves the editor until the user switches it to indent.
function toggleTab(view) {
  view.setTabFocusMode();
  const leaves = view.inputState.tabFocusMode > -1;
  view.dispatch({ effects: EditorView.announce.of(message(leaves ? "tab-leaves" : "tab-indents")) });
  return true;
}

// Outside the shadow root a letter typed here would look like a shortcut.
function stopLetters(event) {
  if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
}
