// Replaces the selection when typing: the browser would join the lines with inline styles, which the content security policy forbids.
import { EditorView } from "@codemirror/view";

export const replaceSelection = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== "insertText" || event.isComposing || !event.data || view.state.readOnly) return false;
    const range = selectedRange(view);
    if (!range || range.from === range.to) return false;
    event.preventDefault();
    const insert = view.state.toText(event.data);
    const changes = { ...range, insert };
    view.dispatch({ changes, selection: { anchor: range.from + insert.length }, userEvent: "input.type", scrollIntoView: true });
    return true;
  },
});

// Read from the DOM, because the editor learns of a new selection only later.
function selectedRange(view) {
  const selection = view.root.getSelection?.();
  if (!selection?.anchorNode || !view.contentDOM.contains(selection.anchorNode)) return null;
  const ends = [
    view.posAtDOM(selection.anchorNode, selection.anchorOffset),
    view.posAtDOM(selection.focusNode, selection.focusOffset),
  ];
  return { from: Math.min(...ends), to: Math.max(...ends) };
}
