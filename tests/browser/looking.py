"""Which pages there are to look at, and how: by axe in light and in dark, and at three widths."""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page

from personas.models import (
    Agent,
    Channel,
    Identity,
    Memory,
    Responsibility,
    Soul,
    Task,
    Tool,
    UserProfile,
    Workspace,
)
from skills.models import Skill
from tests.browser.serving import AXE
from tests.example_counts import HARD

# The word in the address, the model, and what stands for one record there.
FAMILIES = (
    ("agents", Agent, "slug"),
    ("identities", Identity, "slug"),
    ("souls", Soul, "slug"),
    ("user-profiles", UserProfile, "slug"),
    ("memories", Memory, "pk"),
    ("responsibilities", Responsibility, "pk"),
    ("tasks", Task, "number"),
    ("tools", Tool, "name"),
    ("channels", Channel, "slug"),
    ("skills", Skill, "name"),
)
Case = TypeVar("Case")
WIDTHS = (390, 1024, 1440)
# Each way of text to look that this process has found good: judging colours takes most of axe's time.
JUDGED: dict[str, set[str]] = {"light": set(), "dark": set()}
OTHER = {"light": "dark", "dark": "light"}
# Stylesheets are not fetched a second time: only a rule about turned phones would read them.
LOOK = """
async ([source, known, shapes, trusting]) => {
  const load = (done, failed) => {
    const script = document.createElement("script");
    Object.assign(script, { src: source, onload: done, onerror: failed });
    document.head.append(script);
    script.remove();
  };
  if (!window.axe) await new Promise(load);
  const seen = new Set(known.split(" ")), grounds = new Map(), fresh = new Map();
  // How a text looks is what its contrast depends on: its colour and size, and all that is painted behind it.
  const behind = (element) => {
    if (!element) return { words: "", colour: "", isWhole: true };
    if (!grounds.has(element)) {
      const style = getComputedStyle(element), colour = style.backgroundColor;
      const own = [
        colour === "rgba(0, 0, 0, 0)" ? "" : colour,
        style.backgroundImage === "none" ? "" : style.backgroundImage,
        style.opacity === "1" ? "" : style.opacity,
        ["static", "relative"].includes(style.position) ? "" : style.position,
      ].filter(Boolean).join(" ");
      const under = behind(element.parentElement);
      grounds.set(element, {
        words: (own && own + " on ") + under.words,
        colour: !own ? under.colour : own === colour ? colour : "",
        isWhole: style.opacity === "1" && under.isWhole,
      });
    }
    return grounds.get(element);
  };
  const brush = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const lights = new Map();
  // How bright a colour is, as the guidelines count it; nothing for one that lets others through.
  const light = (colour) => {
    if (!lights.has(colour)) {
      brush.clearRect(0, 0, 1, 1);
      brush.fillStyle = colour;
      brush.fillRect(0, 0, 1, 1);
      const [red, green, blue, cover] = [...brush.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
      const bright = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      const sum = 0.2126 * bright(red) + 0.7152 * bright(green) + 0.0722 * bright(blue);
      lights.set(colour, cover === 1 ? sum : NaN);
    }
    return lights.get(colour);
  };
  // One whole colour on another that differ more than the smallest text needs: axe could say nothing else.
  const isPlain = (style, ground) => {
    if (!trusting || !ground.colour || !ground.isWhole || style.textShadow !== "none") return false;
    const [dark, pale] = [light(style.color), light(ground.colour)].sort((one, two) => one - two);
    return (pale + 0.05) / (dark + 0.05) > 4.6;
  };
  const speaks = (element) =>
    element.matches("input, select, textarea") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const short = (text) => {
    let [one, two] = [7, 11];
    for (let at = 0; at < text.length; at++) {
      one = Math.imul(one ^ text.charCodeAt(at), 2654435761);
      two = Math.imul(two ^ text.charCodeAt(at), 1597334677);
    }
    return (one >>> 0).toString(36) + (two >>> 0).toString(36);
  };
  for (const element of document.querySelectorAll("body *")) {
    if (!speaks(element) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const off = element.closest("[disabled], [aria-disabled=true]") ? "off" : "";
    const letters = [style.color, style.fontSize, style.fontWeight, style.textShadow];
    const ground = behind(element);
    const look = short([...letters, off, ground.words].join("; "));
    // Three of each, for one may lie under something else.
    if (seen.has(look) || isPlain(style, ground)) continue;
    fresh.set(look, [...(fresh.get(look) ?? []), element].slice(0, 3));
  }
  const theme = getComputedStyle(document.documentElement).colorScheme;
  const judged = [...fresh.keys()].join(" ");
  if (!fresh.size && !shapes) return { theme, judged, found: [] };
  const marked = [...fresh.values()].flat();
  for (const element of marked) element.dataset.fresh = "";
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-fresh]" }] });
  const only = shapes ? {} : { runOnly: { type: "rule", values: ["color-contrast"] } };
  const answer = await axe.run({ resultTypes: ["violations"], preload: false, ...only });
  for (const element of marked) delete element.dataset.fresh;
  const found = answer.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`));
  return { theme, judged, found };
}
"""
# In every run the pages that differ most; the others, which share their templates, when all is asked.
SOME_OR_ALL = pytest.mark.parametrize(
    "is_all", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.hard)]
)
COMMON = ("", "members/", "audit/", "settings/")
ACCOUNT = (
    "/profile/",
    "/workspaces/new/",
    "/accounts/email/",
    "/accounts/password/change/",
    "/accounts/2fa/",
    "/accounts/2fa/webauthn/",
    "/accounts/2fa/totp/activate/",
    "/accounts/2fa/webauthn/add/",
    "/accounts/sessions/",
    "/accounts/logout/",
)
ENTRANCE = (
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/password/reset/",
    "/accounts/confirm-email/",
    "/accounts/password/reset/done/",
    "/join/not-a-token/",
)


def lists(workspace: Workspace) -> list[str]:
    names = [f"{name}/" for name, _, _ in FAMILIES]
    return [f"/w/{workspace.slug}/{path}" for path in (*COMMON, *names, "souls/import/")]


def forms(workspace: Workspace) -> list[str]:
    return [f"/w/{workspace.slug}/{name}/new/" for name, _, _ in FAMILIES]


def records(workspace: Workspace, *pages: str) -> list[str]:
    """These pages of the fullest record of every kind."""
    found = []
    for name, model, key in FAMILIES:
        record = model.objects.in_workspace(workspace).order_by("-revision", "pk").first()
        assert record is not None, f"There is no example of {name}."
        found += [f"/w/{workspace.slug}/{name}/{getattr(record, key)}/{page}" for page in pages]
    return found


def complaints(page: Page) -> list[str]:
    """What axe has to say about the page as it stands: everything in one light, colours in the other too."""
    if page.url.startswith("about:"):
        page.evaluate(AXE_SCRIPT)
    theme, said = judged(page, shapes=True)
    # It stays so: the next page is looked at in this light first.
    page.emulate_media(color_scheme=OTHER[theme])  # type: ignore[arg-type]  # the two words it knows
    other, more = judged(page, shapes=False)
    assert other == OTHER[theme]
    return said + more


def judged(page: Page, *, shapes: bool) -> tuple[str, list[str]]:
    """The light, and what is wrong in it; colours that were good before are not judged again.

    Nor are those of which a plain sum says that they are good; but in long proofs axe judges them too.
    """
    theme = page.evaluate("getComputedStyle(document.documentElement).colorScheme")
    answer = page.evaluate(LOOK, [AXE, " ".join(JUDGED[theme]), shapes, HARD not in os.environ])
    if not answer["found"]:
        JUDGED[theme].update(answer["judged"].split())
    return theme, [f"{page.url} ({theme}) {line}" for line in answer["found"]]


def in_turn(addresses: Sequence[Case]) -> list[Case]:
    """The first always, of the others every third one, as the run's seed says; in long proofs all."""
    if HARD in os.environ:
        return list(addresses)
    return [addresses[0], *addresses[1 + random.randrange(3) :: 3]]  # noqa: S311  # the seed is told


def overflows(page: Page) -> list[str]:
    """The screen widths at which the page has to be moved sideways to be read."""
    said = []
    now = page.viewport_size
    for width in sorted(WIDTHS, key=lambda width: not now or width != now["width"]):
        if not now or width != now["width"]:
            page.set_viewport_size({"width": width, "height": 900})
        over = page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth")
        if over > 0:
            said.append(f"{page.url} is {over} px too wide for {width}")
    return said
