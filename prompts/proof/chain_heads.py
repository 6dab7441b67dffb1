"""How far every chain of agent × channel had grown: whole, or what is new since the checkpoint before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from prompts.proof.canonical import digest
from prompts.proof.json_reader import read_flag, read_list, read_object, read_record, refuse_other_keys

VERSION_HEADS, MOVE_HEADS = "version-heads", "label-move-heads"


class Head(NamedTuple):
    """The newest row of one chain: its agent and channel, its place, its hash."""

    agent: int
    channel: int | None
    number: int
    hash: str


@dataclass(frozen=True)
class Sum:
    """All heads of one kind in short: how many rows stand behind them, and the digest of the list."""

    count: int
    root: str


@dataclass(frozen=True)
class Heads:
    """The heads of versions and of label moves, each by agent, then channel.

    A list for every checkpoint would outgrow what it guards: most checkpoints bring only those heads that are
    newer than in the checkpoint before. Nobody signs the list itself; the sums over all heads are signed.
    """

    versions: tuple[Head, ...] = ()
    label_moves: tuple[Head, ...] = ()
    is_whole: bool = True

    def data(self) -> dict[str, Any]:
        """Plain JSON data."""
        lists = {"versions": self.versions, "label_moves": self.label_moves}
        return {"is_whole": self.is_whole} | {name: [*map(list, heads)] for name, heads in lists.items()}

    def sums(self) -> tuple[Sum, Sum]:
        """What a checkpoint says of versions and of label moves; only whole heads have it."""
        return summed(VERSION_HEADS, self.versions), summed(MOVE_HEADS, self.label_moves)

    def since(self, before: "Heads") -> "Heads":
        """Only what is new."""
        versions, moves = set(before.versions), set(before.label_moves)
        return Heads(
            tuple(head for head in self.versions if head not in versions),
            tuple(head for head in self.label_moves if head not in moves),
            is_whole=False,
        )

    def after(self, before: "Heads") -> "Heads":
        """The whole, for heads that follow these."""
        if self.is_whole:
            return self
        return Heads(merged(before.versions, self.versions), merged(before.label_moves, self.label_moves))


def summed(domain: str, heads: Iterable[Head]) -> Sum:
    listed = list(heads)
    return Sum(sum(head.number for head in listed), digest(domain, listed))


def merged(before: Iterable[Head], new: Iterable[Head]) -> tuple[Head, ...]:
    found = {head[:2]: head for head in (*before, *new)}
    return ordered(found.values())


def ordered(heads: Iterable[Head]) -> tuple[Head, ...]:
    """By agent, then channel; what has no channel comes first."""
    return tuple(
        sorted(heads, key=lambda head: (head.agent, head.channel is not None, head.channel or 0, head.number))
    )


def read_heads(data: object) -> Heads:
    where = "the checkpoint's heads"
    said = read_object(data, where)
    refuse_other_keys(said, {"is_whole", "versions", "label_moves"}, where)
    lists = {name: read_head_list(said, name, f"{where}.{name}") for name in ("versions", "label_moves")}
    return Heads(**lists, is_whole=read_flag(said["is_whole"], f"{where}.is_whole"))


def read_head_list(said: Mapping[str, Any], name: str, where: str) -> tuple[Head, ...]:
    heads = tuple(read_head(item, where) for item in read_list(said[name], where))
    if heads != ordered(heads) or len({head[:2] for head in heads}) < len(heads):
        raise ValueError(f"{where} must name every chain once, by agent and channel")
    return heads


def read_head(data: object, where: str) -> Head:
    said = read_list(data, where)
    if len(said) != len(Head._fields):
        raise ValueError(f"a head in {where} must be agent, channel, number and hash")
    return read_record(Head, dict(zip(Head._fields, said, strict=True)), where)
