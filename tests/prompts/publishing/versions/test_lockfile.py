"""The full lockfile of a version can be reconstructed, although only changes are stored."""

import pytest
from django.db import transaction

from personas.memories.services import revoke_memory
from personas.models import Soul, sha256_digest
from prompts.models import AgentPrompt, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.versions.lockfile import (
    CACHED_PARTS,
    FULL_LOCKFILE_INTERVAL,
    build_lockfile,
    get_base_number,
    get_previous_parts,
    is_lockfile_valid,
    merge_lockfiles,
)
from prompts.publishing.versions.selectors import get_lockfile_parts
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul

PARTS = {f"memory:{number}@1": sha256_digest(b"%d" % number) for number in range(10)}


def build_chain(*states):
    """Build the lockfiles of versions 1, 2… with these parts."""
    lockfiles, before = [], None
    for number, parts in enumerate(states, start=1):
        lockfiles.append(build_lockfile(number, parts, "settings", "inputs", before))
        before = (get_base_number(number, lockfiles[-1]), parts)
    return lockfiles


def test_only_an_added_part_is_stored():
    more = PARTS | {"memory:10@1": sha256_digest(b"ten")}
    first, second = build_chain(PARTS, more)
    assert first["parts"] == PARTS
    assert (second["base"], second["parts"]) == (1, {"memory:10@1": sha256_digest(b"ten")})
    assert merge_lockfiles([first, second]) == more


def test_a_part_added_and_removed_again_is_not_listed():
    more = PARTS | {"memory:10@1": sha256_digest(b"ten")}
    lockfiles = build_chain(PARTS, more, PARTS)
    assert lockfiles[-1]["gone"] == ["memory:10@1"]
    parts = merge_lockfiles(lockfiles)
    assert parts == PARTS
    assert is_lockfile_valid(lockfiles[-1], parts)


def test_a_part_with_another_digest_is_stored_again():
    other = PARTS | {"memory:3@1": sha256_digest(b"other")}
    lockfiles = build_chain(PARTS, other)
    assert lockfiles[-1]["parts"] == {"memory:3@1": sha256_digest(b"other")}
    assert merge_lockfiles(lockfiles) == other


def test_a_lockfile_with_all_parts_changed_is_stored_in_full():
    [_, second] = build_chain({"soul:1@1": "a"}, {"soul:1@2": "b"})
    assert "base" not in second
    assert second["parts"] == {"soul:1@2": "b"}


def test_a_full_lockfile_is_stored_at_intervals():
    states = [
        PARTS | {f"memory:{10 + number}@1": sha256_digest(b"%d" % number)}
        for number in range(2 * FULL_LOCKFILE_INTERVAL)
    ]
    lockfiles = build_chain(*states)
    full_numbers = [number for number, lockfile in enumerate(lockfiles, start=1) if "base" not in lockfile]
    assert full_numbers == [1, 1 + FULL_LOCKFILE_INTERVAL]
    assert all(lockfile.get("base", 1) in full_numbers for lockfile in lockfiles)


def test_a_missing_lockfile_is_detected():
    states = [PARTS, PARTS | {"soul:1@1": "a"}, PARTS | {"soul:1@1": "a", "soul:2@1": "b"}]
    first, _, last = build_chain(*states)
    assert not is_lockfile_valid(last, merge_lockfiles([first, last]))


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_parts_of_every_stored_version_match_its_digest(workspace):
    for number in range(5):
        make_memory(workspace, f"Ship {number} is late.")
    soul = make_soul(workspace, text="Be brave.")
    pilot = make_agent(workspace, "pilot", soul=soul, channels=[make_channel(workspace, "deck")])
    extra = make_memory(workspace, "The crane is busy.")
    revoke_memory(extra, by=BY)
    rebuild_agents(workspace, [pilot.pk])
    versions = list(PromptVersion.objects.in_workspace(workspace).order_by("number"))
    assert [("base" in version.lockfile) for version in versions] == [False, True, True]
    assert all(is_lockfile_valid(version.lockfile, get_lockfile_parts(version)) for version in versions)
    assert (
        get_lockfile_parts(versions[0]) == get_lockfile_parts(versions[2]) != get_lockfile_parts(versions[1])
    )


@pytest.mark.django_db(transaction=True)
def test_an_invalid_chain_is_not_continued(workspace, monkeypatch):
    """Planted fault: the lockfiles in between are not read."""
    for number in range(9):
        make_memory(workspace, f"Ship {number} is late.")
    make_agent(workspace, "pilot", soul=make_soul(workspace), channels=[make_channel(workspace, "deck")])
    make_memory(workspace, "The crane is busy.")
    CACHED_PARTS.clear()
    monkeypatch.setattr(
        "prompts.publishing.versions.lockfile.get_lockfile_chains",
        lambda _, latest: {prompt: [version.lockfile] for prompt, version in latest.items()},
    )
    make_memory(workspace, "The crane is free.")
    last = PromptVersion.objects.in_workspace(workspace).latest("number")
    assert "base" not in last.lockfile
    assert is_lockfile_valid(last.lockfile, get_lockfile_parts(last))


@pytest.mark.django_db(transaction=True)
def test_parts_of_a_version_that_was_rolled_back_are_not_kept(workspace):
    """SQLite gives the id of such a version to another one."""
    agent = make_agent(
        workspace, "pilot", soul=make_soul(workspace), channels=[make_channel(workspace, "deck")]
    )
    CACHED_PARTS.clear()
    with transaction.atomic():
        Soul.objects.in_workspace(workspace).update(text="Be wise.")
        [version] = rebuild_agents(workspace, [agent.pk]).versions
        transaction.set_rollback(True)
    assert CACHED_PARTS.find(version.pk) is None
    assert len(CACHED_PARTS) == 0


@pytest.mark.django_db(transaction=True)
def test_the_parts_of_a_new_version_are_those_that_are_read(workspace):
    make_agent(workspace, "pilot", soul=make_soul(workspace), channels=[make_channel(workspace, "deck")])
    make_memory(workspace, "The crane is busy.")
    prompt = AgentPrompt.objects.in_workspace(workspace).select_related("latest").get()
    assert prompt.latest
    kept = CACHED_PARTS.find(prompt.latest.pk)
    CACHED_PARTS.clear()
    assert get_previous_parts(workspace, [prompt])[prompt.pk] == kept
