// Keeps the editor and the textarea behind it in step: the form sends the textarea, and scripts may write into it.
import { Annotation } from "@codemirror/state";
import { EditorView, ViewPlugin } from "@codemirror/view";
import { refresh } from "./preview.js";

const fromField = Annotation.define();
// Chromium takes milliseconds to put a long text into a textarea: then it waits for a pause in typing.
const LONG = 16_000;
// As long as the form itself waits for a pause; whoever has waited here does not wait there again.
const PAUSE = 80;

export function handOver(textarea) {
  const hand = ViewPlugin.define((view) => new Hand(view, textarea));
  // Listeners run when the editor has finished, so that those who hear of the input may use it.
  return [hand, EditorView.updateListener.of((update) => update.view.plugin(hand).changed(update))];
}

class Hand {
  constructor(view, textarea) {
    Object.assign(this, { view, textarea, waiting: undefined });
    this.deliver = this.deliver.bind(this);
    textarea.addEventListener("input", () => this.takeOver());
    // Whoever reads the form next finds the last words in it.
    view.dom.addEventListener("focusout", this.deliver);
    view.dom.addEventListener("keydown", (event) => (event.ctrlKey || event.metaKey) && this.deliver(), true);
    textarea.form?.addEventListener("submit", this.deliver, true);
    window.addEventListener("pagehide", this.deliver, true);
  }

  changed(update) {
    if (!update.docChanged || update.transactions.some((one) => one.annotation(fromField))) return;
    clearTimeout(this.waiting);
    if (update.state.doc.length < LONG) this.send(update.state.doc);
    else this.waiting = setTimeout(() => this.pause(), PAUSE);
  }

  pause() {
    this.deliver();
    refresh();
  }

  deliver() {
    if (this.waiting === undefined) return;
    clearTimeout(this.waiting);
    this.send(this.view.state.doc);
  }

  send(doc) {
    this.waiting = undefined;
    this.textarea.value = doc.toString();
    this.textarea.dispatchEvent(new Event("input", { bubbles: true }));
  }

  // Somebody else wrote into the textarea, such as an unsaved text taken back.
  takeOver() {
    const { view, textarea } = this;
    if (this.waiting !== undefined || view.state.doc.toString() === textarea.value) return;
    view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: textarea.value }, annotations: fromField.of(true) });
  }
}
