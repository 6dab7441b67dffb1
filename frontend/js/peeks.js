// Link previews: [data-peek="id"] names a popover that htmx fills the first time it is shown.
// Opens on hover or keyboard focus; Escape, or leaving the link, closes it.
const HOVER_DELAY = 250;
const GAP = 6;
let current = null;
let timer = 0;

const cardOf = (link) => document.getElementById(link.dataset.peek);
const isOpen = (card) => card.matches(":popover-open");

function position(link, card) {
  const box = link.getBoundingClientRect();
  const below = innerHeight - box.bottom - 2 * GAP;
  const isBelow = below >= Math.min(card.scrollHeight, 280) || below >= box.top;
  card.style.maxHeight = `${Math.max(120, isBelow ? below : box.top - 2 * GAP)}px`;
  const { width, height } = card.getBoundingClientRect();
  card.style.left = `${Math.max(GAP, Math.min(box.left, document.documentElement.clientWidth - width - GAP))}px`;
  card.style.top = `${isBelow ? box.bottom + GAP : box.top - height - GAP}px`;
}

function show() {
  const card = current && cardOf(current);
  if (!card || isOpen(card)) return;
  if (!card.hasChildNodes()) {
    card.dispatchEvent(new CustomEvent("dr-peek"));
    return;
  }
  card.showPopover();
  position(current, card);
}

function schedule(link, delay) {
  clearTimeout(timer);
  if (link !== current) hide();
  current = link;
  timer = setTimeout(show, delay);
}

function hide() {
  const card = current && cardOf(current);
  if (card && isOpen(card)) card.hidePopover();
  current = null;
}

function onPointer(event) {
  if (event.pointerType === "touch" || !(event.target instanceof Element)) return;
  const link = event.target.closest("[data-peek]");
  if (link) schedule(link, HOVER_DELAY);
  else if (event.target.closest(".dr-peek")) clearTimeout(timer);
  else if (current && current !== document.activeElement) {
    clearTimeout(timer);
    timer = setTimeout(hide, HOVER_DELAY);
  }
}

function onFocus(event) {
  const link = event.target.closest("[data-peek]");
  if (link?.matches(":focus-visible")) schedule(link, 0);
  else if (current && !event.target.closest(".dr-peek")) hide();
}

export function listen() {
  document.addEventListener("pointerover", onPointer);
  document.addEventListener("focusin", onFocus);
  document.addEventListener("focusout", (event) => event.target === current && !event.relatedTarget && hide());
  document.addEventListener("scroll", hide, { passive: true });
  // The card is filled: show it if its link is still the current one.
  document.addEventListener("htmx:afterSwap", (event) => current && event.target === cardOf(current) && show());
}
