// Status line next to the buttons: saved, unsaved or failed.
export function showStatus(text, tone = "") {
  const line = document.getElementById("studio-status");
  if (!line) return;
  line.textContent = text;
  line.dataset.tone = tone;
}
