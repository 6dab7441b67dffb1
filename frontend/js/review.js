// The review step: before a form with data-review is sent, the server is asked what it would change. If prompts
// change, a dialog shows the review, and its button sends the form with the token of the review.
import { isSignedOut, showSignedOut } from "./progress.js";
import { message, toast } from "./toasts.js";

const HEADER = "Dramatis-Review";
const dialog = () => document.getElementById("dr-review");
const body = () => document.getElementById("dr-review-body");

// Asks the server; returns the HTML of the review, or null if none is needed.
export async function askForReview(url, data) {
  const token = document.querySelector('meta[name="csrf-token"]').content;
  const response = await fetch(url, { method: "POST", body: data, headers: { "X-CSRFToken": token, [HEADER]: "ask" } });
  if (isSignedOut(response.url)) throw new SignedOut();
  return response.headers.get(HEADER) === "required" ? response.text() : null;
}

class SignedOut extends Error {}

// Shows the dialog. `onConfirm` gets the form of the review; without it, the form of the review is sent itself.
export function showReview(html, onConfirm, onCancel) {
  if (html !== null) body().innerHTML = html;
  const form = body().querySelector(".dr-review-confirm");
  let isConfirmed = false;
  if (onConfirm) {
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      isConfirmed = true;
      dialog().close();
      onConfirm(form);
    });
  }
  dialog().addEventListener("close", () => { if (!isConfirmed) onCancel?.(); }, { once: true });
  dialog().showModal();
  body().scrollTop = 0;
  form.querySelector("button[type=submit]").focus({ preventScroll: true });
}

function copyField(form, source, name) {
  const field = source.elements[name];
  if (!field) return;
  form.querySelector(`input[type=hidden][name="${name}"]`)?.remove();
  const input = document.createElement("input");
  Object.assign(input, { type: "hidden", name, value: field.value });
  form.append(input);
}

async function reviewAndSubmit(form, submitter) {
  const data = new FormData(form, submitter ?? undefined);
  const send = () => {
    form.dataset.reviewDone = "";
    form.requestSubmit(submitter ?? undefined);
  };
  let html;
  form.setAttribute("aria-busy", "true");
  try {
    html = await askForReview(submitter?.hasAttribute("formaction") ? submitter.formAction : form.action, data);
  } catch (error) {
    // The text stays in the form: neither the browser's error page nor the sign-in page replaces it.
    if (error instanceof SignedOut) showSignedOut();
    else toast({ tone: "error", text: message("offline"), key: "request" });
    return;
  } finally {
    // Sending sets it again, for as long as the server needs.
    form.removeAttribute("aria-busy");
  }
  if (html === null) send();
  else {
    showReview(html, (confirmation) => {
      copyField(form, confirmation, "reviewed");
      copyField(form, confirmation, "change_message");
      send();
    }, () => submitter?.focus());
  }
}

// Runs in the capture phase, before htmx and the draft keeper see the event.
function onReviewedSubmit(event) {
  const form = event.target;
  if (!form.matches?.("form[data-review]") || event.submitter?.hasAttribute("hx-post")) return;
  if ("reviewDone" in form.dataset) {
    delete form.dataset.reviewDone;
    return;
  }
  event.preventDefault();
  event.stopImmediatePropagation();
  // The server has been asked already.
  if (form.getAttribute("aria-busy") !== "true") reviewAndSubmit(form, event.submitter);
}

// The server answered a request of htmx with a review. Its button sends the request again, with the token.
function onHtmxReview(event) {
  const source = event.target;
  showReview(null, (confirmation) => {
    source.dataset.reviewed = confirmation.elements.reviewed.value;
    source.click();
  }, () => source.focus?.());
}

function addToken(event) {
  const source = event.detail.elt;
  if (!("reviewed" in source.dataset)) return;
  event.detail.parameters.reviewed = source.dataset.reviewed;
  delete source.dataset.reviewed;
}

export function listen() {
  document.addEventListener("submit", onReviewedSubmit, true);
  document.addEventListener("dr:review", onHtmxReview);
  document.addEventListener("htmx:configRequest", addToken);
  document.addEventListener("click", (event) => {
    const cancel = event.target.closest("#dr-review [data-review-cancel]");
    if (!cancel) return;
    event.preventDefault();
    dialog().close();
  });
}
