"""The heads (newest rows) of the hash chains of a workspace: all of them, or those that changed."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from prompts.proof.canonical import canonical_digest
from prompts.proof.json_reader import check_exact_keys, read_flag, read_list, read_object, read_record

VERSION_HEADS_DOMAIN, MOVE_HEADS_DOMAIN = "version-heads", "label-move-heads"


class ChainHead(NamedTuple):
    """The newest row of one chain: its agent and channel, its number and its hash."""

    agent: int
    channel: int | None
    number: int
    hash: str


@dataclass(frozen=True)
class HeadsSummary:
    """A summary of all heads of one kind.

    `count` is the total number of rows in all chains. `root` is the digest of the list of heads.
    """

    count: int
    root: str


@dataclass(frozen=True)
class ChainHeads:
    """The heads of versions and of label moves, each sorted by agent, then channel.

    With `is_whole`, the lists contain the heads of all chains. Storing all heads with every checkpoint would
    take more space than the chains themselves, so most checkpoints store only the heads that changed since
    the previous checkpoint. The lists are not signed, but the summaries of all heads are.
    """

    versions: tuple[ChainHead, ...] = ()
    label_moves: tuple[ChainHead, ...] = ()
    is_whole: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON data. The keys are stored in the database, so they must not change."""
        lists = {"versions": self.versions, "label_moves": self.label_moves}
        return {"is_whole": self.is_whole} | {name: [*map(list, heads)] for name, heads in lists.items()}

    def summarize(self) -> tuple[HeadsSummary, HeadsSummary]:
        """Summarize the heads of versions and of label moves for a checkpoint. The heads must be complete."""
        return summarize_heads(VERSION_HEADS_DOMAIN, self.versions), summarize_heads(
            MOVE_HEADS_DOMAIN, self.label_moves
        )

    def select_new(self, before: "ChainHeads") -> "ChainHeads":
        """Return only the heads that changed since `before`."""
        versions, moves = set(before.versions), set(before.label_moves)
        return ChainHeads(
            tuple(head for head in self.versions if head not in versions),
            tuple(head for head in self.label_moves if head not in moves),
            is_whole=False,
        )

    def complete_from(self, before: "ChainHeads") -> "ChainHeads":
        """Return complete heads: these, and the unchanged ones from the complete heads `before`."""
        if self.is_whole:
            return self
        return ChainHeads(
            merge_heads(before.versions, self.versions), merge_heads(before.label_moves, self.label_moves)
        )


def summarize_heads(domain: str, heads: Iterable[ChainHead]) -> HeadsSummary:
    head_list = list(heads)
    return HeadsSummary(sum(head.number for head in head_list), canonical_digest(domain, head_list))


def merge_heads(before: Iterable[ChainHead], new: Iterable[ChainHead]) -> tuple[ChainHead, ...]:
    heads_by_chain = {head[:2]: head for head in (*before, *new)}
    return sort_heads(heads_by_chain.values())


def sort_heads(heads: Iterable[ChainHead]) -> tuple[ChainHead, ...]:
    """Sort heads by agent, then channel. For each agent, the head without a channel comes first."""
    return tuple(
        sorted(heads, key=lambda head: (head.agent, head.channel is not None, head.channel or 0, head.number))
    )


def read_heads(data: object) -> ChainHeads:
    where = "the checkpoint's heads"
    fields = read_object(data, where)
    check_exact_keys(fields, {"is_whole", "versions", "label_moves"}, where)
    lists = {name: read_head_list(fields, name, f"{where}.{name}") for name in ("versions", "label_moves")}
    return ChainHeads(**lists, is_whole=read_flag(fields["is_whole"], f"{where}.is_whole"))


def read_head_list(fields: Mapping[str, Any], name: str, where: str) -> tuple[ChainHead, ...]:
    heads = tuple(read_head(item, where) for item in read_list(fields[name], where))
    if heads != sort_heads(heads) or len({head[:2] for head in heads}) < len(heads):
        raise ValueError(f"{where} must name every chain once, by agent and channel")
    return heads


def read_head(data: object, where: str) -> ChainHead:
    values = read_list(data, where)
    if len(values) != len(ChainHead._fields):
        raise ValueError(f"a head in {where} must be agent, channel, number and hash")
    return read_record(ChainHead, dict(zip(ChainHead._fields, values, strict=True)), where)
