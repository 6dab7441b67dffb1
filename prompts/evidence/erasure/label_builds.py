"""Build the version of a label again without an erased record, so that a reviewed agent keeps its text.

The inputs are those that the version stored (decision 0017), not the current records: these may contain edits
that nobody has approved.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from personas.contents.services import SaltedDigests
from personas.models import Erasure
from prompts.models import AgentPrompt, PromptVersion
from prompts.publishing.builds.compiler import BuildResult, NotBuildable, compile_prompt
from prompts.publishing.builds.publish import BuildAuthor, store_versions
from prompts.publishing.inputs import CollectedInputs
from prompts.publishing.labels.approval import ERASURE_CAUSE
from prompts.publishing.versions.segments import list_hashed_values
from prompts.publishing.versions.selectors import get_build_report, load_skill_files
from prompts.publishing.versions.stored_inputs import load_remaining_inputs


@dataclass
class VersionReplacements:
    """The new versions by the id of the version that each replaces, and why others have no replacement."""

    versions: dict[int, PromptVersion] = field(default_factory=dict)
    reasons: dict[int, str] = field(default_factory=dict)


class NotReplaceable(Exception):
    """The version cannot be built without the record; the message is shown to users."""


def replace_versions(
    erasure: Erasure, prompts: Mapping[int, AgentPrompt], versions: Iterable[PromptVersion], *, at: datetime
) -> VersionReplacements:
    """Store a new version without the erased record for each of these versions.

    The prompts must be locked; their latest version and chain are saved.
    """
    builds: dict[int, tuple[PromptVersion, BuildResult]] = {}
    replacements = VersionReplacements()
    for version in versions:
        try:
            builds[version.pk] = version, build_without_record(version, prompts[version.prompt_id], erasure)
        except NotReplaceable as error:
            replacements.reasons[version.pk] = str(error)
    for batch in split_by_prompt(builds):
        new = [
            (prompts[version.prompt_id], build, get_erasure_author(erasure, version))
            for version, build in batch
        ]
        stored = store_versions(SaltedDigests(erasure.workspace_id), new, at=at)
        replacements.versions |= {
            version.pk: one for (version, _build), one in zip(batch, stored, strict=True)
        }
    for prompt in {version.prompt_id for version, _build in builds.values()}:
        prompts[prompt].save(update_fields=["last_number", "last_hash", "latest"])
    return replacements


def split_by_prompt(
    builds: Mapping[int, tuple[PromptVersion, BuildResult]],
) -> Iterator[Sequence[tuple[PromptVersion, BuildResult]]]:
    """Split the builds into batches with at most one build of each prompt, lower version numbers first."""
    waiting = sorted(builds.values(), key=lambda pair: pair[0].number)
    while waiting:
        batch = {version.prompt_id: (version, build) for version, build in reversed(waiting)}
        yield list(batch.values())
        used = {version.pk for version, _build in batch.values()}
        waiting = [pair for pair in waiting if pair[0].pk not in used]


def build_without_record(version: PromptVersion, prompt: AgentPrompt, erasure: Erasure) -> BuildResult:
    """Build a version from its stored inputs, of which the erased record is no longer a part."""
    collected = CollectedInputs(
        prompt.agent,
        prompt.channel,
        load_remaining_inputs(version),
        version.layout,
        {},
        problems=tuple(get_build_report(version).get("withheld", ())),
        skill_files=load_skill_files(version),
    )
    try:
        build = compile_prompt(collected)
    except NotBuildable as error:
        raise NotReplaceable(str(error)) from error
    if not has_only_text_of(version, build, erasure):
        raise NotReplaceable(
            _(
                "Version %(number)s was built by an earlier release of Dramatis, which "
                "assembled its text differently."
            )
            % {"number": version.number}
        )
    return build


def has_only_text_of(version: PromptVersion, build: BuildResult, erasure: Erasure) -> bool:
    """Whether the build differs from the version only where the version contains the erased record.

    This can be false only if the assembly was changed since the version was built.
    """
    if build.pins["compiler"] == version.compiler:
        return True
    digests = SaltedDigests(erasure.workspace_id)
    digests.find(build.packed.contents)
    salted = build.packed.apply_salts(digests.by_plain)
    old, new = group_hashed_values(version.segments), group_hashed_values(salted.segments)
    record = {"kind": erasure.kind, "id": str(erasure.object_id)}
    changed = {row["section"] for row in version.segments if record.items() <= row.get("origin", {}).items()}
    return salted.tools == version.tools and all(
        set(new.get(name, ())) <= set(old.get(name, ()))
        if name in changed
        else new.get(name) == old.get(name)
        for name in {*old, *new}
    )


def group_hashed_values(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[tuple[Any, ...]]]:
    """Return the values that determine the text, by section."""
    sections: dict[str, list[tuple[Any, ...]]] = {}
    for row in rows:
        sections.setdefault(row["section"], []).append(tuple(list_hashed_values(row)))
    return sections


def get_erasure_author(erasure: Erasure, version: PromptVersion) -> BuildAuthor:
    cause = {
        "kind": ERASURE_CAUSE,
        "version": version.number,
        "erasure": erasure.pk,
        "by": erasure.author_label,
    }
    return BuildAuthor(erasure.author_label, describe_replacement(erasure, version), [cause])


def describe_replacement(erasure: Erasure, version: PromptVersion) -> str:
    return f"Version {version.number} without {describe_erased_record(erasure)}, which was erased"


def describe_erased_record(erasure: Erasure) -> str:
    return f"{erasure.kind.replace('_', ' ')} {erasure.object_id}"
