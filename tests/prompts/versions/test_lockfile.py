"""What a version was built from can be told whole, although only changes are kept."""

import pytest

from personas.memories.services import revoke_memory
from personas.models import sha256_digest
from prompts.builds.services import rebuild_agents
from prompts.models import PromptVersion
from prompts.versions.lockfile import (
    FULL_LOCKFILE_INTERVAL,
    build_lockfile,
    get_base_number,
    is_lockfile_valid,
    merge_lockfiles,
)
from prompts.versions.selectors import get_lockfile_parts
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul

ENOUGH = {f"memory:{number}@1": sha256_digest(b"%d" % number) for number in range(10)}


def chain_of(*states):
    """The lockfiles of versions 1, 2… that were built from these parts."""
    lockfiles, before = [], None
    for number, parts in enumerate(states, start=1):
        lockfiles.append(build_lockfile(number, parts, "settings", before))
        before = (get_base_number(number, lockfiles[-1]), parts)
    return lockfiles


def test_one_more_part_is_all_that_is_kept():
    more = ENOUGH | {"memory:10@1": sha256_digest(b"ten")}
    first, second = chain_of(ENOUGH, more)
    assert first["parts"] == ENOUGH
    assert (second["base"], second["parts"]) == (1, {"memory:10@1": sha256_digest(b"ten")})
    assert merge_lockfiles([first, second]) == more


def test_what_came_and_went_between_is_not_told():
    more = ENOUGH | {"memory:10@1": sha256_digest(b"ten")}
    lockfiles = chain_of(ENOUGH, more, ENOUGH)
    assert lockfiles[-1]["gone"] == ["memory:10@1"]
    parts = merge_lockfiles(lockfiles)
    assert parts == ENOUGH
    assert is_lockfile_valid(lockfiles[-1], parts)


def test_a_part_that_says_something_else_is_kept_again():
    other = ENOUGH | {"memory:3@1": sha256_digest(b"other")}
    lockfiles = chain_of(ENOUGH, other)
    assert lockfiles[-1]["parts"] == {"memory:3@1": sha256_digest(b"other")}
    assert merge_lockfiles(lockfiles) == other


def test_all_parts_anew_stand_by_themselves():
    [_, second] = chain_of({"soul:1@1": "a"}, {"soul:1@2": "b"})
    assert "base" not in second
    assert second["parts"] == {"soul:1@2": "b"}


def test_after_a_stride_the_parts_are_told_whole_again():
    states = [
        ENOUGH | {f"memory:{10 + number}@1": sha256_digest(b"%d" % number)}
        for number in range(2 * FULL_LOCKFILE_INTERVAL)
    ]
    lockfiles = chain_of(*states)
    whole = [number for number, lockfile in enumerate(lockfiles, start=1) if "base" not in lockfile]
    assert whole == [1, 1 + FULL_LOCKFILE_INTERVAL]
    assert all(lockfile.get("base", 1) in whole for lockfile in lockfiles)


def test_a_missing_lockfile_between_shows():
    states = [ENOUGH, ENOUGH | {"soul:1@1": "a"}, ENOUGH | {"soul:1@1": "a", "soul:2@1": "b"}]
    first, _, last = chain_of(*states)
    assert not is_lockfile_valid(last, merge_lockfiles([first, last]))


@pytest.mark.django_db(transaction=True)
def test_every_stored_version_tells_the_parts_its_digest_is_of(workspace):
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
def test_a_chain_that_does_not_add_up_is_not_gone_on_with(workspace, monkeypatch):
    """The fault: lockfiles are read without those between."""
    for number in range(9):
        make_memory(workspace, f"Ship {number} is late.")
    make_agent(workspace, "pilot", soul=make_soul(workspace), channels=[make_channel(workspace, "deck")])
    make_memory(workspace, "The crane is busy.")
    monkeypatch.setattr(
        "prompts.versions.lockfile.get_lockfile_chains",
        lambda _, latest: {prompt: [version.lockfile] for prompt, version in latest.items()},
    )
    make_memory(workspace, "The crane is free.")
    last = PromptVersion.objects.in_workspace(workspace).latest("number")
    assert "base" not in last.lockfile
    assert is_lockfile_valid(last.lockfile, get_lockfile_parts(last))
