// Mirrors the textarea's accessible attributes (name, help, error, read-only) on the editor.
import { Compartment, EditorState } from "@codemirror/state";
import { EditorView } from "@codemirror/view";

const MIRRORED = ["aria-describedby", "aria-invalid", "disabled", "readonly"];

export function mirrorField(textarea, host) {
  const label = textarea.labels[0];
  const name = label ? readableText(label) : textarea.getAttribute("aria-label");
  const compartment = new Compartment();
  const state = () => currentAttributes(textarea, host, name);
  if (label) detachLabel(label, textarea);
  // The browser would block the submit of a hidden required field without a message.
  const required = textarea.required;
  textarea.required = false;
  return {
    extension: [compartment.of(state()), EditorView.contentAttributes.of(fixedAttributes(textarea, required))],
    follow(view) {
      const refresh = () => view.dispatch({ effects: compartment.reconfigure(state()) });
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

function readableText(label) {
  return label.textContent.replace(/\s+/g, " ").trim();
}

// The label now names the editor, not the hidden textarea.
function detachLabel(label, textarea) {
  label.removeAttribute("for");
  label.dataset.for = textarea.id;
}

function fixedAttributes(textarea, required) {
  const spellcheck = textarea.getAttribute("spellcheck");
  const attributes = {
    "data-field": textarea.id,
    // So that a read-only text can still be scrolled by keyboard.
    tabindex: "0",
    spellcheck: spellcheck ?? String(textarea.dataset.editor !== "yaml"),
    autocapitalize: "sentences",
    writingsuggestions: "false",
  };
  return required ? { ...attributes, "aria-required": "true" } : attributes;
}

function currentAttributes(textarea, host, name) {
  const invalid = textarea.getAttribute("aria-invalid") === "true";
  const fixed = textarea.readOnly || textarea.disabled;
  host.classList.toggle("is-invalid", invalid);
  host.classList.toggle("is-fixed", fixed);
  const attributes = { "aria-label": name ?? "" };
  const notes = descriptionOf(textarea);
  if (notes) attributes["aria-description"] = notes;
  if (invalid) attributes["aria-invalid"] = "true";
  if (fixed) attributes["aria-readonly"] = "true";
  return [EditorState.readOnly.of(fixed), EditorView.editable.of(!textarea.disabled), EditorView.contentAttributes.of(attributes)];
}

// ARIA id references do not reach into a shadow root, so the text is copied.
function descriptionOf(textarea) {
  const ids = (textarea.getAttribute("aria-describedby") ?? "").split(/\s+/).filter(Boolean);
  return ids.map((id) => document.getElementById(id)).filter(Boolean).map(readableText).join(" ");
}
