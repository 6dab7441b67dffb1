// CodeMirror over a textarea marked data-editor; the textarea stays what the form sends.
// In a shadow root its styles are constructed sheets, which the content policy allows.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { search, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { directions } from "./directions.js";
import { mirrorField } from "./field.js";
import { handOver } from "./handing.js";
import { language } from "./languages.js";
import { look } from "./look.js";
import { replacing } from "./replacing.js";
import { unseen } from "./unseen.js";
import { phrases, words } from "./words.js";

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
  host.addEventListener("keydown", keepLetters);
}

function extensions(textarea, field) {
  return [
    // Before the language's own keys, so that Tab and Escape stay ours.
    keymap.of([{ key: "Ctrl-m", run: toggleTab }]),
    language(textarea.dataset.editor),
    history(),
    EditorState.phrases.of(phrases()),
    replacing,
    search({ top: true }),
    keymap.of([...keys, indentWithTab]),
    EditorView.lineWrapping,
    directions,
    unseen,
    look,
    textarea.placeholder ? placeholder(textarea.placeholder) : [],
    field.extension,
    handOver(textarea),
  ];
}

// Tab leaves the editor until somebody asks for it to indent.
function toggleTab(view) {
  view.setTabFocusMode();
  const leaves = view.inputState.tabFocusMode > -1;
  view.dispatch({ effects: EditorView.announce.of(words(leaves ? "tab-leaves" : "tab-indents")) });
  return true;
}

// Seen from outside the shadow root a letter typed here looks like a shortcut.
function keepLetters(event) {
  if (event.key.length === 1 && !event.ctrlKey && !event.metaKey && !event.altKey) event.stopPropagation();
}
