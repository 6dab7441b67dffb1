// Sets dir="auto" on lines with right-to-left letters; other lines need no decoration.
import { RangeSetBuilder } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin } from "@codemirror/view";

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
// The first strong letter decides the direction; only the start of the line is searched.
const SCAN_LENGTH = 2_000;
const autoDirection = Decoration.line({ attributes: { dir: "auto" } });

function decorate(view) {
  const builder = new RangeSetBuilder();
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to; ) {
      const line = view.state.doc.lineAt(at);
      const start = view.state.sliceDoc(line.from, Math.min(line.to, line.from + SCAN_LENGTH));
      if (RIGHT_TO_LEFT.test(start)) builder.add(line.from, line.from, autoDirection);
      at = line.to + 1;
    }
  }
  return builder.finish();
}

const plugin = ViewPlugin.define(
  (view) => ({
    decorations: decorate(view),
    update(update) {
      if (update.docChanged || update.viewportChanged) this.decorations = decorate(update.view);
    },
  }),
  { decorations: (instance) => instance.decorations },
);

export const textDirection = [EditorView.perLineTextDirection.of(true), plugin];
