"""The pages of the ledger and of its proof: narrowed in the address, paged by the row, verified."""

import json
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import ApiKey
from personas.roles import Role
from prompts.integrity.services import request_verification, run_verification
from prompts.labels.services import roll_back, unpin_production
from prompts.ledger import selectors as ledger_selectors
from prompts.models import LedgerEntry, SigningKey, VerificationRun, VerificationState
from prompts.proof.checkpoint_comparison import verify_checkpoints
from prompts.proof.checkpoints import SignedCheckpoint, read_checkpoint_lines
from prompts.proof.signing_keys import load_public_key
from prompts.tasks import verify_chain_job
from tests.factories import join, make_user, signed_in
from tests.prompts.integrity.forged_history import by_hand, unguarded
from tests.prompts.integrity.history_stage import History

pytestmark = pytest.mark.django_db
LIMIT = 8
# The session, the person and the membership are asked for on every page.
EVERY_PAGE = 3


@pytest.fixture
def bobs(history: History) -> Client:
    return signed_in(history.users["bob"])


@pytest.fixture
def viewers(history: History) -> Client:
    viewer = make_user("Vera")
    join(history.workspace, viewer, Role.VIEWER)
    return signed_in(viewer)


def address(history: History, path: str = "ledger/") -> str:
    return f"/w/{history.workspace.slug}/{path}"


def page(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:500]
    return answer.content.decode()


def shown(client: Client, path: str) -> list[int]:
    """The ids of the rows on a page, in their order."""
    rows = client.get(path).context["page"].rows
    return [row.pk for row in rows]


def stored(history: History) -> list[int]:
    rows = LedgerEntry.objects.in_workspace(history.workspace).order_by("-pk")
    return list(rows.values_list("pk", flat=True))


# --- the list ------------------------------------------------------------------------------------------


def test_everything_that_was_handed_out_is_listed_newest_first(history, bobs):
    assert shown(bobs, address(history)) == stored(history)
    found = page(bobs, address(history))
    assert "Rows are kept for 6 months" in found
    assert f"/time-machine/fetches/{history.served[-1].ledger_id}/" in found


def test_each_filter_narrows_it_down(history, bobs):
    key = ApiKey.objects.in_workspace(history.workspace).order_by("-pk").first()
    assert key is not None
    mast = {served.ledger_id for served in history.served[7:11]}
    last = {served.ledger_id for served in history.served[-2:]}
    cases = {
        "agent=pilot": set(stored(history)),
        "agent=cook": set(),
        "channel=mast": mast,
        f"key={key.pk}": last,
        "agent=pilot&channel=deck&version=4": last,
        "agent=pilot&channel=deck&version=99": set(),
        "status=304": set(),
        "status=200": set(stored(history)),
        f"request={history.served[-1].request_id}": {history.served[-1].ledger_id},
        "request=never": set(),
    }
    for asked, wanted in cases.items():
        assert set(shown(bobs, address(history, f"ledger/?{asked}"))) == wanted, asked


def test_a_stretch_of_time_is_meant_in_the_readers_own(history, bobs):
    since = timezone.localtime(history.times["moves"] - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%S")
    until = timezone.localtime(history.times["moves"] + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%S")
    asked = f"ledger/?since={quote(since)}&until={quote(until)}"
    assert shown(bobs, address(history, asked)) == [served.ledger_id for served in history.served[10:6:-1]]


def test_pages_go_on_by_the_row_and_keep_the_filters(history, bobs, monkeypatch):
    monkeypatch.setattr(ledger_selectors, "DEFAULT_PAGE_SIZE", 3)
    monkeypatch.setattr(ledger_selectors.get_ledger_page, "__kwdefaults__", {"before": None, "limit": 3})
    everything, found, path = stored(history), [], address(history, "ledger/?agent=pilot")
    while path:
        answer = bobs.get(path)
        found += [row.pk for row in answer.context["page"].rows]
        older = answer.context["older"]
        assert not older or "agent=pilot" in older
        path = address(history, f"ledger/?{older}") if older else ""
    assert found == everything


def test_a_new_row_moves_no_page(history, bobs, monkeypatch):
    monkeypatch.setattr(ledger_selectors.get_ledger_page, "__kwdefaults__", {"before": None, "limit": 3})
    older = bobs.get(address(history)).context["older"]
    before = shown(bobs, address(history, f"ledger/?{older}"))
    history.serve(2)
    assert shown(bobs, address(history, f"ledger/?{older}")) == before


STRANGE = {
    "agent=nobody": "Select a valid choice",
    "version=3": "choose both",
    "version=x": "Enter a whole number",
    "status=500": "Select a valid choice",
    "key=1;drop": "Select a valid choice",
    "since=soon": "Enter a valid date/time",
    "since=2026-02-01T00:00&until=2026-01-01T00:00": "This must be after the beginning",
}


def test_strange_filters_are_told_under_their_field(history, bobs):
    for asked, said in STRANGE.items():
        found = page(bobs, address(history, f"ledger/?{asked}"), 422)
        assert said in found, asked
        assert "was saved" not in found, "this form saves nothing"
    assert "Nothing matches" not in found, "nothing was looked up"


def test_a_strange_cursor_is_no_error(history, bobs):
    for before in ("x", "-1", "9" * 40, "²"):
        page(bobs, address(history, f"ledger/?before={quote(before)}"))


def test_the_list_asks_few_questions_however_long_it_is(history, bobs):
    for _ in range(2):
        with CaptureQueriesContext(connection) as asked:
            page(bobs, address(history))
        assert len(asked) <= LIMIT + EVERY_PAGE
        history.serve(12)


def test_nothing_handed_out_yet_says_what_will_come(elsewhere, mallory):
    assert "no record, no prompt" in page(signed_in(mallory), f"/w/{elsewhere.slug}/ledger/")


def test_strangers_get_404_and_see_nothing_through_filters(history, elsewhere, mallory):
    client = signed_in(mallory)
    for path in ("ledger/", "ledger/stale/", "verify/", "verify/checkpoints/"):
        page(client, address(history, path), 404)
    asked = f"/w/{elsewhere.slug}/ledger/?request={history.served[-1].request_id}"
    assert client.get(asked).context["page"].rows == []


# --- bots behind ---------------------------------------------------------------------------------------


def test_bots_that_hold_what_was_rolled_back_are_listed(history, bobs):
    unpin_production(history.prompt(), by=history.by)
    [served] = history.serve(1)
    assert served.number == 5
    roll_back([history.prompt()], by=history.by, note="Too kind")
    found = page(bobs, address(history, "ledger/stale/"))
    assert "Rolled back" in found
    assert "Version 5" in found
    panel = bobs.get(address(history, "ledger/stale/"), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in panel
    assert "holds 5, production is 4" in panel


def test_without_any_the_page_is_glad(elsewhere, mallory):
    assert "Nobody is behind" in page(signed_in(mallory), f"/w/{elsewhere.slug}/ledger/stale/")


# --- proof ---------------------------------------------------------------------------------------------


def test_before_the_first_look_the_page_says_so_and_lists_checkpoints_and_keys(history, bobs):
    found = page(bobs, address(history, "verify/"))
    assert "Nobody has looked yet" in found
    assert "No. 4" in found
    assert SigningKey.objects.in_workspace(history.workspace).get().key_id in found


def test_a_look_is_asked_for_by_an_editor_and_its_result_is_shown(history, bobs):
    answer = bobs.post(address(history, "verify/run/"))
    assert answer["Location"] == address(history, "verify/")
    run = VerificationRun.objects.in_workspace(history.workspace).get()
    assert "a worker will begin in a moment" in page(bobs, address(history, "verify/"))
    verify_chain_job(history.workspace.pk, run.pk)
    found = page(bobs, address(history, "verify/"))
    assert "Everything stands as it was written" in found
    assert "Version parts" in found
    assert run.asked_label == history.users["bob"].email


def test_viewers_may_look_and_not_ask(history, viewers):
    assert "Verify now" not in page(viewers, address(history, "verify/"))
    assert viewers.post(address(history, "verify/run/")).status_code == 403
    assert viewers.get(address(history, "verify/run/")).status_code in {403, 405}
    assert not VerificationRun.objects.in_workspace(history.workspace).exists()


def test_the_first_bad_row_is_told_by_the_agents_name(history, bobs):
    run = request_verification(history.workspace, by=history.by)
    with unguarded():
        by_hand("UPDATE prompts_promptversion SET author_label = '<i>x</i>' WHERE number = 3")
        run_verification(history.workspace.pk, run.pk)
        found = page(bobs, address(history, "verify/"))
    assert "3 rows are not as written" in found
    assert "version 3 of “Pilot” on “Deck”" in found
    assert "its content does not match its hash" in found


def test_the_live_part_answers_only_when_something_changed(history, bobs):
    run = request_verification(history.workspace, by=history.by)
    mark = bobs.get(address(history, "verify/")).context["mark"]
    assert bobs.get(address(history, f"verify/live/?seen={mark}")).status_code == 204
    run_verification(history.workspace.pk, run.pk)
    found = page(bobs, address(history, f"verify/live/?seen={mark}"))
    assert "Everything stands" in found
    assert "hx-get" not in found
    assert "<html" not in found


def test_a_look_that_was_not_finished_says_why(history, bobs):
    run = request_verification(history.workspace, by=history.by)
    VerificationRun.objects.in_workspace(history.workspace).filter(pk=run.pk).update(
        state=VerificationState.FAILED, problem="The worker was lost on the way.", ended_at=timezone.now()
    )
    found = page(bobs, address(history, "verify/"))
    assert "did not come to its end" in found
    assert "The worker was lost on the way." in found


def test_the_public_key_and_all_checkpoints_can_be_taken_away_and_verified(history, bobs):
    row = SigningKey.objects.in_workspace(history.workspace).get()
    pem = bobs.get(address(history, f"verify/keys/{row.pk}/")).content.decode()
    lines = bobs.get(address(history, "verify/checkpoints/")).content.decode().splitlines()
    signed = [each for each in read_checkpoint_lines(lines) if isinstance(each, SignedCheckpoint)]
    assert len(signed) == 4
    assert verify_checkpoints(signed, {row.key_id: load_public_key(pem)}).is_sound
    assert json.loads(lines[0])["heads"]["is_whole"]
    for unknown in (row.pk + 1, 10**30):
        page(bobs, address(history, f"verify/keys/{unknown}/"), 404)


def test_a_key_that_cannot_be_used_is_loud(history, bobs, settings):
    settings.DRAMATIS_SIGNING_KEY = "/nowhere/key.pem"
    found = page(bobs, address(history, "verify/"))
    assert "nothing is being signed" in found
    assert "/nowhere" not in found
