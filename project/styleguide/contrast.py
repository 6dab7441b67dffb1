"""WCAG contrast ratio of the colour tokens in the style sheets."""

import math
import re
from dataclasses import dataclass
from pathlib import Path

THEME_PATTERN = re.compile(r'@plugin "daisyui/theme" \{(.*?)\n\}', re.DOTALL)
TOKEN_PATTERN = re.compile(r"(--[\w-]+): oklch\(([\d.]+)% ([\d.]+) ([\d.]+)\);")
DERIVED_TOKEN_PATTERN = re.compile(r"(--[\w-]+): oklch\(from var\((--[\w-]+)\) l c ([\d.]+)\);")
THEME_NAME_PATTERN = re.compile(r'name: "(\w+)"')


@dataclass(frozen=True)
class Colour:
    """A colour in Oklch: lightness from 0 to 1, chroma, hue in degrees."""

    lightness: float
    chroma: float
    hue: float

    def luminance(self) -> float:
        """Return the relative luminance; values outside the sRGB gamut are clipped."""
        red, green, blue = (min(1.0, max(0.0, channel)) for channel in self.to_linear_srgb())
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    def to_linear_srgb(self) -> tuple[float, float, float]:
        """Convert Oklch to linear sRGB with the matrices of the definition of Oklab."""
        a = self.chroma * math.cos(math.radians(self.hue))
        b = self.chroma * math.sin(math.radians(self.hue))
        long = (self.lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3
        middle = (self.lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3
        short = (self.lightness - 0.0894841775 * a - 1.2914855480 * b) ** 3
        return (
            4.0767416621 * long - 3.3077115913 * middle + 0.2309699292 * short,
            -1.2684380046 * long + 2.6097574011 * middle - 0.3413193965 * short,
            -0.0041960863 * long - 0.7034186147 * middle + 1.7076147010 * short,
        )


def get_contrast_ratio(one: Colour, other: Colour) -> float:
    """Return the contrast ratio, from 1 to 21."""
    bright, dark = sorted((one.luminance(), other.luminance()), reverse=True)
    return (bright + 0.05) / (dark + 0.05)


def read_themes(styles: Path) -> dict[str, dict[str, Colour]]:
    """Return the opaque colour tokens of each theme in themes.css.

    Tokens that versions.css derives from them, with another hue, are included.
    """
    themes = {}
    hues = DERIVED_TOKEN_PATTERN.findall((styles / "versions.css").read_text())
    for block in THEME_PATTERN.findall((styles / "themes.css").read_text()):
        tokens = {name: parse_colour(*parts) for name, *parts in TOKEN_PATTERN.findall(block)}
        derived = {
            name: Colour(tokens[base].lightness, tokens[base].chroma, float(h)) for name, base, h in hues
        }
        [name] = THEME_NAME_PATTERN.findall(block)
        themes[name] = tokens | derived
    return themes


def parse_colour(lightness: str, chroma: str, hue: str) -> Colour:
    return Colour(float(lightness) / 100, float(chroma), float(hue))
