"""Token counts equal those of bpe_openai, without importing the whole package."""

import subprocess
import sys
from pathlib import Path

import pytest

from prompts.builds.tokens import count_tokens

ROOT = Path(__file__).resolve().parents[3]
# As `bpe_openai.get_encoding("o200k_base").encode_ordinary` counts them.
COUNTED = {
    "": 0,
    "Be brave.": 3,
    "漢字とかな": 4,
    "half a pair: \ud800": 5,
    "<|endoftext|>": 7,
    " " * 50: 1,
    "x" * 1_000: 125,
}


@pytest.mark.parametrize("text", COUNTED, ids=ascii)
def test_a_text_has_as_many_tokens_as_its_vocabulary_says(text):
    assert count_tokens(text) == COUNTED[text]


def test_counting_loads_only_the_extension_module():
    """Importing the package loads three vocabularies: a second, and more memory than the application."""
    code = (
        "import sys, prompts.builds.tokens as t; t.count_tokens('a'); sys.exit('bpe_openai' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False, timeout=60).returncode == 0
