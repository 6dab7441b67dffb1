// Lines with right-to-left letters find their own direction; the others cost nothing.
import { RangeSetBuilder } from "@codemirror/state";
import { Decoration, EditorView, ViewPlugin } from "@codemirror/view";

const RIGHT_TO_LEFT = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/;
// The first strong letter decides, and it stands near the beginning.
const LOOKED_AT = 2_000;
const own = Decoration.line({ attributes: { dir: "auto" } });

function marked(view) {
  const builder = new RangeSetBuilder();
  for (const { from, to } of view.visibleRanges) {
    for (let at = from; at <= to; ) {
      const line = view.state.doc.lineAt(at);
      const start = view.state.sliceDoc(line.from, Math.min(line.to, line.from + LOOKED_AT));
      if (RIGHT_TO_LEFT.test(start)) builder.add(line.from, line.from, own);
      at = line.to + 1;
    }
  }
  return builder.finish();
}

const lines = ViewPlugin.define(
  (view) => ({
    decorations: marked(view),
    update(update) {
      if (update.docChanged || update.viewportChanged) this.decorations = marked(update.view);
    },
  }),
  { decorations: (plugin) => plugin.decorations },
);

export const directions = [EditorView.perLineTextDirection.of(true), lines];
