// Relative time, such as “3 minutes ago”, in the page's language.
const STEPS = [
  ["day", 86_400],
  ["hour", 3_600],
  ["minute", 60],
  ["second", 1],
];

export function formatRelativeTime(timestamp) {
  const seconds = Math.max(1, Math.round((Date.now() - timestamp) / 1000));
  const [unit, size] = STEPS.find(([, length]) => seconds >= length);
  const format = new Intl.RelativeTimeFormat(document.documentElement.lang || "en", { numeric: "always" });
  return format.format(-Math.floor(seconds / size), unit);
}
