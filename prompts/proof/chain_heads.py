"""How far every chain of agent × channel had grown: whole, or what is new since the checkpoint before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from prompts.proof.canonical import canonical_digest
from prompts.proof.json_reader import check_exact_keys, read_flag, read_list, read_object, read_record

VERSION_HEADS_DOMAIN, MOVE_HEADS_DOMAIN = "version-heads", "label-move-heads"


class ChainHead(NamedTuple):
    """The newest row of one chain: its agent and channel, its place, its hash."""

    agent: int
    channel: int | None
    number: int
    hash: str


@dataclass(frozen=True)
class HeadsSummary:
    """All heads of one kind in short: how many rows stand behind them, and the digest of the list."""

    count: int
    root: str


@dataclass(frozen=True)
class ChainHeads:
    """The heads of versions and of label moves, each by agent, then channel.

    A list for every checkpoint would outgrow what it guards: most checkpoints bring only those heads that are
    newer than in the checkpoint before. Nobody signs the list itself; the sums over all heads are signed.
    """

    versions: tuple[ChainHead, ...] = ()
    label_moves: tuple[ChainHead, ...] = ()
    is_whole: bool = True

    def data(self) -> dict[str, Any]:
        """Plain JSON data."""
        lists = {"versions": self.versions, "label_moves": self.label_moves}
        return {"is_whole": self.is_whole} | {name: [*map(list, heads)] for name, heads in lists.items()}

    def sums(self) -> tuple[HeadsSummary, HeadsSummary]:
        """What a checkpoint says of versions and of label moves; only whole heads have it."""
        return summarize_heads(VERSION_HEADS_DOMAIN, self.versions), summarize_heads(
            MOVE_HEADS_DOMAIN, self.label_moves
        )

    def since(self, before: "ChainHeads") -> "ChainHeads":
        """Only what is new."""
        versions, moves = set(before.versions), set(before.label_moves)
        return ChainHeads(
            tuple(head for head in self.versions if head not in versions),
            tuple(head for head in self.label_moves if head not in moves),
            is_whole=False,
        )

    def after(self, before: "ChainHeads") -> "ChainHeads":
        """The whole, for heads that follow these."""
        if self.is_whole:
            return self
        return ChainHeads(
            merge_heads(before.versions, self.versions), merge_heads(before.label_moves, self.label_moves)
        )


def summarize_heads(domain: str, heads: Iterable[ChainHead]) -> HeadsSummary:
    listed = list(heads)
    return HeadsSummary(sum(head.number for head in listed), canonical_digest(domain, listed))


def merge_heads(before: Iterable[ChainHead], new: Iterable[ChainHead]) -> tuple[ChainHead, ...]:
    found = {head[:2]: head for head in (*before, *new)}
    return sort_heads(found.values())


def sort_heads(heads: Iterable[ChainHead]) -> tuple[ChainHead, ...]:
    """By agent, then channel; what has no channel comes first."""
    return tuple(
        sorted(heads, key=lambda head: (head.agent, head.channel is not None, head.channel or 0, head.number))
    )


def read_heads(data: object) -> ChainHeads:
    where = "the checkpoint's heads"
    said = read_object(data, where)
    check_exact_keys(said, {"is_whole", "versions", "label_moves"}, where)
    lists = {name: read_head_list(said, name, f"{where}.{name}") for name in ("versions", "label_moves")}
    return ChainHeads(**lists, is_whole=read_flag(said["is_whole"], f"{where}.is_whole"))


def read_head_list(said: Mapping[str, Any], name: str, where: str) -> tuple[ChainHead, ...]:
    heads = tuple(read_head(item, where) for item in read_list(said[name], where))
    if heads != sort_heads(heads) or len({head[:2] for head in heads}) < len(heads):
        raise ValueError(f"{where} must name every chain once, by agent and channel")
    return heads


def read_head(data: object, where: str) -> ChainHead:
    said = read_list(data, where)
    if len(said) != len(ChainHead._fields):
        raise ValueError(f"a head in {where} must be agent, channel, number and hash")
    return read_record(ChainHead, dict(zip(ChainHead._fields, said, strict=True)), where)
