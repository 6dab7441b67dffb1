"""Checkpoints, signing keys, verification runs and evidence of a time by API."""

import json
from urllib.parse import quote

import pytest

from personas.api_keys.format import BOT
from personas.models import AuditEvent, Erasure
from personas.roles import Role
from prompts.evidence.integrity.services import run_verification
from prompts.evidence.replay.evidence import run_evidence_checks
from prompts.models import Checkpoint, SigningKey, VerificationRun
from tests.factories import join, make_user
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(history, key_for):
    return key_for(history.workspace, history.by.user)


def test_checkpoints_are_listed_newest_first_with_their_signature(owner, history):
    rows = list(Checkpoint.objects.in_workspace(history.workspace).order_by("-sequence"))
    first = owner.get("checkpoints?limit=1").json()
    assert [item["sequence"] for item in first["items"]] == [rows[0].sequence]
    assert first["items"][0]["statement"] == rows[0].body
    rest = owner.get(f"checkpoints?cursor={first['next_cursor']}").json()
    hashes = [item["hash"] for item in [*first["items"], *rest["items"]]]
    assert hashes == [row.hash for row in rows]
    keys = {item["key_id"]: item["public_key"] for item in owner.get("signing-keys").json()["items"]}
    assert first["items"][0]["key_id"] in keys
    assert len(keys) == SigningKey.objects.in_workspace(history.workspace).count()


def test_checkpoints_are_exported_as_json_lines(owner, history):
    lines = owner.get("checkpoints:export").getvalue().decode().splitlines()
    rows = Checkpoint.objects.in_workspace(history.workspace).order_by("sequence")
    assert [json.loads(line)["body"] for line in lines] == [row.body for row in rows]
    assert owner.call("HEAD", "checkpoints:export").content == b""


def test_a_verification_is_started_once_and_its_result_is_read(owner, history):
    answer = owner.post("verifications")
    assert answer.status_code == 202, answer.content
    assert answer["Location"] == f"/api/v1/verifications/{answer.json()['id']}"
    assert (answer.json()["status"], answer.json()["is_valid"]) == ("queued", None)
    assert owner.post("verifications").json()["id"] == answer.json()["id"]
    events = AuditEvent.objects.in_workspace(history.workspace).filter(kind="verification")
    assert events.count() == 1
    run_verification(history.workspace.pk, answer.json()["id"])
    done = owner.get(answer["Location"]).json()
    assert (done["status"], done["is_valid"], done["errors"]) == ("done", True, [])
    assert done["rows"]["versions"] == 15
    assert [item["id"] for item in owner.get("verifications").json()["items"]] == [done["id"]]


def test_changed_rows_are_named(owner, history):
    run = owner.post("verifications").json()["id"]
    with unguarded():
        by_hand("UPDATE prompts_labelmove SET author_label = 'nobody' WHERE sequence = 2")
        run_verification(history.workspace.pk, run)
        done = owner.get(f"verifications/{run}").json()
    assert not done["is_valid"]
    assert done["error_count"] >= 1
    assert "does not match its hash" in done["errors"][0]["reason"]


def test_viewers_read_but_do_not_start_and_bots_do_neither(history, key_for):
    viewer = make_user("Vera")
    join(history.workspace, viewer, Role.VIEWER)
    key, bot = key_for(history.workspace, viewer), key_for(history.workspace, history.by.user, BOT)
    for path in ("checkpoints", "signing-keys", "verifications"):
        assert key.get(path).status_code == 200
        assert bot.get(path).status_code == 403
    assert key.post("verifications").status_code == 403
    assert not VerificationRun.objects.in_workspace(history.workspace).exists()


def test_evidence_of_a_time_can_be_checked(owner, history):
    at = quote(history.times["erasure"].isoformat())
    bundle = owner.get(f"replay/evidence?agent=pilot&channel=deck&at={at}")
    assert bundle.status_code == 200, bundle.content
    checks = run_evidence_checks(bundle.json(), None)
    assert not [check for check in checks if check.state == "failed"]
    assert owner.get("replay/evidence?agent=pilot&channel=deck").status_code == 422
    assert owner.get(f"replay/evidence?agent=no-such&channel=deck&at={at}").status_code == 404


def test_the_versions_of_an_erasure_are_listed(owner, history):
    erasure = Erasure.objects.in_workspace(history.workspace).get()
    items = owner.get(f"erasures/{erasure.pk}/versions").json()["items"]
    assert len(items) == len(erasure.versions) > 0
    assert {item["agent"] for item in items} <= {agent.slug for agent in history.agents}
    assert owner.get("erasures/987654321/versions").status_code == 404
