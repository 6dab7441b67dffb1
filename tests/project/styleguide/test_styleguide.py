"""The style guide page, and the contrast of every text colour."""

import pytest

from project.styleguide.contrast import Colour, get_contrast_ratio, read_themes
from project.styleguide.views import STYLES_DIR, build_colour_context

BLACK, WHITE, GREY = Colour(0, 0, 0), Colour(1, 0, 0), Colour(0.5, 0, 0)


@pytest.mark.django_db
def test_the_guide_is_there_in_development_only(client, settings):
    assert client.get("/styleguide/").status_code == 404
    settings.DEBUG = True
    page = client.get("/styleguide/").content.decode()
    for part in (
        "Release 12 prompts",
        "Undo",
        "is-user-profile",
        "dr-token-bar",
        "No souls yet",
        "aria-invalid",
    ):
        assert part in page


def test_contrast_is_the_formula_of_the_guidelines():
    assert round(get_contrast_ratio(BLACK, WHITE), 1) == 21.0
    assert get_contrast_ratio(GREY, GREY) == 1.0
    # #777 on white, a known borderline case; its lightness in Oklch is 56.8 %.
    assert get_contrast_ratio(Colour(0.568, 0, 0), WHITE) == pytest.approx(4.48, abs=0.05)
    # Pure red of sRGB.
    assert get_contrast_ratio(Colour(0.62796, 0.25768, 29.234), WHITE) == pytest.approx(4.0, abs=0.02)


def test_every_text_colour_has_enough_contrast_in_both_themes():
    context = build_colour_context()
    for swatch in [
        *context["text_swatches"],
        *context["button_swatches"],
        *(kind[3] for kind in context["kinds"]),
    ]:
        assert min(swatch.light, swatch.dark) >= 4.5, swatch


def test_a_pale_token_would_be_found(tmp_path):
    for name in ("themes.css", "versions.css"):
        (tmp_path / name).write_text((STYLES_DIR / name).read_text())
    pale = (
        (STYLES_DIR / "themes.css").read_text().replace("--dr-muted: oklch(47%", "--dr-muted: oklch(72%", 1)
    )
    (tmp_path / "themes.css").write_text(pale)
    light = read_themes(tmp_path)["light"]
    assert get_contrast_ratio(light["--dr-muted"], light["--dr-canvas"]) < 4.5
