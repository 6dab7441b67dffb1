"""Which characters are invisible, and beside which others each has honest work, as hexadecimal ranges."""

import re


def expand_ranges(ranges: str) -> str:
    """The inside of a character class; hexadecimal, so that no source file holds what the scanner hunts."""
    return "".join(
        "-".join(f"\\U{int(code_point, 16):08X}" for code_point in part.split("-")) for part in ranges.split()
    )


def compile_character_class(ranges: str) -> re.Pattern[str]:
    return re.compile(f"[{expand_ranges(ranges)}]")


# Never holds.
NEVER_MATCHES_REGEX = "(?!)"


def compile_run_pattern(ranges: str, unless: str = NEVER_MATCHES_REGEX) -> re.Pattern[str]:
    """Runs, unless something holds behind the first: what the pattern passes by costs no call.

    Possessive, so that a run is read once; the first stands alone, so that the engine can skip to it.
    """
    return re.compile(f"[{expand_ranges(ranges)}](?!{unless})[{expand_ranges(ranges)}]*+")


# --- what cannot be seen -------------------------------------------------------------------------------

# Soft hyphen, grapheme joiner, Hangul fillers, Khmer inherent vowels, Mongolian vowel separator, zero widths,
# word joiner and invisible operators, deprecated formats, byte order mark, interlinear marks, shorthand and
# musical formats, and what Unicode keeps free as ignorable.
INVISIBLE_CHARACTERS = (
    "00AD 034F 115F-1160 17B4-17B5 180E 200B-200D 2060-2065 206A-206F 3164 FEFF FFA0 FFF0-FFFB "
    "1BCA0-1BCA3 1D173-1D17A E0080-E00FF E01F0-E0FFF"
)
# Embeddings, overrides and isolates reorder what is read; marks only settle where a neutral one belongs.
BIDI_CONTROLS = "202A-202E 2066-2069"
BIDI_MARKS = "061C 200E-200F"
TAG_CHARACTERS = "E0000-E007F"
VARIATION_SELECTORS = "180B-180D 180F FE00-FE0F E0100-E01EF"
# Tab, line ends and form feed are how text files are laid out.
CONTROL_CHARACTERS = "0000-0008 000E-001F 007F-0084 0086-009F"
HIDDEN_CHARACTERS = (
    f"{INVISIBLE_CHARACTERS} {BIDI_CONTROLS} {BIDI_MARKS} {TAG_CHARACTERS} {VARIATION_SELECTORS} "
    f"{CONTROL_CHARACTERS}"
)

# --- where some of them belong -------------------------------------------------------------------------

RIGHT_TO_LEFT_SCRIPTS = "0590-060F 061B 061D-08FF FB1D-FDFF FE70-FEFC 10800-10FFF 1E800-1EFFF"
# Arabic and its kin, Mongolian, and the scripts of India and its neighbours, whose letters join.
JOINING_SCRIPTS = (
    "0600-061B 061D-07FF 0840-08FF 0900-0DFF 0F00-109F 1700-17B3 17B6-180A 1810-18AF 1A20-1AAF 1B00-1C4F "
    "1CD0-1CFF A800-A8FF A980-A9DF AA60-AADF ABC0-ABFF FB50-FDFF FE70-FEFC 10A00-10AFF 10D00-10D3F "
    "10F30-10FDF 11000-11FFF 1E900-1E95F"
)
# Scripts without spaces between words, where a zero-width space says where a line may break.
UNSPACED_SCRIPTS = "0E01-0EFF 0F00-109F 1780-17B3 17B6-17FF 1950-19FF 1A20-1AAF A9E0-A9FF AA60-AADF"
HEBREW = "0590-05FF FB1D-FB4F"
MONGOLIAN = "1800-180A 1810-18AF"
JAMO = "1100-115E 1161-11FF A960-A97F D7B0-D7FF"
EMOJI = (
    "00A9 00AE 203C 2049 2122 2139 2190-21FF 2300-23FF 2460-24FF 25A0-27BF 2900-297F 2B00-2BFF 3030 303D "
    "3297 3299 1F000-1FAFF"
)
IDEOGRAPHS = "3400-4DBF 4E00-9FFF F900-FAFF 20000-3FFFF"
# Digit nought, operators, Myanmar, Phags-pa, East Asian signs, hieroglyphs: what has standard variants.
VARIANT_BASES = (
    "0030 1000-109F 2190-23FF 25A0-27BF 2A00-2AFF 3000-30FF A840-A87F FF01-FF9F FFA1-FFEF "
    f"10AC0-10AFF 13000-1343F {IDEOGRAPHS}"
)

# --- what looks like a tag -----------------------------------------------------------------------------

# A model reads look-alikes of brackets and slashes as what they look like.
LESS_THAN_LOOK_ALIKES = "\uff1c\ufe64\u2039\u27e8\u3008"
GREATER_THAN_SIGNS, SLASH_SIGNS = r">\uFF1E\uFE65\u203A\u27E9\u3009", r"/\uFF0F\u2215\u2044"
# Marks and selectors that other rules let pass or merely warn of, and so could keep a tag from being seen.
TAG_GAP_CHARACTERS = r"\s\u061C\u200E\u200F\uFE0E\uFE0F"
# Between the bracket of a closing tag and its name; after each part the next is of another kind, so that no
# run is read twice.
CLOSING_SLASH_REGEX = rf"[{TAG_GAP_CHARACTERS}]*(?:\\[{TAG_GAP_CHARACTERS}]*)?[{SLASH_SIGNS}]"
