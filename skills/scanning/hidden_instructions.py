"""Finders for instructions that users do not see: in HTML comments, link titles and long base64."""

import re
from collections.abc import Iterator

from skills.scanning.findings import RuleMatch
from skills.scanning.prefilter import TextFeatures

# Typical phrases of prompt injections. Gaps between words are bounded, so that matching takes linear time.
INSTRUCTION_PATTERN = re.compile(
    r"""
      \b(?:ignore|disregard|forget|override|bypass)\b[^.!?\n]{0,40}
      \b(?:instructions?|rules?|prompts?|above|previous|prior)\b
    | \b(?:you\ are\ now|from\ now\ on|act\ as\ (?:an?|the|if)|pretend\ (?:to|that|you))\b
    | \byou\ (?:must|should|shall|need\ to|have\ to|will)\b
    | \b(?:do\ not|don't|never)\ (?:tell|mention|reveal|disclose|inform|show|ask)\b
    | \bwithout\ (?:asking|telling|informing|mentioning|confirmation)\b
    | \b(?:system\ prompt|developer\ mode|jailbreak)\b
    | \b(?:ai|llm|assistant|agent|model|chatbot|claude|gpt|gemini|copilot)s?\ ?[:,!]
    | \b(?:run|execute|eval)\ (?:the|this|these|following)\b
    | \b(?:send|post|upload|forward|exfiltrate|e-?mail)\b[^.!?\n]{0,40}
      \b(?:https?://|keys?|tokens?|passwords?|secrets?|credentials)
    | \b(?:curl|wget|iwr)\ [^\n]{0,60}https?://
    | \b(?:ignorier|vergiss|ignora[rz]?|ignorez|olvida|oublie|negeer|zignoruj)\w{0,4}\b[^.!?\n]{0,40}
      \b(?:anweisung|regel|instruc|instru[çk]|règle|regla|instrukc)
    | (?:игнорируй|забудь)\w{0,4}\b[^.!?\n]{0,40}(?:инструкц|правил)
    | (?:忽略|无视|無視|忘记)[^。\n]{0,20}(?:指令|指示|规则|提示|説明)
    """,
    re.IGNORECASE | re.VERBOSE,
)
# Titles of Markdown links and link definitions, also `[//]: # (…)`, which is used as a comment. A title
# without its closing quote or parenthesis matches too.
LINK_TITLE_PATTERN = re.compile(
    r"\][(:]\s{0,9}+[^\s()]{0,300}+\s{1,9}+"
    r"(?:\"(?P<double>[^\"]{1,500}+)|'(?P<single>[^']{1,500}+)|\((?P<round>[^()]{1,500}+))"
)
# One long line, or at least four lines wrapped as in mail and PEM.
BASE64_PATTERN = re.compile(
    r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/_-]{256,}+={0,2}"
    # The group is not possessive: early releases of Python 3.11 lose matches of possessive groups.
    r"|(?:[A-Za-z0-9+/]{60,76}+\r?\n[ \t>]{0,8}+){3,}[A-Za-z0-9+/]{1,76}+={0,2})"
)
BASE64_LINE_END_PATTERN = re.compile(r"[A-Za-z0-9+/]{60}\Z")
BASE64_CHARACTER_CLASSES = (re.compile(r"[A-Z]"), re.compile(r"[a-z]"), re.compile(r"[0-9]"))


def find_comment_instructions(text: str) -> Iterator[RuleMatch]:
    """Find the first instruction in each HTML comment."""
    for start, end in find_html_comments(text):
        if match := INSTRUCTION_PATTERN.search(text, start, end):
            yield RuleMatch(*match.span())


def find_html_comments(text: str) -> Iterator[tuple[int, int]]:
    """Find HTML comments without a regex, which would take quadratic time on unclosed comments."""
    start = text.find("<!--")
    while start >= 0:
        end = text.find("-->", start + 4)
        yield start, len(text) if end < 0 else end
        start = -1 if end < 0 else text.find("<!--", end)


def find_link_title_instructions(text: str) -> Iterator[RuleMatch]:
    """Find the first instruction in each link title."""
    for title in LINK_TITLE_PATTERN.finditer(text):
        if match := INSTRUCTION_PATTERN.search(text, *title.span(title.lastgroup or 0)):
            yield RuleMatch(*match.span())


def can_contain_base64(features: TextFeatures) -> bool:
    """Return whether the text has a word of 256 characters, or three words that could be lines of base64."""
    long_words = [word for word in features.long_words.split(" ") if len(word) >= 60]
    lines = [word for word in long_words if BASE64_LINE_END_PATTERN.match(word, len(word) - 60)]
    return len(lines) >= 3 or any(len(word) >= 256 for word in long_words)


def find_long_base64(text: str) -> Iterator[RuleMatch]:
    """Find long runs of base64.

    Horizontal rules, paths and hashes are skipped: they do not mix upper case, lower case and digits.
    """
    for match in BASE64_PATTERN.finditer(text):
        if all(character_class.search(text, *match.span()) for character_class in BASE64_CHARACTER_CLASSES):
            yield RuleMatch(*match.span())
