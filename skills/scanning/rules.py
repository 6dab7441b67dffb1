"""The table of scan rules. To add a rule, add a row here and a sample in its test."""

from skills.scanning import characters, hidden_instructions, permissions, prompt_tags, unicode_ranges
from skills.scanning.findings import SKILL_TEXT_KINDS, ScanRule
from skills.scanning.prefilter import WORD_LENGTH_FEATURES
from skills.scanning.secrets import (
    EMBEDDED_SECRET_PATTERNS,
    OWN_KEY_LOOK_ALIKE,
    TOKEN_PATTERNS,
    build_embedded_finder,
    build_embedded_prefilter,
    build_token_finder,
    build_token_prefilter,
    get_required_feature,
)

# The severity "block" is for text that a reviewer cannot see, that imitates the prompt, or that is secret.
# Everything else may be legitimate: it is reported, and a user decides.
HIDDEN_CHARACTER_RULES = (
    ScanRule(
        "invisible-character",
        "block",
        "Invisible character that no script or emoji needs. It can hide instructions. Remove it.",
        characters.find_invisible_characters,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.INVISIBLE_CHARACTERS),
    ),
    ScanRule(
        "bidi-control",
        "block",
        "Control character that changes the displayed order of the text. Remove it.",
        characters.find_bidi_controls,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.BIDI_CONTROLS),
    ),
    ScanRule(
        "bidi-mark",
        "block",
        "Direction mark without right-to-left text next to it, or inside a word. Remove it.",
        characters.find_bidi_marks,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.BIDI_MARKS),
    ),
    ScanRule(
        "tag-character",
        "block",
        "Unicode tag characters: text that models can read and people cannot see. Remove them.",
        characters.find_tag_characters,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.TAG_CHARACTERS),
    ),
    ScanRule(
        "variation-selectors",
        "block",
        (
            "Several variation selectors in a row, or after plain text. They can carry a hidden message. "
            "Remove them."
        ),
        characters.find_hidden_selectors,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.VARIATION_SELECTORS),
    ),
    # One or two variation selectors are often pasted by accident, and are too few to carry a hidden message.
    ScanRule(
        "stray-variation-selector",
        "warn",
        "Variation selector after a character that has no variants. Remove it.",
        characters.find_stray_selectors,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.VARIATION_SELECTORS),
    ),
    ScanRule(
        "control-character",
        "block",
        "Control character. Terminals and editors may hide the text around it. Remove it.",
        characters.find_control_characters,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.CONTROL_CHARACTERS),
    ),
    ScanRule(
        "mojibake",
        "note",
        "This looks like text that was read with the wrong encoding.",
        characters.find_mojibake,
        needs="hidden",
        may_find=characters.build_range_prefilter(unicode_ranges.CONTROL_CHARACTERS),
    ),
)
PROMPT_TAG_RULES = (
    ScanRule(
        "section-closing",
        "block",
        "This closes a section of the prompt, so the text after it would look like part of the layout.",
        prompt_tags.find_section_closings,
        needs="closing",
    ),
    # A tag that the text itself opens and closes does not end a section of the prompt, but may imitate one.
    ScanRule(
        "section-look-alike",
        "warn",
        "The text opens and closes a tag that prompts use for a section.",
        prompt_tags.find_section_pairs,
        needs="closing",
    ),
    ScanRule(
        "field-closing",
        "note",
        "The text closes a tag that lists in prompts use for a field.",
        prompt_tags.find_field_closings,
        needs="closing",
    ),
)
SECRET_RULES = (
    *(
        ScanRule(
            f"secret-{pattern.name}",
            "block",
            f"This looks like {pattern.label}. Remove and revoke it.",
            build_token_finder(pattern),
            needs=get_required_feature(pattern),
            may_find=build_token_prefilter(pattern),
        )
        for pattern in TOKEN_PATTERNS
    ),
    *(
        ScanRule(
            f"secret-{pattern.name}",
            "block",
            f"This looks like {pattern.label}. Remove and change it.",
            build_embedded_finder(pattern),
            needs=pattern.needs,
            may_find=build_embedded_prefilter(pattern),
        )
        for pattern in EMBEDDED_SECRET_PATTERNS
    ),
    ScanRule(
        OWN_KEY_LOOK_ALIKE.name,
        "note",
        f"This looks like {OWN_KEY_LOOK_ALIKE.label}, but its checksum is wrong.",
        build_token_finder(OWN_KEY_LOOK_ALIKE),
        needs=get_required_feature(OWN_KEY_LOOK_ALIKE),
        may_find=build_token_prefilter(OWN_KEY_LOOK_ALIKE),
    ),
)
HIDDEN_INSTRUCTION_RULES = (
    ScanRule(
        "order-in-comment",
        "warn",
        (
            "A comment contains text that reads like instructions to a model. It is not visible on the "
            "rendered page."
        ),
        hidden_instructions.find_comment_instructions,
        needs="comment",
    ),
    ScanRule(
        "order-in-link-title",
        "warn",
        "The title of a link contains text that reads like instructions to a model.",
        hidden_instructions.find_link_title_instructions,
        needs="]",
    ),
    ScanRule(
        "long-base64",
        "warn",
        "Long base64 text. A model may decode it, but people cannot read it.",
        hidden_instructions.find_long_base64,
        needs=WORD_LENGTH_FEATURES[60],
        may_find=hidden_instructions.can_contain_base64,
    ),
)
PERMISSION_RULES = (
    ScanRule(
        "wide-tools",
        "warn",
        "The skill requests tools without limits.",
        permissions.find_unbounded_tools,
        SKILL_TEXT_KINDS,
        needs="head",
        may_find=permissions.build_keyword_prefilter("tools"),
    ),
    ScanRule(
        "permission-mode",
        "warn",
        "The skill tries to bypass the permissions of the harness.",
        permissions.find_permission_modes,
        SKILL_TEXT_KINDS,
        needs="head",
        may_find=permissions.build_keyword_prefilter(
            "permission", "dangerously", "auto", "always", "sandbox"
        ),
    ),
    ScanRule(
        "skill-hooks",
        "warn",
        "The skill contains hooks or servers, which run commands automatically.",
        permissions.find_hooks,
        SKILL_TEXT_KINDS,
        needs="head",
        may_find=permissions.build_keyword_prefilter("hooks", "mcp"),
    ),
)

SCAN_RULES = (
    *HIDDEN_CHARACTER_RULES,
    *PROMPT_TAG_RULES,
    *SECRET_RULES,
    *HIDDEN_INSTRUCTION_RULES,
    *PERMISSION_RULES,
)
