"""Unicode ranges of invisible characters, and of the scripts in which they are legitimate."""

import re


def expand_ranges(ranges: str) -> str:
    """Convert ranges of hexadecimal code points to the content of a regex character class.

    Hexadecimal notation keeps this file itself free of hidden characters.
    """
    return "".join(
        "-".join(f"\\U{int(code_point, 16):08X}" for code_point in part.split("-")) for part in ranges.split()
    )


def compile_character_class(ranges: str) -> re.Pattern[str]:
    return re.compile(f"[{expand_ranges(ranges)}]")


# A lookahead that never matches.
NEVER_MATCHES_REGEX = "(?!)"


def compile_run_pattern(ranges: str, unless: str = NEVER_MATCHES_REGEX) -> re.Pattern[str]:
    """Compile a pattern for runs of these characters, except runs whose first character `unless` follows.

    The quantifier is possessive, so that a run is read only once. The pattern begins with a single character
    class, so that the regex engine can skip to the next such character.
    """
    return re.compile(f"[{expand_ranges(ranges)}](?!{unless})[{expand_ranges(ranges)}]*+")


# --- invisible characters ------------------------------------------------------------------------------

# Soft hyphen, grapheme joiner, Hangul fillers, Khmer inherent vowels, Mongolian vowel separator, zero widths,
# word joiner and invisible operators, deprecated formats, byte order mark, interlinear marks, shorthand and
# musical formats, and code points reserved as default ignorable.
INVISIBLE_CHARACTERS = (
    "00AD 034F 115F-1160 17B4-17B5 180E 200B-200D 2060-2065 206A-206F 3164 FEFF FFA0 FFF0-FFFB "
    "1BCA0-1BCA3 1D173-1D17A E0080-E00FF E01F0-E0FFF"
)
# Embeddings, overrides and isolates reorder text; marks only set the direction of neutral characters.
BIDI_CONTROLS = "202A-202E 2066-2069"
BIDI_MARKS = "061C 200E-200F"
TAG_CHARACTERS = "E0000-E007F"
VARIATION_SELECTORS = "180B-180D 180F FE00-FE0F E0100-E01EF"
# All control characters except tab, line ends and form feed, which text files use.
CONTROL_CHARACTERS = "0000-0008 000E-001F 007F-0084 0086-009F"
HIDDEN_CHARACTERS = (
    f"{INVISIBLE_CHARACTERS} {BIDI_CONTROLS} {BIDI_MARKS} {TAG_CHARACTERS} {VARIATION_SELECTORS} "
    f"{CONTROL_CHARACTERS}"
)

# --- scripts that need invisible characters ------------------------------------------------------------

RIGHT_TO_LEFT_SCRIPTS = "0590-060F 061B 061D-08FF FB1D-FDFF FE70-FEFC 10800-10FFF 1E800-1EFFF"
# Scripts with joining letters: Arabic and related scripts, Mongolian, and Indic scripts.
JOINING_SCRIPTS = (
    "0600-061B 061D-07FF 0840-08FF 0900-0DFF 0F00-109F 1700-17B3 17B6-180A 1810-18AF 1A20-1AAF 1B00-1C4F "
    "1CD0-1CFF A800-A8FF A980-A9DF AA60-AADF ABC0-ABFF FB50-FDFF FE70-FEFC 10A00-10AFF 10D00-10D3F "
    "10F30-10FDF 11000-11FFF 1E900-1E95F"
)
# Scripts without spaces between words, where a zero-width space marks a possible line break.
UNSPACED_SCRIPTS = "0E01-0EFF 0F00-109F 1780-17B3 17B6-17FF 1950-19FF 1A20-1AAF A9E0-A9FF AA60-AADF"
HEBREW = "0590-05FF FB1D-FB4F"
MONGOLIAN = "1800-180A 1810-18AF"
JAMO = "1100-115E 1161-11FF A960-A97F D7B0-D7FF"
EMOJI = (
    "00A9 00AE 203C 2049 2122 2139 2190-21FF 2300-23FF 2460-24FF 25A0-27BF 2900-297F 2B00-2BFF 3030 303D "
    "3297 3299 1F000-1FAFF"
)
IDEOGRAPHS = "3400-4DBF 4E00-9FFF F900-FAFF 20000-3FFFF"
# Characters with standardized variants: digit zero, operators, Myanmar, Phags-pa, East Asian signs,
# hieroglyphs.
VARIANT_BASES = (
    "0030 1000-109F 2190-23FF 25A0-27BF 2A00-2AFF 3000-30FF A840-A87F FF01-FF9F FFA1-FFEF "
    f"10AC0-10AFF 13000-1343F {IDEOGRAPHS}"
)

# --- tags ----------------------------------------------------------------------------------------------

# Models read look-alikes of brackets and slashes like the originals.
LESS_THAN_LOOK_ALIKES = "\uff1c\ufe64\u2039\u27e8\u3008"
GREATER_THAN_SIGNS, SLASH_SIGNS = r">\uFF1E\uFE65\u203A\u27E9\u3009", r"/\uFF0F\u2215\u2044"
# Characters that are ignored inside a tag: white space, and the soft hyphens, marks and selectors that other
# rules allow or only warn about. Otherwise they could hide a tag from the tag rules.
TAG_GAP_CHARACTERS = r"\s\u00AD\u061C\u200E\u200F\uFE0E\uFE0F"
# The slash between the bracket and the name of a closing tag, with gaps and an optional backslash before it.
# Adjacent parts match different characters, so that matching takes linear time.
CLOSING_SLASH_REGEX = rf"[{TAG_GAP_CHARACTERS}]*(?:\\[{TAG_GAP_CHARACTERS}]*)?[{SLASH_SIGNS}]"
