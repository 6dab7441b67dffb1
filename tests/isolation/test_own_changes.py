"""Nobody approves their own change: every way to change a prompt, with every identity of a person (R21)."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from personas.api_keys.selectors import list_key_labels
from personas.models import User
from prompts.publishing.releases import authors
from tests.isolation.api_cast import rolled_back_as_test
from tests.isolation.cast import rolled_back
from tests.isolation.matrix import Outcome
from tests.isolation.own_change_rows import CHANGES_NOTHING, CHANGES_PROMPTS
from tests.isolation.own_changes import (
    ADMIN_KEY,
    BOT_KEY,
    PAGE,
    ROTATED_KEY,
    Scene,
    Way,
    check_approvals,
    find_changed_prompts,
    finish_work,
    list_ways,
    name_all_ways,
    set_scene,
)
from tests.isolation.probe import quick_templates
from tests.isolation.turns import turn_of_this_run
from tests.module_fixtures import commits_heard

pytestmark = pytest.mark.django_db
IsDue = Callable[[str, str, int], bool]
# The identities whose changes each planted fault does not count, with a way that must be found.
FAULTS = {
    PAGE: "souls:edit",
    ADMIN_KEY: "PATCH souls-one",
    BOT_KEY: "POST memories-list",
    ROTATED_KEY: "POST memories-list",
}


@pytest.fixture(scope="module")
def known_scene(seeded, django_db_blocker):
    with django_db_blocker.unblock(), rolled_back(), commits_heard():
        yield set_scene(seeded)


@pytest.fixture
def scene(known_scene, db):
    with rolled_back():
        yield known_scene


def run_ways(scene: Scene, is_due: IsDue) -> Outcome:
    """Let a person change a prompt in each way: the person cannot approve it, and two others can."""
    outcome, listed, changed = Outcome(), set(), set()
    with quick_templates():
        for number, (name, identity, act) in enumerate(list_ways(scene, scene.people["P"])):
            if not is_due(name, identity, number):
                continue
            outcome.cells += 1
            with rolled_back_as_test(), commits_heard():
                before = scene.list_latest()
                act()
                finish_work(scene.stage)
                prompts = find_changed_prompts(scene, before)
                findings = check_approvals(scene, prompts, {"P"}, is_page=number % 5 == 0) if prompts else []
            listed |= {name} & CHANGES_PROMPTS
            changed |= {name} if prompts else set()
            if prompts and name not in CHANGES_PROMPTS:
                findings.append("changed a prompt and is not in CHANGES_PROMPTS")
            outcome.findings += [f"{name} · {identity}: {text}" for text in findings]
    # Without a change, there was nothing to approve.
    outcome.findings += [f"{name} is in CHANGES_PROMPTS and changed none" for name in listed - changed]
    return outcome


def run_sequences(scene: Scene, seed: int, count: int) -> Outcome:
    """Let two people make two or three changes one after another, each with a random identity."""
    chooser, outcome = random.Random(seed), Outcome()  # noqa: S311  # a seed for tests
    ways: dict[str, list[Way]] = {
        name: [way for way in list_ways(scene, person) if way[0] in CHANGES_PROMPTS]
        for name, person in scene.people.items()
    }
    with quick_templates():
        for _ in range(count):
            steps = [
                (who, chooser.choice(ways[who]))
                for who in chooser.choices(["P", "S"], k=chooser.choice([2, 3]))
            ]
            outcome.cells += 1
            with rolled_back_as_test(), commits_heard():
                start, changers = scene.list_latest(), set()
                for who, (_name, _identity, act) in steps:
                    before = scene.list_latest()
                    act()
                    finish_work(scene.stage)
                    if scene.list_latest() != before:
                        changers.add(who)
                prompts = find_changed_prompts(scene, start)
                findings = check_approvals(scene, prompts, changers, is_page=False) if prompts else []
            said = " then ".join(f"{who}: {name} ({identity})" for who, (name, identity, _act) in steps)
            outcome.findings += [f"{said}: {text}" for text in findings]
    return outcome


def test_every_writing_operation_and_page_is_listed():
    """A new operation or page must be said to change prompts or not, in own_change_rows.py."""
    assert not CHANGES_PROMPTS & CHANGES_NOTHING
    assert name_all_ways() ^ (CHANGES_PROMPTS | CHANGES_NOTHING) == set()


@pytest.mark.promise("R21")
@pytest.mark.hard
def test_nobody_approves_an_own_change(scene, tally):
    tally(run_ways(scene, lambda *way: True), at_least=250)


@pytest.mark.slow
@pytest.mark.promise("R21")
def test_nobody_approves_an_own_change_in_this_turn(scene, tally):
    """One in twelve ways by the seed of the run, and one of each identity."""
    turn, always = turn_of_this_run() % 12, set(FAULTS.items())
    is_due: IsDue = lambda name, identity, number: (  # noqa: E731
        name in CHANGES_PROMPTS and (number % 12 == turn or (identity, name) in always)
    )
    tally(run_ways(scene, is_due), at_least=8)


@pytest.mark.promise("R21")
@pytest.mark.hard
def test_nobody_approves_an_own_change_in_a_sequence(scene, tally, record_property):
    tally(run_sequences(scene, seed=21, count=300), at_least=300)
    record_property("sequences of two and three changes", 300)


@pytest.mark.slow
def test_nobody_approves_an_own_change_in_a_sequence_of_this_run(scene, tally):
    tally(run_sequences(scene, seed=turn_of_this_run(), count=6), at_least=6)


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.promise("R21")
@pytest.mark.planted
@pytest.mark.parametrize("identity", list(FAULTS))
def test_an_identity_that_is_not_counted_is_found(identity, scene, monkeypatch):
    load_identity = authors.load_identity

    def load_without(release, user, since):
        known = load_identity(release, user, since)
        keys = list_key_labels(release.workspace_id, user)
        bots = {label for label in keys if label.startswith("bot:")}
        lost = {
            PAGE: {user.email},
            ADMIN_KEY: keys - bots,
            # The rotated key has a number: it replaced another.
            BOT_KEY: {label for label in bots if not label.endswith(" 2")},
            ROTATED_KEY: {label for label in bots if label.endswith(" 2")},
        }[identity]
        known = replace(known, labels=known.labels - lost)
        # The user of a revision or an audit event is the same on pages and with admin keys.
        return (
            known if identity in (BOT_KEY, ROTATED_KEY) else replace(known, user=User(pk=0, email=user.email))
        )

    monkeypatch.setattr(authors, "load_identity", load_without)
    way = FAULTS[identity]
    found = run_ways(scene, lambda name, who, number: name == way and who == identity).findings
    assert any(f"{way} · {identity}: P got 200, expected 403" in text for text in found), found
