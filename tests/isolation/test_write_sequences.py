"""No two or three writes in a row put unapproved text into production of a reviewed agent.

The keys may neither approve nor override. docs/releases.md says what may change production.
"""

import random
import time

import pytest

from personas.records import review_policy
from personas.roles import has_permission
from prompts.models import AgentPrompt
from prompts.publishing.labels import approval
from tests.isolation.cast import HARBOUR
from tests.isolation.sequence_writes import CORE, list_deliberate_writes, list_writes
from tests.isolation.sequences import (
    LIFTED,
    PENDING,
    STATES,
    Result,
    SequenceRunner,
    combine,
    draw,
    find_accepting_key,
    make_callers,
    reviewed_scene,
)

# The prompt has the time of the fetch.
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("stopped_clock")]
SEQUENCES = "sequences of writes"
# Each first write is followed by so many second writes, and each of these by so many third ones.
WIDTHS = (1, 6, 12)
# Operations that no key of the sequences can call, or that refuse the row of the table.
REFUSED = {
    # These need the verbs approve and override.
    *(
        "POST memories-approve",
        "POST memories-approve-many",
        "POST memories-reject",
        "POST memories-reject-many",
    ),
    *(
        "POST context-files-waive",
        "POST context-files-end-waiver",
        "POST labels-unpin",
        "POST labels-roll-back",
    ),
    *(
        "POST releases-approve",
        "POST releases-reject",
        "POST releases-requestChanges",
        "POST releases-override",
    ),
    # The release is not approved.
    "POST releases-publish",
    # The body names no release policy, which means automatic.
    "PUT agents-one",
}


def run_sequences(stage, seed, *, goal, core, depth=3, states=STATES, widths=WIDTHS):
    """Run all sequences of the first `core` deliberate writes, then random ones until the goal is reached."""
    rng, result = random.Random(seed), Result()  # noqa: S311  # no secret
    operations, deliberate = list_writes(), list_deliberate_writes()
    for number, state in enumerate(states, 1):
        with reviewed_scene(stage, state) as scene:
            runner = SequenceRunner(scene, rng, result)
            runner.run(combine(deliberate[:core], depth))
            while result.sequences < goal * number // len(states):
                runner.run(draw(operations, deliberate, widths, rng))
    return result


@pytest.fixture
def seed():
    return random.randrange(10**6)  # noqa: S311  # the header of the run shows the seed


def check_result(result, seed, record_property, at_least):
    record_property(SEQUENCES, result.sequences)
    writes = f"{result.requests:,} writes ({result.accepted:,} accepted)"
    print(f"seed {seed}: {result.sequences:,} sequences, {writes}")
    print(f"{time.process_time():.0f} s of processor time in this process")
    first = "\n".join(result.findings[:20])
    assert not result.findings, f"seed {seed}: {len(result.findings)} findings\n{first}"
    assert result.sequences >= at_least


@pytest.mark.slow
def test_no_sequence_of_this_run_changes_production(stage, seed, record_property):
    result = run_sequences(stage, seed, goal=60, core=3, depth=2, widths=(1, 2, 4))
    check_result(result, seed, record_property, at_least=60)


@pytest.mark.promise("R16")
@pytest.mark.hard
@pytest.mark.parametrize("state", STATES)
def test_no_sequence_changes_production(stage, seed, record_property, state):
    """10,000 sequences in all: all pairs and triples of the most dangerous writes, and random ones."""
    result = run_sequences(stage, seed, goal=3_350, core=CORE, states=(state,))
    check_result(result, seed, record_property, at_least=3_350)
    written = {name for name, statuses in result.statuses.items() if any(0 < code < 400 for code in statuses)}
    assert len(written) >= 80, sorted(written)


@pytest.mark.promise("R16")
@pytest.mark.hard
def test_every_write_of_the_table_is_accepted_from_a_key_that_may_call_it(stage):
    """Otherwise sequences with it would prove nothing: a new operation needs a valid body in the table."""
    with reviewed_scene(stage, PENDING) as scene:
        refused = {str(write) for write in list_writes() if find_accepting_key(scene, write) is None}
    assert refused == REFUSED


def test_no_key_of_the_sequences_may_approve_or_override(stage):
    callers, _bot = make_callers(stage)
    assert all(not caller.verbs & {"approve", "override"} for caller in callers)
    assert {caller.role for caller in callers} >= {"owner", "admin", "editor"}
    assert stage.workspaces[HARBOUR]


# --- planted faults ------------------------------------------------------------------------------------


def ask_for_role(workspace, by, permission):
    return by.user is not None and has_permission("owner", permission)


def ask_for_stored_policy(monkeypatch):
    stored = property(lambda prompt: prompt.agent.release_policy == "reviewed")
    monkeypatch.setattr(AgentPrompt, "is_reviewed", stored)
    monkeypatch.setattr(approval, "is_approval_required", lambda move, protected: move.prompt.is_reviewed)


@pytest.mark.slow
@pytest.mark.promise("R16")
@pytest.mark.planted
def test_the_role_instead_of_the_verb_is_found(stage, monkeypatch):
    monkeypatch.setattr(review_policy, "is_permitted", ask_for_role)
    found = run_sequences(stage, 1, goal=0, core=2, depth=2, states=(PENDING,)).findings
    assert any("the review of the agent was lifted" in finding for finding in found), found
    assert not any("changed" in finding for finding in found), found


@pytest.mark.slow
@pytest.mark.promise("R16")
@pytest.mark.planted
def test_a_policy_that_ends_when_it_is_lifted_is_found(stage, monkeypatch):
    ask_for_stored_policy(monkeypatch)
    found = run_sequences(stage, 1, goal=0, core=3, depth=2, states=(LIFTED,)).findings
    assert any("POST releases-publish (last) → 200: " in finding for finding in found), found


@pytest.mark.slow
@pytest.mark.promise("R16")
@pytest.mark.planted
def test_both_faults_together_put_text_into_production(stage, monkeypatch):
    """Finding N1: lift the review, request a release, publish it."""
    monkeypatch.setattr(review_policy, "is_permitted", ask_for_role)
    ask_for_stored_policy(monkeypatch)
    found = run_sequences(stage, 1, goal=0, core=3, states=(PENDING,)).findings
    assert any("(lift) → 200; " in finding and "prompt.md changed" in finding for finding in found), found


@pytest.mark.promise("R16")
@pytest.mark.planted
def test_an_operation_without_a_valid_body_is_found(monkeypatch):
    from tests.isolation import api_table

    rows = {name: row for name, row in api_table.TABLE.items() if name != "PATCH souls-one"}
    monkeypatch.setattr(api_table, "TABLE", rows)
    with pytest.raises(AssertionError, match="PATCH souls-one"):
        list_writes()
