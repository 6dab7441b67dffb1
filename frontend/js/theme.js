// Runs in the head before the first paint, so that the chosen theme does not flash. Without a choice the system decides.
const root = document.documentElement;
root.classList.add("dr-js");
try {
  const chosen = localStorage.getItem("theme");
  if (chosen === "light" || chosen === "dark") root.dataset.theme = chosen;
} catch {
  // Storage may be blocked; the system theme is fine.
}
