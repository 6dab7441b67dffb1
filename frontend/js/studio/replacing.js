// Typing over a selection, done by us: the browser would join the lines with inline styles, which the content policy forbids.
import { EditorView } from "@codemirror/view";

export const replacing = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || event.isComposing || !event.data || view.state.readOnly) return false;
    const range = selected(view);
    if (!range || range.from === range.to) return false;
    event.preventDefault();
    const insert = view.state.toText(event.data);
    const changes = { ...range, insert };
    view.dispatch({ changes, selection: { anchor: range.from + insert.length }, userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

// As the page has it: the editor hears of a new selection only a moment later.
function selected(view) {
  const selection = view.root.getSelection?.();
  if (!selection?.anchorNode || !view.contentDOM.contains(selection.anchorNode)) return null;
  const ends = [
    view.posAtDOM(selection.anchorNode, selection.anchorOffset),
    view.posAtDOM(selection.focusNode, selection.focusOffset),
  ];
  return { from: Math.min(...ends), to: Math.max(...ends) };
}
