// A glance at where a link leads: [data-peek="id"] names a popover that htmx fills the first time it is asked for.
// Shown when the pointer rests on the link or the keyboard comes to it; Escape, or going away, puts it away.
const REST = 250;
const GAP = 6;
let wanted = null;
let timer = 0;

const cardOf = (link) => document.getElementById(link.dataset.peek);
const isOpen = (card) => card.matches(":popover-open");

function place(link, card) {
  const at = link.getBoundingClientRect();
  const below = innerHeight - at.bottom - 2 * GAP;
  const isBelow = below >= Math.min(card.scrollHeight, 280) || below >= at.top;
  card.style.maxHeight = `${Math.max(120, isBelow ? below : at.top - 2 * GAP)}px`;
  const { width, height } = card.getBoundingClientRect();
  card.style.left = `${Math.max(GAP, Math.min(at.left, document.documentElement.clientWidth - width - GAP))}px`;
  card.style.top = `${isBelow ? at.bottom + GAP : at.top - height - GAP}px`;
}

function show() {
  const card = wanted && cardOf(wanted);
  if (!card || isOpen(card)) return;
  if (!card.hasChildNodes()) {
    card.dispatchEvent(new CustomEvent("dr-peek"));
    return;
  }
  card.showPopover();
  place(wanted, card);
}

function want(link, rest) {
  clearTimeout(timer);
  if (link !== wanted) hide();
  wanted = link;
  timer = setTimeout(show, rest);
}

function hide() {
  const card = wanted && cardOf(wanted);
  if (card && isOpen(card)) card.hidePopover();
  wanted = null;
}

function onPointer(event) {
  if (event.pointerType === "touch" || !(event.target instanceof Element)) return;
  const link = event.target.closest("[data-peek]");
  if (link) want(link, REST);
  else if (event.target.closest(".dr-peek")) clearTimeout(timer);
  else if (wanted && wanted !== document.activeElement) {
    clearTimeout(timer);
    timer = setTimeout(hide, REST);
  }
}

function onFocus(event) {
  const link = event.target.closest("[data-peek]");
  if (link?.matches(":focus-visible")) want(link, 0);
  else if (wanted && !event.target.closest(".dr-peek")) hide();
}

export function listen() {
  document.addEventListener("pointerover", onPointer);
  document.addEventListener("focusin", onFocus);
  document.addEventListener("focusout", (event) => event.target === wanted && !event.relatedTarget && hide());
  document.addEventListener("scroll", hide, { passive: true });
  // Filled by now: shown if it is still the one that is wanted.
  document.addEventListener("htmx:afterSwap", (event) => wanted && event.target === cardOf(wanted) && show());
}
