"""Erases a memory or profile from every prompt that held it: words go, hashes and numbers stay."""

from collections.abc import Iterable, Iterator

from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from personas.actors import Actor
from personas.erasure.services import erase_contents, erase_record_text, list_personal_texts
from personas.models import Content, Erasure, Record, Workspace
from prompts.builds.services import rebuild_agents
from prompts.labels.moves import PlannedMove, move_labels
from prompts.labels.services import lock_prompts, save_prompts
from prompts.models import AgentPrompt, PromptLabel, PromptVersion
from prompts.provenance.usage import list_prompts_with_record, list_record_usages
from prompts.versions.segments import list_content_digests
from prompts.versions.selectors import get_contents


@transaction.atomic
def erase_record(record: Record, *, reason: str, by: Actor) -> Erasure:
    """All at once: the record, its history, every version's words; labels leave what can be read no more."""
    words = list_personal_texts(record)
    kind, key, workspace = record.kind, record.pk, record.workspace_id
    tomb = erase_record_text(record, reason=reason, by=by)
    held = list(iterate_versions_with_record(workspace, kind, key))
    agents = AgentPrompt.objects.in_workspace(workspace).filter(pk__in={row.prompt_id for row in held})
    rebuild_agents(workspace, agents.values_list("agent_id", flat=True))
    move_labels_off_erased(workspace, held, by=by)
    digests = set(iterate_record_digests(held, kind, key)) | find_digests_containing(workspace, held, words)
    gone = digests - list_digests_in_use(workspace)
    erase_contents(workspace, gone)
    tomb.digests, tomb.versions = (
        sorted({*tomb.digests, *gone}),
        sorted({*tomb.versions, *(row.pk for row in held)}),
    )
    # Anew each time: what processes keep of old words is checked against it.
    tomb.at = timezone.now()
    tomb.save(update_fields=["digests", "versions", "at"])
    return tomb


def iterate_versions_with_record(workspace: Workspace | int, kind: str, key: int) -> Iterator[PromptVersion]:
    prompts = list(list_prompts_with_record(workspace, kind, key))
    stretches = Q()
    for holding in list_record_usages(workspace, kind, key, prompts):
        for stay in holding.stays:
            upto = Q() if stay.last is None else Q(number__lte=stay.last)
            stretches |= Q(prompt=holding.prompt, number__gte=stay.first) & upto
    if stretches:
        yield from PromptVersion.objects.in_workspace(workspace).filter(stretches).iterator(chunk_size=500)


def iterate_record_digests(versions: Iterable[PromptVersion], kind: str, key: int) -> Iterator[str]:
    """Of the segments that came from the record itself."""
    for version in versions:
        for row in version.segments:
            origin = row.get("origin", {})
            if (origin.get("kind"), origin.get("id")) == (kind, str(key)):
                yield from (row[name] for name in ("content", "given") if name in row)


def find_digests_containing(
    workspace: int, versions: Iterable[PromptVersion], words: Iterable[str]
) -> set[str]:
    """Of other contents of these versions that repeat the words, such as a sentence made of several parts."""
    sought = [word.encode() for word in words]
    digests = {
        digest for version in versions for digest in list_content_digests(version.segments, version.tools)
    }
    found = get_contents(workspace, digests)
    return {digest for digest, data in found.items() if data and any(word in data for word in sought)}


def list_digests_in_use(workspace: int) -> set[str]:
    """What prompts say now is said by other records too; those words are theirs."""
    prompts = AgentPrompt.objects.in_workspace(workspace).filter(latest__isnull=False)
    latest = PromptVersion.objects.in_workspace(workspace).filter(pk__in=prompts.values("latest"))
    return {
        digest
        for segments, tools in latest.values_list("segments", "tools")
        for digest in list_content_digests(segments, tools)
    }


def move_labels_off_erased(workspace: int, held: Iterable[PromptVersion], *, by: Actor) -> None:
    """A label cannot point at words that are gone: it goes on to the latest build, whatever the policy."""
    gone = {version.pk for version in held}
    labels = PromptLabel.objects.in_workspace(workspace).filter(version__in=gone)
    wanted = list(labels.values_list("prompt_id", "name"))
    prompts = {row.pk: row for row in lock_prompts(workspace, sorted({prompt for prompt, _ in wanted}))}
    moves = [
        PlannedMove(prompts[prompt], name, prompts[prompt].latest, "erasure", by=by.label)
        for prompt, name in wanted
        if prompts[prompt].latest_id not in gone
    ]
    move_labels(workspace, moves, at=timezone.now())
    save_prompts(prompts.values())


def has_erased_content(version: PromptVersion) -> bool:
    """Whether some of its words can be read no more."""
    rows = Content.objects.in_workspace(version.workspace_id).filter(
        digest__in=list_content_digests(version.segments, version.tools), erased_at__isnull=False
    )
    return rows.exists()
