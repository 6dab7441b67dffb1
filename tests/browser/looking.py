"""Which pages there are to look at, and how: by axe in light and in dark, and at three widths."""

from typing import Any

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
WIDTHS = (390, 1024, 1440)
# Stylesheets are not fetched a second time: only a rule about turned phones would read them.
FEW = {"resultTypes": ["violations"], "preload": False}
COLOURS = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
SHAPES = {"rules": {"color-contrast": {"enabled": False}}}
# Each way of text to look that this process has found good: judging colours takes most of axe's time.
JUDGED: dict[str, set[str]] = {"light": set(), "dark": set()}
# How a text looks is what its contrast depends on: its colour and size, and all that is painted behind it.
JUDGE = """
async ([options, known]) => {
  const seen = new Set(known), grounds = new Map(), fresh = new Map();
  const behind = (element) => {
    if (!element) return "";
    if (!grounds.has(element)) {
      const style = getComputedStyle(element);
      const own = [
        style.backgroundColor === "rgba(0, 0, 0, 0)" ? "" : style.backgroundColor,
        style.backgroundImage === "none" ? "" : style.backgroundImage,
        style.opacity === "1" ? "" : style.opacity,
        ["static", "relative"].includes(style.position) ? "" : style.position,
      ].filter(Boolean).join(" ");
      grounds.set(element, (own && own + " on ") + behind(element.parentElement));
    }
    return grounds.get(element);
  };
  const speaks = (element) =>
    element.matches("input, select, textarea") ||
    [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  for (const element of document.querySelectorAll("body *")) {
    if (!speaks(element) || !element.checkVisibility()) continue;
    const style = getComputedStyle(element);
    const off = element.closest("[disabled], [aria-disabled=true]") ? "off" : "";
    const letters = [style.color, style.fontSize, style.fontWeight, style.textShadow];
    const look = [...letters, off, behind(element)].join("; ");
    // Three of each, for one may lie under something else.
    if (!seen.has(look)) fresh.set(look, [...(fresh.get(look) ?? []), element].slice(0, 3));
  }
  const include = [...fresh.values()].flat();
  const answer = include.length ? await axe.run({ include }, options) : { violations: [] };
  return { violations: answer.violations, judged: [...fresh.keys()] };
}
"""
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
    """What axe has to say about the page as it stands: everything in light, colours in dark too."""
    page.evaluate(AXE_SCRIPT)
    said = told(page, "light", page.evaluate("options => axe.run(options)", FEW | SHAPES))
    for theme in ("light", "dark"):
        show(page, theme)
        said += faint(page, theme)
    show(page, "light")
    return said


def told(page: Page, theme: str, answer: Any) -> list[str]:
    return [
        f"{page.url} ({theme}) {found['id']}: {node['target']} {node['failureSummary']}"
        for found in answer["violations"]
        for node in found["nodes"]
    ]


def faint(page: Page, theme: str) -> list[str]:
    """Text that is hard to read; colours that were judged before, on this page or another, are not again."""
    answer = page.evaluate(JUDGE, [FEW | COLOURS, sorted(JUDGED[theme])])
    said = told(page, theme, answer)
    if not said:
        JUDGED[theme].update(answer["judged"])
    return said


def show(page: Page, theme: str) -> None:
    """Change the light and wait until the colours are there."""
    page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]  # the two words it knows
    shown = page.evaluate(
        "async () => { await new Promise(requestAnimationFrame);"
        "return getComputedStyle(document.documentElement).colorScheme }"
    )
    assert shown == theme


def overflows(page: Page) -> list[str]:
    """The screen widths at which the page has to be moved sideways to be read."""
    said = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        over = page.evaluate("document.scrollingElement.scrollWidth - document.scrollingElement.clientWidth")
        if over > 0:
            said.append(f"{page.url} is {over} px too wide for {width}")
    return said
