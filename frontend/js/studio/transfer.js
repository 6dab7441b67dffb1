// Keeps the editor and its hidden textarea in sync: the form sends the textarea, and scripts may write into it.
import { Annotation } from "@codemirror/state";
import { EditorView, ViewPlugin } from "@codemirror/view";
import { refresh } from "./preview.js";

const fromField = Annotation.define();
// Chromium takes milliseconds to set a long textarea value, so longer texts are copied after a pause in typing.
const LONG_TEXT = 16_000;
// As long as the form's own delay; after this delay the preview is refreshed directly, without the form's.
const DELAY = 80;

export function syncTextarea(textarea) {
  const sync = ViewPlugin.define((view) => new TextareaSync(view, textarea));
  // Update listeners run after the editor's update, so that handlers of the input event may use the editor.
  return [sync, EditorView.updateListener.of((update) => update.view.plugin(sync).onUpdate(update))];
}

class TextareaSync {
  constructor(view, textarea) {
    Object.assign(this, { view, textarea, timer: undefined });
    this.flush = this.flush.bind(this);
    textarea.addEventListener("input", () => this.readTextarea());
    // Copy pending text before anything may read the form.
    view.dom.addEventListener("focusout", this.flush);
    view.dom.addEventListener("keydown", (event) => (event.ctrlKey || event.metaKey) && this.flush(), true);
    textarea.form?.addEventListener("submit", this.flush, true);
    window.addEventListener("pagehide", this.flush, true);
  }

  onUpdate(update) {
    if (!update.docChanged || update.transactions.some((one) => one.annotation(fromField))) return;
    clearTimeout(this.timer);
    if (update.state.doc.length < LONG_TEXT) this.send(update.state.doc);
    else this.timer = setTimeout(() => this.onPause(), DELAY);
  }

  onPause() {
    this.flush();
    refresh();
  }

  flush() {
    if (this.timer === undefined) return;
    clearTimeout(this.timer);
    this.send(this.view.state.doc);
  }

  send(doc) {
    this.timer = undefined;
    this.textarea.value = doc.toString();
    this.textarea.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // Another script wrote into the textarea, for example a restored copy.
  readTextarea() {
    const { view, textarea } = this;
    if (this.timer !== undefined || view.state.doc.toString() === textarea.value) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: textarea.value }, annotations: fromField.of(true) });
  }
}
