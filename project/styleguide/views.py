"""The style guide page, which shows the design system to developers. It is available only with DEBUG."""

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
# Colour tokens of the backgrounds on which text is shown.
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
# Colours of buttons; the text on them has the colour `…-content`.
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
    """A colour token with its lowest text contrast ratio in the light and in the dark theme."""

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
    themes = read_themes(STYLES_DIR)
    return {
        "text_swatches": [build_text_swatch(themes, name) for name in TEXT_TOKENS],
        "button_swatches": [build_button_swatch(themes, name) for name in BUTTON_COLOURS],
        "kinds": [
            (kind, label, icon, build_text_swatch(themes, f"--dr-kind-{KIND_TOKENS.get(kind, kind)}"))
            for kind, label, icon in RECORD_KINDS
        ],
        "sizes": TEXT_SIZES,
        "spaces": SPACING_SIZES,
    }


def build_text_swatch(themes: dict[str, dict[str, Colour]], name: str) -> ColourSwatch:
    """Return a text colour with its lowest contrast ratio on any of BACKGROUND_TOKENS."""
    ratios = {
        theme: min(get_contrast_ratio(tokens[name], tokens[background]) for background in BACKGROUND_TOKENS)
        for theme, tokens in themes.items()
    }
    return ColourSwatch(name, round(ratios["light"], 1), round(ratios["dark"], 1))


def build_button_swatch(themes: dict[str, dict[str, Colour]], name: str) -> ColourSwatch:
    ratios = {
        theme: get_contrast_ratio(tokens[f"--color-{name}"], tokens[f"--color-{name}-content"])
        for theme, tokens in themes.items()
    }
    return ColourSwatch(name, round(ratios["light"], 1), round(ratios["dark"], 1))


# --- example data --------------------------------------------------------------------------------------


class ExampleForm(forms.Form):
    """A form with one field of every kind; bound to empty data, its required fields show errors."""

    name = forms.CharField(help_text="As people call it.")
    notes = forms.CharField(required=False, widget=forms.Textarea)
    layout = forms.ChoiceField(choices=[("", "Choose"), ("dramatis", "Dramatis"), ("opal", "Opal")])
    tools = forms.MultipleChoiceField(
        required=False,
        choices=[("read", "read_file"), ("edit", "edit_file")],
        widget=forms.CheckboxSelectMultiple,
    )
    sure = forms.BooleanField(label="I have checked it")


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
        "timestamps": [now - timedelta(seconds=5), now - timedelta(hours=3), now + timedelta(days=40)],
    }
