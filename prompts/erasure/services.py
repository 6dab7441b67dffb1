"""Erases a memory or profile from every prompt that held it: words go, hashes and numbers stay."""

from collections.abc import Iterable, Iterator

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from personas.actors import Actor
from personas.erasure.services import erase_contents, erase_words, telling_words
from personas.models import Content, Erasure, Record, Workspace
from prompts.builds.services import rebuild_agents
from prompts.labels.moves import Move, move_labels
from prompts.labels.services import hold_prompts, save_prompts
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.provenance.usage import holdings_in, prompts_holding
from prompts.versions.segments import digests_in
from prompts.versions.selectors import contents_of


@transaction.atomic
def erase_record(record: Record, *, reason: str, by: Actor) -> Erasure:
    """All at once: the record, its history, every version's words; labels leave what can be read no more."""
    words = telling_words(record)
    kind, key, workspace = record.kind, record.pk, record.workspace_id
    tomb = erase_words(record, reason=reason, by=by)
    held = list(versions_that_held(workspace, kind, key))
    agents = AgentPrompt.objects.in_workspace(workspace).filter(pk__in={row.prompt_id for row in held})
    rebuild_agents(workspace, agents.values_list("agent_id", flat=True))
    leave_erased(workspace, held, by=by)
    digests = set(own_digests(held, kind, key)) | digests_with(workspace, held, words)
    gone = digests - digests_in_use(workspace)
    erase_contents(workspace, gone)
    tomb.digests, tomb.versions = (
        sorted({*tomb.digests, *gone}),
        sorted({*tomb.versions, *(row.pk for row in held)}),
    )
    # Anew each time: what processes keep of old words is checked against it.
    tomb.at = timezone.now()
    tomb.save(update_fields=["digests", "versions", "at"])
    return tomb


def versions_that_held(workspace: Workspace | int, kind: str, key: int) -> Iterator[PromptVersion]:
    prompts = list(prompts_holding(workspace, kind, key))
    stretches = Q()
    for holding in holdings_in(workspace, kind, key, prompts):
        for stay in holding.stays:
            upto = Q() if stay.last is None else Q(number__lte=stay.last)
            stretches |= Q(prompt=holding.prompt, number__gte=stay.first) & upto
    if stretches:
        yield from PromptVersion.objects.in_workspace(workspace).filter(stretches).iterator(chunk_size=500)


def own_digests(versions: Iterable[PromptVersion], kind: str, key: int) -> Iterator[str]:
    """Of the segments that came from the record itself."""
    for version in versions:
        for row in version.segments:
            origin = row.get("origin", {})
            if (origin.get("kind"), origin.get("id")) == (kind, str(key)):
                yield from (row[name] for name in ("content", "given") if name in row)


def digests_with(workspace: int, versions: Iterable[PromptVersion], words: Iterable[str]) -> set[str]:
    """Of other contents of these versions that repeat the words, such as a sentence made of several parts."""
    sought = [word.encode() for word in words]
    digests = {digest for version in versions for digest in digests_in(version.segments, version.tools)}
    found = contents_of(workspace, digests)
    return {digest for digest, data in found.items() if data and any(word in data for word in sought)}


def digests_in_use(workspace: int) -> set[str]:
    """What prompts say now is said by other records too; those words are theirs."""
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(latest__isnull=False)
    latest = PromptVersion.objects.in_workspace(workspace).filter(pk__in=prompts.values("latest"))
    return {
        digest
        for segments, tools in latest.values_list("segments", "tools")
        for digest in digests_in(segments, tools)
    }


def leave_erased(workspace: int, held: Iterable[PromptVersion], *, by: Actor) -> None:
    """A label cannot point at words that are gone: it goes on to the latest build, whatever the policy."""
    gone = {version.pk for version in held}
    labels = PromptLabel.objects.in_workspace(workspace).filter(version__in=gone)
    wanted = list(labels.values_list("prompt_id", "name"))
    prompts = {row.pk: row for row in hold_prompts(workspace, sorted({prompt for prompt, _ in wanted}))}
    moves = [
        Move(prompts[prompt], name, prompts[prompt].latest, "erasure", by=by.label)
        for prompt, name in wanted
        if prompts[prompt].latest_id not in gone
    ]
    move_labels(workspace, moves, at=timezone.now())
    save_prompts(prompts.values())


def holds_erased(version: PromptVersion) -> bool:
    """Whether some of its words can be read no more."""
    rows = Content.objects.in_workspace(version.workspace_id).filter(
        digest__in=digests_in(version.segments, version.tools), erased_at__isnull=False
    )
    return rows.exists()
