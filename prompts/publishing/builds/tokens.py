"""Count tokens with the o200k_base vocabulary of the package bpe_openai, without network access."""

from collections.abc import Sequence
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import Any

from core.shared_cache import SharedLRUCache

TOKENIZER_PACKAGE, TOKENIZER_MODULE = "bpe_openai", "bpe_openai._bindings"

# Limit of the cache of token counts, which helps because an edit changes few segments of a prompt. The cache
# also keeps the texts, so it is limited by the sum of their tokens. A million tokens are about 5 MB.
MAX_CACHED_TOKENS = 1_000_000
# The memory that an entry needs besides its text, expressed in tokens.
ENTRY_SIZE = 50
COUNTS: SharedLRUCache[str, int] = SharedLRUCache(MAX_CACHED_TOKENS, lambda count: count + ENTRY_SIZE)


@cache
def _load_tokenizer() -> Any:
    """Load the tokenizer from the extension module of bpe_openai.

    Importing the package itself would load three vocabularies, which takes a second.
    """
    package = find_spec(TOKENIZER_PACKAGE)
    spec = PathFinder.find_spec(TOKENIZER_MODULE, package.submodule_search_locations) if package else None
    if spec is None or spec.loader is None:
        raise ImportError(f"{TOKENIZER_MODULE} is not installed.")
    engine: Any = module_from_spec(spec)
    spec.loader.exec_module(engine)
    return engine.tokenizer_for_encoding("o200k_base")


def count_tokens(text: str) -> int:
    """Count the tokens of a text. Models with another tokenizer differ by a few per cent."""
    return int(_load_tokenizer().count(replace_lone_surrogates(text)))


def count_tokens_cached(text: str) -> int:
    count = COUNTS.find(text)
    if count is None:
        count = count_tokens(text)
        if count + ENTRY_SIZE <= MAX_CACHED_TOKENS:
            COUNTS.store(text, count)
    return count


def replace_lone_surrogates(text: str) -> str:
    """Replace lone surrogates, which cannot be encoded, by U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def count_tokens_from(counts: Sequence[tuple[str, int]], offset: int) -> int:
    """Return the number of tokens after a character offset.

    `counts` has the text and token count of each section. Only the rest of the section that contains the
    offset must be counted again.
    """
    at, tokens = 0, 0
    for text, count in counts:
        end = at + len(text)
        if at >= offset:
            tokens += count
        elif end > offset:
            tokens += count_tokens_cached(text[offset - at :])
        at = end
    return tokens
