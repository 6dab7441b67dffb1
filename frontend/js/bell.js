// Number of unread notifications in the header. It is requested without htmx, because an ended session makes htmx reload
// the page, and a page with typed text must not reload by itself. The header HX-Request keeps the request from prolonging
// the session.
import { announce } from "./announce.js";

const INTERVAL = 5_000;
let timer = 0;

function show(bell, { count, text }) {
  const isMore = count > Number(bell.dataset.count);
  bell.dataset.count = count;
  const badge = bell.querySelector(".dr-bell-count");
  badge.textContent = count;
  badge.hidden = count === 0;
  bell.querySelector(".sr-only").textContent = text;
  if (isMore) announce(text);
}

async function poll(bell) {
  if (document.hidden) return;
  try {
    const response = await fetch(`${bell.dataset.bell}?seen=${bell.dataset.count}`, {
      headers: { "HX-Request": "true", Accept: "application/json" },
    });
    // The session has ended, or the user is no longer a member.
    if (response.headers.has("HX-Refresh") || response.status === 404) return clearInterval(timer);
    if (response.status === 200) show(bell, await response.json());
  } catch {
    // Offline: the next request may succeed.
  }
}

export function listen() {
  const bell = document.querySelector("[data-bell]");
  if (!bell) return;
  timer = setInterval(() => poll(bell), INTERVAL);
  document.addEventListener("visibilitychange", () => poll(bell));
}
