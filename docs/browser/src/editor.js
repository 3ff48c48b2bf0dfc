// An editor for Python, in the colours of the page.
import { defaultKeymap, history, historyKeymap, indentWithTab } from "@codemirror/commands";
import { python } from "@codemirror/lang-python";
import { bracketMatching, HighlightStyle, indentOnInput, indentUnit, syntaxHighlighting } from "@codemirror/language";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, keymap } from "@codemirror/view";
import { tags } from "@lezer/highlight";

const colours = HighlightStyle.define([
  { tag: [tags.keyword, tags.controlKeyword, tags.definitionKeyword, tags.operatorKeyword], color: "var(--cell-keyword)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--cell-string)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--cell-number)" },
  { tag: tags.comment, color: "var(--cell-comment)", fontStyle: "italic" },
  { tag: [tags.function(tags.definition(tags.variableName)), tags.definition(tags.className)], color: "var(--cell-name)" },
  { tag: tags.meta, color: "var(--cell-name)" },
]);

const look = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "inherit", fontSize: "0.875em" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--pst-font-family-monospace)", padding: "0.6rem 0", caretColor: "var(--pst-color-text-base)" },
  ".cm-line": { padding: "0 0.8rem" },
  ".cm-cursor": { borderLeftColor: "var(--pst-color-text-base)" },
  ".cm-scroller": { lineHeight: "1.5", overflowX: "auto" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--cell-selection)",
  },
});

// `keys` maps names of keys, such as "Shift-Enter", to functions.
export function editor(parent, code, { label, keys, changed }) {
  const bindings = Object.entries(keys).map(([key, call]) => ({ key, run: () => (call(), true), preventDefault: true }));
  const view = new EditorView({
    parent,
    state: EditorState.create({
      doc: code,
      extensions: [
        keymap.of([...bindings, ...defaultKeymap, ...historyKeymap, indentWithTab]),
        history(),
        drawSelection(),
        indentOnInput(),
        bracketMatching(),
        indentUnit.of("    "),
        EditorState.tabSize.of(4),
        python(),
        syntaxHighlighting(colours),
        look,
        EditorView.contentAttributes.of({ "aria-label": label, spellcheck: "false" }),
        EditorView.updateListener.of((update) => update.docChanged && changed?.()),
      ],
    }),
  });
  return {
    get code() {
      return view.state.doc.toString();
    },
    set code(text) {
      view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    focus: () => view.focus(),
  };
}
