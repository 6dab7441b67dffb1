"""Texts for users follow docs/glossary.md and style: no banned words, sentence case, one spelling.

This covers texts for translation, other messages in Python (API, commands, doctor) and documentation.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.translatable_strings import (
    TranslatableString,
    list_python_strings,
    list_template_strings,
    list_translatable_strings,
)
from tests.user_texts import list_documentation, list_messages, list_paragraphs, list_python_messages

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
    r"the house|rooms?|the door|(?:second )?walls?": "installation, disk space, row-level security",
    r"please": "leave it out",
    r"here and now": "now",
    r"(?:its|the|their|these|other|new|personal|same) words": "text",
    r"moments?": "time",
    r"all the same|for its part|put off": "leave it out, or name the exception",
    r"else than|by another way": "other than, through another channel",
    r"lies": "is",
    r"no such|there is no such": "X not found",
    r"vouch(?:es|ed)?": "prove, verify",
    r"said": "stated, served",
    r"does not take that|may not do that|will do": "does not support, is not allowed to",
}


def compile_banned(names: Iterable[str]) -> re.Pattern[str]:
    return re.compile(r"(?<![\w{])(?:" + "|".join(names) + r")(?![\w}])", re.IGNORECASE)


BANNED_PATTERN = compile_banned(BANNED)
# Documentation may describe a server behind a proxy, and quote former names.
BANNED_IN_DOCUMENTATION = compile_banned(
    set(BANNED) - {r"held back|behind", r"adopt(?:s|ed|ion)?", r"no such|there is no such"}
)
# Content that is stored or specified elsewhere, by path and text.
ALLOWED_MESSAGES = {
    ("personas/persona_files/api.py", "timezone"),
    ("project/management/commands/create_db_role.py", "behind"),
}
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


def find_banned_messages(messages: Iterable[TranslatableString]) -> Iterator[str]:
    """Yield messages in Python with a banned word. Names in quotes and with underscores are not checked."""
    for message in messages:
        plain = re.sub(r"“[^”]*”|\S+_\S+", " ", message.text)
        for match in BANNED_PATTERN.finditer(plain):
            if (message.path, match[0].lower()) not in ALLOWED_MESSAGES:
                yield f"{message.path}:{message.line}: “{match[0]}”: {message.text}"


def find_banned_paragraphs(paragraphs: Iterable[TranslatableString]) -> Iterator[str]:
    for paragraph in paragraphs:
        plain = re.sub(r"“[^”]*”|\"[^\"]{1,60}\"|\S+_\S+", " ", paragraph.text)
        for match in BANNED_IN_DOCUMENTATION.finditer(plain):
            start = max(match.start() - 40, 0)
            yield f"{paragraph.path}:{paragraph.line}: “{match[0]}”: {plain[start : match.end() + 40]}"


def test_messages_in_python_follow_the_glossary():
    assert list(find_banned_messages(list_python_messages())) == []


def test_documentation_follows_the_glossary():
    assert list(find_banned_paragraphs(list_documentation())) == []


def test_messages_and_documentation_are_read():
    paths = {message.path for message in list_python_messages()}
    assert {
        "prompts/serving/errors.py",
        "project/doctor/checks.py",
        "prompts/proof/evidence_checks.py",
        "prompts/management/commands/verify_chain.py",
        "clients/python/src/dramatis_client/responses.py",
    } <= paths
    assert {"README.md", "SECURITY.md", "docs/operations.md", "clients/python/README.md"} <= {
        paragraph.path for paragraph in list_documentation()
    }


@pytest.mark.planted
@pytest.mark.parametrize(
    "text",
    ["Prompts cannot be handed out right now.", "Start it, or mend the URL.", "Use the second wall."],
)
def test_a_planted_message_is_found(text):
    assert list(find_banned_messages(list_messages(f"raise CommandError({text!r})")))
    assert list(find_banned_messages(list_messages(f"raise ValueError(f'{text} {{number}}')")))
    assert list(find_banned_paragraphs(list_paragraphs(f"# Title\n\nFirst line.\n{text}\n")))
    assert list(find_banned_messages(list_messages(f'def serve():\n    """{text}"""'))) == []
    assert list(find_banned_paragraphs(list_paragraphs(f"```text\n{text}\n```\n"))) == []


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
