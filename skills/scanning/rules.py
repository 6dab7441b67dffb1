"""Everything the scanner looks for, a row each: adding a rule is adding a row and a sample in its test."""

from skills.scanning import characters, hidden_instructions, permissions, prompt_tags, unicode_ranges
from skills.scanning.findings import SKILLS_ONLY, Rule
from skills.scanning.prefilter import WORD_OF
from skills.scanning.secrets import (
    LOOK_ALIKE,
    OPEN_SHAPES,
    SHAPES,
    among_all,
    among_long_words,
    anywhere,
    in_one_word,
    needed_sign,
)

# Blocked is what a reviewer cannot see, what would change whose words these are, and what must not be spread;
# the rest may be honest, so a person is told and decides.
UNSEEN_RULES = (
    Rule(
        "invisible-character",
        "block",
        "An invisible character stands here that no script or emoji needs.",
        characters.invisible,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.INVISIBLE),
    ),
    Rule(
        "bidi-control",
        "block",
        "A control character makes text read in another order than it is written.",
        characters.bidi_controls,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.BIDI_CONTROLS),
    ),
    Rule(
        "bidi-mark",
        "block",
        "A direction mark stands far from any right-to-left text, or inside a word.",
        characters.bidi_marks,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.BIDI_MARKS),
    ),
    Rule(
        "tag-character",
        "block",
        "Unicode tag characters spell words that only a model reads.",
        characters.tag_characters,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.TAGS),
    ),
    Rule(
        "variation-selectors",
        "block",
        "Variation selectors stand in a row or behind plain text: they can carry a hidden message.",
        characters.hidden_selectors,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.VARIATION_SELECTORS),
    ),
    # Pasted by accident often enough, and too few to say anything.
    Rule(
        "stray-variation-selector",
        "warn",
        "A variation selector stands behind a character that has no variants.",
        characters.stray_selectors,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.VARIATION_SELECTORS),
    ),
    Rule(
        "control-character",
        "block",
        "A control character stands here; terminals and editors may hide text around it.",
        characters.controls,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.CONTROLS),
    ),
    Rule(
        "mojibake",
        "note",
        "This looks like text once read in the wrong encoding.",
        characters.mojibake,
        needs="hidden",
        may_find=characters.any_of(unicode_ranges.CONTROLS),
    ),
)
CLOSING_RULES = (
    Rule(
        "section-closing",
        "block",
        "This closes a section of the prompt, so that what follows would pass for ours.",
        prompt_tags.section_closings,
        needs="closing",
    ),
    # Opened and closed by the file itself it ends nothing, but it may pose as a section.
    Rule(
        "section-look-alike",
        "warn",
        "The text opens and closes a tag that our prompts use for a section.",
        prompt_tags.section_pairs,
        needs="closing",
    ),
    Rule(
        "field-closing",
        "note",
        "The text closes a tag that our listings use for a field.",
        prompt_tags.fields,
        needs="closing",
    ),
)
SECRET_RULES = (
    *(
        Rule(
            f"secret-{shape.name}",
            "block",
            f"This looks like {shape.called}. Take it out and revoke it.",
            in_one_word(shape),
            needs=needed_sign(shape),
            may_find=among_long_words(shape),
        )
        for shape in SHAPES
    ),
    *(
        Rule(
            f"secret-{shape.name}",
            "block",
            f"This looks like {shape.called}. Take it out and change it.",
            anywhere(shape),
            needs=shape.needs,
            may_find=among_all(shape),
        )
        for shape in OPEN_SHAPES
    ),
    Rule(
        LOOK_ALIKE.name,
        "note",
        f"This has the shape of {LOOK_ALIKE.called}, but its checksum is wrong.",
        in_one_word(LOOK_ALIKE),
        needs=needed_sign(LOOK_ALIKE),
        may_find=among_long_words(LOOK_ALIKE),
    ),
)
WORDING_RULES = (
    Rule(
        "order-in-comment",
        "warn",
        "A comment holds what reads like an order to a model; people do not see it when the page is shown.",
        hidden_instructions.orders_in_comments,
        needs="comment",
    ),
    Rule(
        "order-in-link-title",
        "warn",
        "The title of a link holds what reads like an order to a model.",
        hidden_instructions.orders_in_titles,
        needs="]",
    ),
    Rule(
        "long-base64",
        "warn",
        "A long run of base64: a model may decode what a person does not.",
        hidden_instructions.long_base64,
        needs=WORD_OF[60],
        may_find=hidden_instructions.may_hold_base64,
    ),
)
SKILL_RULES = (
    Rule(
        "wide-tools",
        "warn",
        "The skill asks for tools without any bound.",
        permissions.wide_tools,
        SKILLS_ONLY,
        needs="head",
        may_find=permissions.mentions("tools"),
    ),
    Rule(
        "permission-mode",
        "warn",
        "The skill asks to pass by the harness's permissions.",
        permissions.permission_modes,
        SKILLS_ONLY,
        needs="head",
        may_find=permissions.mentions("permission", "dangerously", "auto", "always", "sandbox"),
    ),
    Rule(
        "skill-hooks",
        "warn",
        "The skill brings hooks or servers: commands that run without being asked for.",
        permissions.hooks,
        SKILLS_ONLY,
        needs="head",
        may_find=permissions.mentions("hooks", "mcp"),
    ),
)

RULES = (*UNSEEN_RULES, *CLOSING_RULES, *SECRET_RULES, *WORDING_RULES, *SKILL_RULES)
