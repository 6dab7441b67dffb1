"""Texts for users follow docs/glossary.md and style: no banned words, sentence case, one spelling."""

import re
from pathlib import Path

import pytest

from tests.translatable_strings import (
    list_python_strings,
    list_template_strings,
    list_translatable_strings,
)

GLOSSARY = Path(__file__).resolve().parent.parent / "docs" / "glossary.md"
# Word or phrase, and what to write instead.
BANNED = {
    r"anew": "again, or the verb itself: rebuild, restart",
    r"told|tells? (?:it|us|them)|say why": "served, added by, a reason is required",
    r"handed|hands? (?:out|over)": "served, assigned, transfer",
    r"heed(?:ed)?": "stop ignoring",
    r"mend(?:ed)?": "fix",
    r"taken? (?:it )?back|put back|put away|taken? off|took off": "remove, restore, roll back, dismiss",
    r"somebody|whoever|whatever|those who|nobody in particular": "another member, or name the role",
    r"(?:look|looks|looked) (?:at|through|again)|a look|last looks?": "check, open, scan, refresh",
    r"stands?": "is, points to, occurs",
    r"in force": "live, effective",
    r"held back|behind": "pinned, outdated",
    r"adopt(?:s|ed|ion)?": "approve",
    r"for (?:good|ever)": "permanently",
    r"e-mail": "email",
    r"log(?:ged|ging)?[ -]?in": "sign in",
    r"time ?zone(?<! zone)": "time zone",
    r"lower-case": "lowercase",
    r"roll-backs?": "rollback",
    r"the house|a room|the door|a wall": "name what it is",
    r"please": "leave it out",
}
BANNED_PATTERN = re.compile(r"(?<![\w{])(?:" + "|".join(BANNED) + r")(?![\w}])", re.IGNORECASE)
PERCENT = re.compile(r"(?:\d|\}|s) %(?!\()")
WORD = re.compile(r"[A-Za-z][\w.'’-]*")
# Names that keep their capital letters inside of a sentence.
PROPER_NAMES = {
    *("Agent", "Alt", "Back", "Citus", "Control", "Ctrl", "Dramatis", "Enter", "Europe", "Lisp", "Markdown"),
    *(
        "Mira",
        "Moltis",
        "Nova",
        "Opal",
        "Pi",
        "PTC",
        "Python",
        "Schema",
        "Skills",
        "Studio",
        "Tab",
        "Unicode",
    ),
    *("Vienna",),
}


def find_wording_faults(text: str) -> list[str]:
    """Return what a text breaks: a banned word, a space before %, or words in title case."""
    plain = re.sub(r"<[^>]*>|\{\{[^}]*\}\}|%\(\w+\)[sd]|\{\w+\}|“[^”]*”|manage\.py \w+|\S+_\S+", " x ", text)
    faults = [f"“{match[0]}”" for match in BANNED_PATTERN.finditer(plain)]
    if PERCENT.search(re.sub(r"\{\{[^}]*\}\}", "}", text)):
        faults.append("a space before %")
    for sentence in re.split(r"[.:?!/…]\s*|\s[x–—]\s|, ", plain):
        words = WORD.findall(sentence)
        capitals = [w for w in words[1:] if w[0].isupper() and w[1:].islower() and w not in PROPER_NAMES]
        if len(capitals) > 1 or (capitals and len(words) <= 3):
            faults.append(f"title case: {' '.join(capitals)}")
    return faults


def test_texts_for_users_follow_the_glossary():
    faults = [
        f"{string.path}:{string.line}: {', '.join(found)}: {string.text}"
        for string in list_translatable_strings()
        if (found := find_wording_faults(string.text))
    ]
    assert faults == []


def test_over_two_thousand_texts_are_read():
    assert len({string.text for string in list_translatable_strings()}) > 2_000


@pytest.mark.planted
@pytest.mark.parametrize(
    "text",
    [
        "Build anew",
        "Somebody else must approve this.",
        "Your E-mail address",
        "{{ share }} % cacheable",
        "98 % cacheable",
        "Confirm Access",
        "Verify Your Email Address",
        "Held back",
        "Prompts handed out",
        "It stands nowhere",
        "Please try again.",
    ],
)
def test_a_planted_text_is_found(text):
    assert find_wording_faults(text)
    (in_template,) = list_template_strings('<p>{% translate "' + text + '" %}</p>')
    (in_block,) = list_template_strings(
        "{% blocktranslate trimmed %}\n  " + text + "\n{% endblocktranslate %}"
    )
    (in_python,) = list_python_strings(f"label = _({text!r})")
    assert {in_template.text, in_block.text, in_python.text} == {text}


@pytest.mark.parametrize("text", ["98% cacheable", "Open in Studio", "API keys", "Time zone of the call"])
def test_good_texts_pass(text):
    assert find_wording_faults(text) == []


def test_the_glossary_names_the_words_in_use():
    text = GLOSSARY.read_text(encoding="utf-8")
    for term in (
        "served",
        "outdated",
        "pinned",
        "effective",
        "override",
        "reviewer",
        "scan",
        "approve",
        "revert",
    ):
        assert re.search(rf"^\|[^|]*\b{term}\b", text, re.MULTILINE), term
