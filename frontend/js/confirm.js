// The question before a dangerous action: a dialog of the page, whose button repeats the label of the action.
export function confirmSubmit(form, submitter, question) {
  const dialog = document.getElementById("dr-confirm");
  const go = dialog.querySelector("[data-part=go]");
  dialog.querySelector("[data-part=question]").textContent = question;
  go.textContent = (submitter?.textContent || "").trim() || go.dataset.label;
  go.className = `btn ${isDangerous(submitter) ? "btn-error" : "btn-primary"}`;
  const onClose = () => {
    if (dialog.returnValue === "go") {
      form.dataset.confirmed = "";
      form.requestSubmit(submitter?.form === form ? submitter : undefined);
    } else {
      submitter?.focus();
    }
  };
  dialog.returnValue = "";
  dialog.addEventListener("close", onClose, { once: true });
  dialog.showModal();
  dialog.querySelector("[data-part=cancel]").focus();
}

function isDangerous(submitter) {
  return submitter?.matches(".btn-error, .dr-danger") ?? false;
}
