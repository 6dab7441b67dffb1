"""The design system on one page, for those who build pages; only where errors are shown in full."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from django import forms
from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from core.text.diff import diff_lines
from project.styleguide.contrast import Colour, get_contrast_ratio, read_themes

STYLES_DIR = Path(settings.BASE_DIR) / "frontend" / "css"
# Words are set on these.
BACKGROUND_TOKENS = ("--dr-canvas", "--dr-raised", "--dr-sunken")
TEXT_TOKENS = (
    "--color-base-content",
    "--dr-muted",
    "--dr-link",
    "--dr-info",
    "--dr-success",
    "--dr-warning",
    "--dr-error",
    "--dr-accent",
)
# The ground of a button, and the words on it.
BUTTON_COLOURS = ("primary", "secondary", "accent", "neutral", "info", "success", "warning", "error")
RECORD_KINDS = (
    ("identity", "Identity", "identity"),
    ("soul", "Soul", "soul"),
    ("agent", "Agent", "agents"),
    ("responsibility", "Responsibility", "duty"),
    ("tool", "Tool", "tool"),
    ("skill", "Skill", "skill"),
    ("context-file", "Context file", "file"),
    ("memory", "Memory", "memory"),
    ("user-profile", "User profile", "profile"),
    ("channel", "Channel", "channel"),
)
KIND_TOKENS = {"context-file": "file", "user-profile": "user"}
TEXT_SIZES = (
    ("text-xs", "12 px"),
    ("text-sm", "14 px"),
    ("text-base", "16 px"),
    ("text-lg", "18 px"),
    ("text-xl", "20 px"),
)
SPACING_SIZES = (4, 8, 12, 16, 20, 24, 32)


@dataclass(frozen=True)
class ColourSwatch:
    """A token with how well words in it, or on it, can be read: the worst case of each theme."""

    name: str
    light: float
    dark: float


@login_not_required
@require_safe
def styleguide(request: HttpRequest) -> HttpResponse:
    if not settings.DEBUG:
        raise Http404("Only in development.")
    return render(request, "styleguide.html", build_colour_context() | build_example_context())


def build_colour_context() -> dict[str, Any]:
    known = read_themes(STYLES_DIR)
    return {
        "words": [build_text_swatch(known, name) for name in TEXT_TOKENS],
        "pairs": [build_button_swatch(known, name) for name in BUTTON_COLOURS],
        "kinds": [
            (look, word, icon, build_text_swatch(known, f"--dr-kind-{KIND_TOKENS.get(look, look)}"))
            for look, word, icon in RECORD_KINDS
        ],
        "sizes": TEXT_SIZES,
        "spaces": SPACING_SIZES,
    }


def build_text_swatch(known: dict[str, dict[str, Colour]], name: str) -> ColourSwatch:
    """Against the least favourable of the grounds."""
    worst = {
        theme: min(get_contrast_ratio(tokens[name], tokens[ground]) for ground in BACKGROUND_TOKENS)
        for theme, tokens in known.items()
    }
    return ColourSwatch(name, round(worst["light"], 1), round(worst["dark"], 1))


def build_button_swatch(known: dict[str, dict[str, Colour]], name: str) -> ColourSwatch:
    found = {
        theme: get_contrast_ratio(tokens[f"--color-{name}"], tokens[f"--color-{name}-content"])
        for theme, tokens in known.items()
    }
    return ColourSwatch(name, round(found["light"], 1), round(found["dark"], 1))


# --- specimens -----------------------------------------------------------------------------------------


class ExampleForm(forms.Form):
    """One field of every kind; bound to nothing, so that each required one complains."""

    name = forms.CharField(help_text="As people call it.")
    notes = forms.CharField(required=False, widget=forms.Textarea)
    layout = forms.ChoiceField(choices=[("", "Choose"), ("dramatis", "Dramatis"), ("opal", "Opal")])
    tools = forms.MultipleChoiceField(
        required=False,
        choices=[("read", "read_file"), ("edit", "edit_file")],
        widget=forms.CheckboxSelectMultiple,
    )
    sure = forms.BooleanField(label="I have looked at it")


def build_example_context() -> dict[str, Any]:
    now = timezone.now()
    return {
        "plain_form": ExampleForm(initial={"name": "Juniper"}, auto_id="plain_%s"),
        "refused_form": ExampleForm({"name": ""}, auto_id="refused_%s"),
        "page": Paginator([f"Row {number}" for number in range(1, 240)], 3).get_page(4),
        "filters": [
            {"name": "state", "label": "State", "options": [("", "All"), ("live", "Live")], "value": ""}
        ],
        "conflict": SimpleNamespace(
            who="Bob",
            when=now - timedelta(minutes=3),
            revision=4,
            changes=[SimpleNamespace(label="Text", theirs="Be quick.", yours="Be kind, then quick.")],
        ),
        "sections": [
            {"name": "identity", "tokens": 120, "kind": "identity"},
            {"name": "soul", "tokens": 380, "kind": "soul"},
            {"name": "tools", "tokens": 610, "kind": "tool"},
            {"name": "memories", "tokens": 240, "kind": "memory"},
        ],
        "lines": diff_lines(
            "Be calm.\nAnswer within the hour.", "Be calm and exact.\nAnswer within the hour."
        ),
        "moments": [now - timedelta(seconds=5), now - timedelta(hours=3), now + timedelta(days=40)],
    }
