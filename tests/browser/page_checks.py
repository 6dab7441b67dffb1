"""Page checks and their URLs: axe in the light and dark theme, and overflow at three widths."""

import os
import random
import re
import zlib
from collections.abc import Sequence
from typing import TypeVar
from urllib.parse import urlsplit

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
from tests.browser.static_files import AXE_URL
from tests.example_counts import HARD

# URL segment, model, and the model field that identifies a record in the URL.
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
Item = TypeVar("Item")
WIDTHS = (390, 1024, 1440)
# Hashes of text styles that passed in this process: checking contrast takes most of axe's time.
PASSED_STYLES: dict[str, set[str]] = {"light": set(), "dark": set()}
OTHER_THEME = {"light": "dark", "dark": "light"}
# `preload: false`: stylesheets are not fetched again, only the orientation rule would read them.
RUN_AXE = """
async ([source, known, allRules, skipPlain]) => {
  const load = (resolve, reject) => {
    const script = document.createElement("script");
    Object.assign(script, { src: source, onload: resolve, onerror: reject });
    document.head.append(script);
    script.remove();
  };
  if (!window.axe) await new Promise(load);
  const passed = new Set(known.split(" ")), backgrounds = new Map(), unchecked = new Map();
  // The contrast depends on the text's colour and size, and on everything painted behind it.
  const backgroundOf = (element) => {
    if (!element) return { description: "", colour: "", isOpaque: true };
    if (!backgrounds.has(element)) {
      const style = getComputedStyle(element), colour = style.backgroundColor;
      const own = [
        colour === "rgba(0, 0, 0, 0)" ? "" : colour,
        style.backgroundImage === "none" ? "" : style.backgroundImage,
        style.opacity === "1" ? "" : style.opacity,
        ["static", "relative"].includes(style.position) ? "" : style.position,
      ].filter(Boolean).join(" ");
      const parent = backgroundOf(element.parentElement);
      backgrounds.set(element, {
        description: (own && own + " on ") + parent.description,
        colour: !own ? parent.colour : own === colour ? colour : "",
        isOpaque: style.opacity === "1" && parent.isOpaque,
      });
    }
    return backgrounds.get(element);
  };
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminances = new Map();
  // Relative luminance as defined by WCAG; NaN for translucent colours.
  const luminance = (colour) => {
    if (!luminances.has(colour)) {
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255);
      const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
      const total = 0.2126 * linear(red) + 0.7152 * linear(green) + 0.0722 * linear(blue);
      luminances.set(colour, alpha === 1 ? total : NaN);
    }
    return luminances.get(colour);
  };
  // One opaque colour on another with more contrast than the smallest text needs: axe would pass it too.
  const isPlain = (style, background) => {
    if (!skipPlain || !background.colour || !background.isOpaque || style.textShadow !== "none") return false;
    const both = [luminance(style.color), luminance(background.colour)];
    const [darker, lighter] = both.sort((one, two) => one - two);
    return (lighter + 0.05) / (darker + 0.05) > 4.6;
  };
  const hasText = (element) =>
    element.matches("input, select, textarea") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const hash = (text) => {
    let [one, two] = [7, 11];
    for (let at = 0; at < text.length; at++) {
      one = Math.imul(one ^ text.charCodeAt(at), 2654435761);
      two = Math.imul(two ^ text.charCodeAt(at), 1597334677);
    }
    return (one >>> 0).toString(36) + (two >>> 0).toString(36);
  };
  for (const element of document.querySelectorAll("body *")) {
    if (!hasText(element) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const off = element.closest("[disabled], [aria-disabled=true]") ? "off" : "";
    const textStyle = [style.color, style.fontSize, style.fontWeight, style.textShadow];
    const background = backgroundOf(element);
    const styleHash = hash([...textStyle, off, background.description].join("; "));
    // Three elements of each style, as one may be covered by something else.
    if (passed.has(styleHash) || isPlain(style, background)) continue;
    unchecked.set(styleHash, [...(unchecked.get(styleHash) ?? []), element].slice(0, 3));
  }
  const theme = getComputedStyle(document.documentElement).colorScheme;
  const checked = [...unchecked.keys()].join(" ");
  if (!unchecked.size && !allRules) return { theme, checked, violations: [] };
  const elements = [...unchecked.values()].flat();
  for (const element of elements) element.dataset.fresh = "";
  axe.configure({ rules: [{ id: "color-contrast", selector: "[data-fresh]" }] });
  const only = allRules ? {} : { runOnly: { type: "rule", values: ["color-contrast"] } };
  const result = await axe.run({ resultTypes: ["violations"], preload: false, ...only });
  for (const element of elements) delete element.dataset.fresh;
  const violations = result.violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`));
  return { theme, checked, violations };
}
"""
# Every run checks the pages that differ most; hard runs also those that share their templates.
SOME_OR_ALL = pytest.mark.parametrize(
    "is_all", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.hard)]
)
COMMON = ("", "members/", "audit/", "settings/")
ACCOUNT = (
    "/profile/",
    "/profile/security/",
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


def list_page_urls(workspace: Workspace) -> list[str]:
    names = [f"{name}/" for name, _, _ in FAMILIES]
    return [f"/w/{workspace.slug}/{path}" for path in (*COMMON, *names, "souls/import/")]


def form_urls(workspace: Workspace) -> list[str]:
    return [f"/w/{workspace.slug}/{name}/new/" for name, _, _ in FAMILIES]


def record_urls(workspace: Workspace, *pages: str) -> list[str]:
    """Return these pages of the most edited record of every kind."""
    urls = []
    for name, model, key in FAMILIES:
        record = model.objects.in_workspace(workspace).order_by("-revision", "pk").first()
        assert record is not None, f"There is no example of {name}."
        urls += [f"/w/{workspace.slug}/{name}/{getattr(record, key)}/{page}" for page in pages]
    return urls


def axe_violations(page: Page) -> list[str]:
    """Return axe violations of the current page: all rules in one theme, contrast in the other too.

    Half of the pages are checked in each run, chosen by the seed; in hard runs all.
    """
    page.wait_for_load_state()
    if not is_due(page.url):
        return []
    if page.url.startswith("about:"):
        page.evaluate(AXE_SCRIPT)
    theme, problems = run_axe(page, all_rules=True)
    # Not switched back: the next page is checked in this theme first.
    page.emulate_media(color_scheme=OTHER_THEME[theme])  # type: ignore[arg-type]  # a theme
    other, more = run_axe(page, all_rules=False)
    assert other == OTHER_THEME[theme]
    return problems + more


def run_axe(page: Page, *, all_rules: bool) -> tuple[str, list[str]]:
    """Return the theme and its violations; text styles that passed before are not checked again.

    Styles whose computed contrast suffices are skipped too, except in hard runs.
    """
    theme = page.evaluate("() => getComputedStyle(document.documentElement).colorScheme")
    result = page.evaluate(
        RUN_AXE, [AXE_URL, " ".join(PASSED_STYLES[theme]), all_rules, HARD not in os.environ]
    )
    if not result["violations"]:
        PASSED_STYLES[theme].update(result["checked"].split())
    return theme, [f"{page.url} ({theme}) {line}" for line in result["violations"]]


def sample(items: Sequence[Item]) -> list[Item]:
    """Return the first item and every third of the others, chosen by the run's seed; in hard runs all."""
    if HARD in os.environ:
        return list(items)
    return [items[0], *items[1 + random.randrange(3) :: 3]]  # noqa: S311  # the seed is printed


class RunSeed:
    """The seed of the run, which a fixture sets."""

    value = 0


def is_due(url: str) -> bool:
    """Whether this run checks the page at this URL: one of two, by its path without numbers and the seed."""
    path = re.sub(r"\d+", "", urlsplit(url).path)
    return (
        url.startswith("about:") or HARD in os.environ or (zlib.crc32(path.encode()) + RunSeed.value) % 2 == 0
    )


def find_overflows(page: Page) -> list[str]:
    """Return the screen widths at which the page scrolls horizontally; of half of the pages, as above."""
    problems: list[str] = []
    page.wait_for_load_state()
    if not is_due(page.url):
        return problems
    viewport = page.viewport_size
    for width in sorted(WIDTHS, key=lambda width: not viewport or width != viewport["width"]):
        if not viewport or width != viewport["width"]:
            page.set_viewport_size({"width": width, "height": 900})
        excess = page.evaluate(
            "() => document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth"
        )
        if excess > 0:
            problems.append(f"{page.url} is {excess} px too wide for {width}")
    return problems
