"""The fixed texts have the size and all points of the seeds, but copy none of their sentences."""

import re
from hashlib import sha256
from pathlib import Path

import pytest

from prompts.assembly.texts.default_soul import DEFAULT_SOUL
from prompts.assembly.texts.moltis import EXECUTION_ROUTING, GENERAL_RULES, SILENT_REPLIES, TOOL_CALLING_GUIDE
from prompts.assembly.texts.storage import STORAGE_GUIDE
from prompts.publishing.builds.tokens import count_tokens

# Hashes of every six consecutive words of the soul quoted by the moltis seed, so that no copy is needed.
SEED_SHINGLES = frozenset((Path(__file__).parent / "seed_soul_shingles.txt").read_text().split())
TEXTS = {
    "soul": DEFAULT_SOUL,
    "storage": STORAGE_GUIDE,
    "routing": EXECUTION_ROUTING,
    "calling": TOOL_CALLING_GUIDE,
    "silent replies": SILENT_REPLIES,
    "general rules": "\n".join(GENERAL_RULES),
}


def shingles(text, size=6):
    tokens = re.findall(r"[a-z']+", text.lower())
    runs = (" ".join(tokens[start : start + size]) for start in range(len(tokens) - size + 1))
    return {sha256(run.encode()).hexdigest()[:8] for run in runs}


def test_the_default_soul_is_about_1500_characters_and_400_tokens():
    assert 1_350 <= len(DEFAULT_SOUL) <= 1_650
    assert 300 <= count_tokens(DEFAULT_SOUL) <= 450


@pytest.mark.parametrize("name", TEXTS)
def test_no_six_words_in_a_row_are_those_of_the_seeds_soul(name):
    assert not shingles(TEXTS[name]) & SEED_SHINGLES


def test_the_comparison_would_find_a_copied_sentence():
    copied = "Be careful with external actions (emails, tweets, anything public)."
    assert shingles(copied) <= SEED_SHINGLES


@pytest.mark.parametrize(
    ("point", "phrase"),
    [
        ("helpful without performance", "Help shows in what gets done"),
        ("opinions", "Take a side"),
        ("resourceful before asking", "Look first"),
        ("trust through competence", "Go slowly with whatever leaves the house"),
        ("a guest in someone's life", "Behave like a visitor"),
        ("private things stay private", "goes no further than you"),
        ("ask before acting externally", "check before it happens"),
        ("no half-baked replies", "only when it is finished"),
        ("not the user's voice", "never speak in your user's name"),
        ("vibe", "Short by default, complete when much depends on it"),
        ("continuity", "Every session begins without yesterday"),
        ("say so when the soul changes", "let your user know"),
    ],
)
def test_the_default_soul_makes_every_point_of_the_seed(point, phrase):
    assert phrase in DEFAULT_SOUL


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_begins_and_ends_with_words_and_has_no_stray_spaces(name):
    text = TEXTS[name]
    assert text == text.strip()
    assert "  " not in text
    assert not re.search(r" $", text, re.MULTILINE)


def test_routing_mentions_sandbox_host_and_sudo():
    assert all(
        word in EXECUTION_ROUTING for word in ("`exec`", "sandbox", "host", "sudo_non_interactive=true")
    )
