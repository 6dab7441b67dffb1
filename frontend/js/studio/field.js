// What the textarea says about itself (name, help, error, read-only), said by the editor too.
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

const MIRRORED = ["aria-describedby", "aria-invalid", "disabled", "readonly"];

export function mirrorField(textarea, host) {
  const label = textarea.labels[0];
  const name = label ? spoken(label) : textarea.getAttribute("aria-label");
  const place = new Compartment();
  const state = () => described(textarea, host, name);
  if (label) takeLabel(label, textarea);
  // A hidden field that the browser finds empty would stop the form without a word.
  const required = textarea.required;
  textarea.required = false;
  return {
    extension: [place.of(state()), EditorView.contentAttributes.of(lasting(textarea, required))],
    follow(view) {
      const refresh = () => view.dispatch({ effects: place.reconfigure(state()) });
      new MutationObserver(refresh).observe(textarea, { attributeFilter: MIRRORED });
      label?.addEventListener("click", () => view.focus());
      document.addEventListener("click", (event) => {
        const link = event.target.closest?.(`a[href="#${CSS.escape(textarea.id)}"]`);
        if (!link) return;
        event.preventDefault();
        view.focus();
        host.scrollIntoView({ block: "center" });
      });
    },
  };
}

function spoken(label) {
  return label.textContent.replace(/\s+/g, " ").trim();
}

// The label names the editor from now on, not the field behind it.
function takeLabel(label, textarea) {
  label.removeAttribute("for");
  label.dataset.for = textarea.id;
}

function lasting(textarea, required) {
  const said = textarea.getAttribute("spellcheck");
  const attributes = {
    "data-field": textarea.id,
    // So that a text that cannot be edited can still be scrolled by keyboard.
    tabindex: "0",
    spellcheck: said ?? String(textarea.dataset.editor !== "yaml"),
    autocapitalize: "sentences",
    writingsuggestions: "false",
  };
  return required ? { ...attributes, "aria-required": "true" } : attributes;
}

function described(textarea, host, name) {
  const invalid = textarea.getAttribute("aria-invalid") === "true";
  const fixed = textarea.readOnly || textarea.disabled;
  host.classList.toggle("is-invalid", invalid);
  host.classList.toggle("is-fixed", fixed);
  const attributes = { "aria-label": name ?? "" };
  const notes = notesOf(textarea);
  if (notes) attributes["aria-description"] = notes;
  if (invalid) attributes["aria-invalid"] = "true";
  if (fixed) attributes["aria-readonly"] = "true";
  return [EditorState.readOnly.of(fixed), EditorView.editable.of(!textarea.disabled), EditorView.contentAttributes.of(attributes)];
}

// Ids do not reach into a shadow root; their words do.
function notesOf(textarea) {
  const ids = (textarea.getAttribute("aria-describedby") ?? "").split(/\s+/).filter(Boolean);
  return ids.map((id) => document.getElementById(id)).filter(Boolean).map(spoken).join(" ");
}
