"""The pages of the ledger and of verification: filters, keyset pagination, results."""

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
from personas.templatetags.ui import short_id
from prompts.evidence.integrity.services import request_verification, run_verification
from prompts.evidence.ledger import selectors as ledger_selectors
from prompts.evidence.ledger.forms import MORE_FILTERS
from prompts.models import LedgerEntry, SigningKey, VerificationRun, VerificationStatus
from prompts.proof.checkpoint_comparison import verify_checkpoints
from prompts.proof.checkpoints import SignedCheckpoint, read_checkpoint_lines
from prompts.proof.signing_keys import load_public_key
from prompts.publishing.labels.services import roll_back, unpin_production
from prompts.tasks import verify_chain_job
from tests.factories import join, make_user, signed_in
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded
from tests.prompts.evidence.integrity.history_stage import History

pytestmark = pytest.mark.django_db
LIMIT = 8
# Every page queries session, user and membership.
EVERY_PAGE = 3


@pytest.fixture
def bobs(history: History) -> Client:
    return signed_in(history.users["bob"])


@pytest.fixture
def viewers(history: History) -> Client:
    viewer = make_user("Vera")
    join(history.workspace, viewer, Role.VIEWER)
    return signed_in(viewer)


def url(history: History, path: str = "ledger/") -> str:
    return f"/w/{history.workspace.slug}/{path}"


def get_html(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:500]
    return answer.content.decode()


def shown_ids(client: Client, path: str) -> list[int]:
    """Return the ids of the rows on a page, in order."""
    rows = client.get(path).context["page"].rows
    return [row.pk for row in rows]


def stored_ids(history: History) -> list[int]:
    rows = LedgerEntry.objects.in_workspace(history.workspace).order_by("-pk")
    return list(rows.values_list("pk", flat=True))


# --- the list ------------------------------------------------------------------------------------------


def test_all_served_prompts_are_listed_newest_first(history, bobs):
    assert shown_ids(bobs, url(history)) == stored_ids(history)
    html = get_html(bobs, url(history))
    assert "Rows are kept for 6 months" in html
    assert f"/time-machine/fetches/{history.served[-1].ledger_id}/" in html


@pytest.mark.slow
def test_each_filter_restricts_the_list(history, bobs):
    key = ApiKey.objects.in_workspace(history.workspace).order_by("-pk").first()
    assert key is not None
    mast = {served.ledger_id for served in history.served[7:11]}
    last = {served.ledger_id for served in history.served[-2:]}
    by_key = {served.ledger_id for served in history.served if served.key_id == key.pk}
    assert by_key < set(stored_ids(history))
    cases = {
        "agent=pilot": set(stored_ids(history)),
        "agent=cook": set(),
        "channel=mast": mast,
        f"key={key.pk}": by_key,
        "agent=pilot&channel=deck&version=4": last,
        "agent=pilot&channel=deck&version=99": set(),
        "status=304": set(),
        "status=200": set(stored_ids(history)),
        f"request={history.served[-1].request_id}": {history.served[-1].ledger_id},
        "request=never": set(),
    }
    for query, expected in cases.items():
        assert set(shown_ids(bobs, url(history, f"ledger/?{query}"))) == expected, query


def test_time_filters_use_the_users_timezone(history, bobs):
    since = timezone.localtime(history.times["moves"] - timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%S")
    until = timezone.localtime(history.times["moves"] + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%S")
    query = f"ledger/?since={quote(since)}&until={quote(until)}"
    assert shown_ids(bobs, url(history, query)) == [served.ledger_id for served in history.served[10:6:-1]]


@pytest.mark.slow
def test_pages_continue_by_cursor_and_keep_the_filters(history, bobs, monkeypatch):
    monkeypatch.setattr(ledger_selectors, "DEFAULT_PAGE_SIZE", 3)
    monkeypatch.setattr(ledger_selectors.get_ledger_page, "__kwdefaults__", {"before": None, "limit": 3})
    everything, row_ids, path = stored_ids(history), [], url(history, "ledger/?agent=pilot")
    while path:
        answer = bobs.get(path)
        row_ids += [row.pk for row in answer.context["page"].rows]
        older = answer.context["older"]
        assert not older or "agent=pilot" in older
        path = url(history, f"ledger/?{older}") if older else ""
    assert row_ids == everything


def test_a_new_row_does_not_shift_pages(history, bobs, monkeypatch):
    monkeypatch.setattr(ledger_selectors.get_ledger_page, "__kwdefaults__", {"before": None, "limit": 3})
    older = bobs.get(url(history)).context["older"]
    before = shown_ids(bobs, url(history, f"ledger/?{older}"))
    history.serve(2)
    assert shown_ids(bobs, url(history, f"ledger/?{older}")) == before


INVALID_FILTERS = {
    "agent=nobody": "Select a valid choice",
    "version=3": "choose an agent and a channel",
    "version=x": "Enter a whole number",
    "status=500": "Select a valid choice",
    "key=1;drop": "Select a valid choice",
    "since=soon": "Enter a valid date/time",
    "since=2026-02-01T00:00&until=2026-01-01T00:00": "The end must be after the start",
}


@pytest.mark.slow
def test_invalid_filters_show_an_error_at_their_field(history, bobs):
    for query, message in INVALID_FILTERS.items():
        html = get_html(bobs, url(history, f"ledger/?{query}"), 422)
        assert message in html, query
        assert "was saved" not in html, "this form saves nothing"
        assert "Try another search or filter." not in html, "nothing was searched"


@pytest.mark.slow
def test_an_invalid_cursor_is_ignored(history, bobs):
    for before in ("x", "-1", "9" * 40, "²"):
        get_html(bobs, url(history, f"ledger/?before={quote(before)}"))


@pytest.mark.slow
def test_the_list_takes_few_queries_at_any_length(history, bobs):
    for _ in range(2):
        with CaptureQueriesContext(connection) as queries:
            get_html(bobs, url(history))
        assert len(queries) <= LIMIT + EVERY_PAGE
        history.serve(12)


def test_an_empty_ledger_explains_itself(elsewhere, mallory):
    assert "Each fetch by a bot adds a row here" in get_html(
        signed_in(mallory), f"/w/{elsewhere.slug}/ledger/"
    )


def test_outsiders_get_404_and_see_nothing_through_filters(history, elsewhere, mallory):
    client = signed_in(mallory)
    for path in ("ledger/", "ledger/outdated/", "verify/", "verify/checkpoints/"):
        get_html(client, url(history, path), 404)
    query = f"/w/{elsewhere.slug}/ledger/?request={history.served[-1].request_id}"
    assert client.get(query).context["page"].rows == []


# --- outdated bots -------------------------------------------------------------------------------------


def test_bots_with_a_rolled_back_version_are_listed(history, bobs):
    unpin_production(history.prompt(), by=history.by)
    [served] = history.serve(1)
    assert served.number == 5
    roll_back([history.prompt()], by=history.by, note="Too kind")
    html = get_html(bobs, url(history, "ledger/outdated/"))
    assert "Rolled back" in html
    assert "Version 5" in html
    panel = bobs.get(url(history, "ledger/outdated/"), headers={"HX-Request": "true"}).content.decode()
    assert "<html" not in panel
    assert "Has version 5 of" in panel
    assert "but production points to version 4" in panel


def test_without_outdated_bots_the_page_says_so(elsewhere, mallory):
    assert "No outdated bots" in get_html(signed_in(mallory), f"/w/{elsewhere.slug}/ledger/outdated/")


# --- verification --------------------------------------------------------------------------------------


def test_before_the_first_verification_the_page_lists_checkpoints_and_keys(history, bobs):
    html = get_html(bobs, url(history, "verify/"))
    assert "Not verified yet" in html
    assert "No. 4" in html
    assert SigningKey.objects.in_workspace(history.workspace).get().key_id in html


@pytest.mark.parametrize(
    ("query", "is_open"),
    [("", False), ("?agent=pilot&request=x", False), ("?status=304", True), ("?trace=zzz", True)],
)
def test_more_filters_are_open_only_if_one_of_them_is_set(history, bobs, query, is_open):
    html = bobs.get(url(history) + query).content.decode()
    assert ('<details class="dr-more-filters" open>' in html) == is_open
    more = html.partition('<details class="dr-more-filters"')[2].partition("</details>")[0]
    assert all(f'name="{name}"' in more for name in MORE_FILTERS)
    assert not any(f'name="{name}"' in more for name in ("agent", "channel", "key", "request"))


def test_a_long_request_id_is_short_and_has_its_whole_value_in_the_title(history, bobs):
    request_id = "0f8fad5b-d9cb-469f-a165-70867728950e"
    html = short_id(request_id, 7, "Copy request ID")
    assert f'title="{request_id}" data-text="{request_id}">0f8fad5b…<' in html
    assert 'data-copy="short-id-7"' in html
    assert short_id("req-1", 7, "Copy request ID") == "req-1"
    assert short_id("", 7, "Copy request ID") == "—"
    assert history.served[-1].request_id in get_html(bobs, url(history))


def test_an_editor_requests_a_verification_and_sees_its_result(history, bobs):
    answer = bobs.post(url(history, "verify/run/"))
    assert answer["Location"] == url(history, "verify/")
    run = VerificationRun.objects.in_workspace(history.workspace).get()
    assert "It will start shortly" in get_html(bobs, url(history, "verify/"))
    verify_chain_job(history.workspace.pk, run.pk)
    html = get_html(bobs, url(history, "verify/"))
    assert "Verified: no tampering found" in html
    assert "Version parts" in html
    assert run.requested_label == history.users["bob"].email


def test_viewers_may_read_but_not_request_a_verification(history, viewers):
    assert "Verify now" not in get_html(viewers, url(history, "verify/"))
    assert viewers.post(url(history, "verify/run/")).status_code == 403
    assert viewers.get(url(history, "verify/run/")).status_code in {403, 405}
    assert not VerificationRun.objects.in_workspace(history.workspace).exists()


def test_the_first_bad_row_is_described_with_the_agents_name(history, bobs):
    run = request_verification(history.workspace, by=history.by)
    with unguarded():
        by_hand("UPDATE prompts_promptversion SET author_label = '<i>x</i>' WHERE number = 3")
        run_verification(history.workspace.pk, run.pk)
        html = get_html(bobs, url(history, "verify/"))
    assert "3 rows failed verification" in html
    assert "version 3 of “Pilot” on “Deck”" in html
    assert "its content does not match its hash" in html


def test_the_live_part_responds_only_when_something_changed(history, bobs):
    run = request_verification(history.workspace, by=history.by)
    mark = bobs.get(url(history, "verify/")).context["mark"]
    assert bobs.get(url(history, f"verify/live/?seen={mark}")).status_code == 204
    run_verification(history.workspace.pk, run.pk)
    html = get_html(bobs, url(history, f"verify/live/?seen={mark}"))
    assert "no tampering found" in html
    assert "hx-get" not in html
    assert "<html" not in html


def test_a_failed_verification_says_why(history, bobs):
    run = request_verification(history.workspace, by=history.by)
    VerificationRun.objects.in_workspace(history.workspace).filter(pk=run.pk).update(
        status=VerificationStatus.FAILED,
        problem="The worker stopped before the run was finished.",
        ended_at=timezone.now(),
    )
    html = get_html(bobs, url(history, "verify/"))
    assert "did not finish" in html
    assert "The worker stopped before the run was finished." in html


def test_the_public_key_and_all_checkpoints_can_be_downloaded_and_verified(history, bobs):
    row = SigningKey.objects.in_workspace(history.workspace).get()
    pem = bobs.get(url(history, f"verify/keys/{row.pk}/")).content.decode()
    lines = bobs.get(url(history, "verify/checkpoints/")).content.decode().splitlines()
    signed = [each for each in read_checkpoint_lines(lines) if isinstance(each, SignedCheckpoint)]
    assert len(signed) == 4
    assert verify_checkpoints(signed, {row.key_id: load_public_key(pem)}).is_sound
    assert json.loads(lines[0])["heads"]["is_whole"]
    for unknown in (row.pk + 1, 10**30):
        get_html(bobs, url(history, f"verify/keys/{unknown}/"), 404)


def test_an_unusable_signing_key_shows_a_warning(history, bobs, settings):
    settings.DRAMATIS_SIGNING_KEY = "/nowhere/key.pem"
    html = get_html(bobs, url(history, "verify/"))
    assert "cannot be used or is not trusted" in html
    assert "/nowhere" not in html
