"""What a process remembers between fetches: guesses, which are checked, and words, which never change."""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from prompts.serving.cache import Words
    from prompts.serving.resolve import Guess

K = TypeVar("K")
V = TypeVar("V")
GUESSES, WORDS = 20_000, 500


class Recent(Generic[K, V]):
    """So many values, the least recently used going first; shared by the threads of a process."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._held: OrderedDict[K, V] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._held)

    def get(self, key: K) -> V | None:
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
            return self._held.get(key)

    def put(self, key: K, value: V) -> None:
        with self._lock:
            self._held[key] = value
            self._held.move_to_end(key)
            while len(self._held) > self.most:
                self._held.popitem(last=False)

    def clear(self) -> None:
        with self._lock:
            self._held.clear()

    def drop(self, key: K) -> None:
        with self._lock:
            self._held.pop(key, None)


# Reader, agent, channel, label and verb.
Question = tuple[str, str, str, str, str]


def _guesses() -> "Recent[Question, Guess]":
    return Recent(GUESSES)


def _words() -> "Recent[int, Words]":
    return Recent(WORDS)


@dataclass
class Recall:
    """One process's memory; losing it costs a few queries and nothing else."""

    guesses: "Recent[Question, Guess]" = field(default_factory=_guesses)
    words: "Recent[int, Words]" = field(default_factory=_words)


PROCESS = Recall()
