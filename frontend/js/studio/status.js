// One line beside the buttons that says what became of the text.
export function say(text, tone = "") {
  const line = document.getElementById("studio-status");
  if (!line) return;
  line.textContent = text;
  line.dataset.tone = tone;
}
