"""Replay pages: search by time or request, exact text, checks and downloads."""

import json
import re
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import User
from prompts.evidence.integrity.checkpoint_signer import get_public_key
from prompts.evidence.replay.evidence import run_evidence_checks
from prompts.proof.canonical import format_timestamp
from tests.factories import signed_in
from tests.prompts.evidence.integrity.forged_history import by_hand, unguarded
from tests.prompts.evidence.integrity.history_stage import History

pytestmark = pytest.mark.django_db


@pytest.fixture
def bobs(history: History) -> Client:
    return signed_in(history.users["bob"])


def address(history: History, path: str = "") -> str:
    return f"/w/{history.workspace.slug}/time-machine/{path}"


def page(client: Client, path: str, status: int = 200) -> str:
    response = client.get(path)
    assert response.status_code == status, response.content[:500]
    return response.content.decode()


def at(history: History, name: str, label: str = "production", more: str = "") -> str:
    when = format_timestamp(history.times[name])
    return address(history, f"prompts/{history.prompt().pk}/{label}/{when}/{more}")


# --- search --------------------------------------------------------------------------------------------


def test_a_search_by_time_leads_to_a_shareable_url(history, bobs):
    local = timezone.localtime(history.times["moves"]).strftime("%Y-%m-%dT%H:%M:%S")
    query = f"?agent=pilot&channel=deck&at={quote(local)}&label=production"
    response = bobs.get(address(history, query))
    assert response.status_code == 302
    assert "/production/" in response["Location"]
    # The form has a precision of one second; the move happened a fraction later.
    assert "Fetches around that time" in page(bobs, response["Location"])


def test_the_time_is_read_in_the_users_time_zone(history, bobs):
    User.objects.filter(pk=history.users["bob"].pk).update(timezone="Asia/Tokyo")
    form = page(bobs, address(history))
    assert "In your time zone, Asia/Tokyo." in form
    typed = "2026-01-02T09:00:00"
    response = bobs.get(address(history, f"?agent=pilot&channel=deck&at={typed}&label=production"))
    assert response.status_code == 422
    assert b"the first version was built on" in response.content


def test_a_request_leads_to_its_fetch(history, bobs):
    served = history.served[-1]
    for identifier in (served.request_id, str(served.ledger_id)):
        response = bobs.get(address(history, f"?request={identifier}"))
        assert response["Location"] == address(history, f"fetches/{served.ledger_id}/")


def test_a_request_for_many_prompts_lists_them(history, bobs):
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET request_id = 'batch'")
        html = page(bobs, address(history, "?request=batch"))
        assert "9 prompts served for this request" in html
        assert html.count("/time-machine/fetches/") == 9


NOWHERE = {
    "?request=never": "No fetch has the request ID",
    "?request=": "This field is required",
    "?agent=pilot&channel=deck&label=production&at=soon": "Enter a valid date/time",
    "?agent=pilot&channel=deck&label=production&at=2999-01-01T00:00": "Enter a time in the past",
    "?agent=nobody&channel=deck&label=production&at=2026-01-01T00:00": "Select a valid choice",
    "?agent=cook&channel=mast&label=production&at=2026-01-01T00:00": "never had a prompt on this channel",
    "?agent=pilot&channel=deck&label=Bad+Label&at=2026-01-01T00:00": "owercase letters",
    "?agent=pilot&channel=deck&label=production&at=2019-01-01T00:00": "did not exist yet",
    "?agent=pilot&channel=deck&label=nope&at=2019-01-01T00:00": "This prompt never had a label “nope”.",
    "?agent=pilot&channel=deck&at=&request=": "This field is required",
}


@pytest.mark.slow
def test_search_errors_are_shown_at_their_field(history, bobs):
    for query, message in NOWHERE.items():
        html = page(bobs, address(history, query), 422)
        assert message in html, query
        assert "was saved" not in html, "this form saves nothing"


def test_without_any_prompt_the_page_says_where_the_past_begins(elsewhere, mallory):
    assert "No prompts yet" in page(signed_in(mallory), f"/w/{elsewhere.slug}/time-machine/")


# --- one fetch -----------------------------------------------------------------------------------------


def test_a_fetch_is_shown_with_its_digest_and_where_its_lines_came_from(history, bobs):
    served = history.served[-1]
    html = page(bobs, address(history, f"fetches/{served.ledger_id}/"))
    assert "Verified. This is exactly what was served" in html
    assert served.served_digest in html
    assert served.request_id in html
    assert "Be careful." in html
    assert "Revision" in html
    assert "Text rebuilt" not in html, "all checks are run when they are asked for"


def test_all_checks_are_run_on_request(history, bobs):
    served = history.served[-1]
    html = page(bobs, address(history, f"fetches/{served.ledger_id}/?check=all"))
    assert "Text rebuilt" in html
    assert "not yet sealed" in html
    assert 'aria-label="Failed"' not in html


@pytest.mark.slow
def test_a_version_that_is_not_active_any_more_can_be_compared_with_now(history, bobs):
    html = page(bobs, at(history, "beginning"))
    assert "?compare=now" in html
    assert re.search(r"now points to <a [^>]*>version 4</a>", html)
    against = page(bobs, at(history, "beginning") + "?compare=now")
    assert "The version that the label pointed to then, and the one it points to now." in against
    assert f"/prompts/{history.prompt().pk}/diff/1/4/" in against
    assert "unchanged lines" not in page(bobs, at(history, "beginning") + "?compare=now&show=all")
    now = page(bobs, at(history, "erasure"))
    assert "Compare with current version" not in now
    assert "current" in now


@pytest.mark.slow
def test_a_fetch_is_compared_with_the_same_call_now(history, bobs):
    paths = (address(history, f"fetches/{served.ledger_id}/") for served in history.served[4:])
    behind = next(path for path in paths if "?compare=now" in page(bobs, path))
    html = page(bobs, f"{behind}?compare=now")
    assert "would be served now for the same call" in html
    assert "dr-diff-line is-" in html


@pytest.mark.slow
def test_the_changes_before_and_after_are_one_step_away(history, bobs):
    html = page(bobs, at(history, "beginning"))
    assert 'rel="prev"' not in html
    assert "To version 2" in html
    steps = 0
    while 'rel="next"' in html:
        path = html.partition('rel="next" href="')[2].partition('"')[0]
        html, steps = page(bobs, path), steps + 1
    assert steps > 1
    assert "current" in html
    assert 'rel="prev"' in html


def test_a_link_from_an_agent_presets_the_form(history, bobs):
    html = page(bobs, address(history, "?agent=pilot&channel=deck"))
    assert '<option value="pilot" selected>' in html
    assert '<option value="deck" selected>' in html


def test_who_fetched_around_then_is_listed(history, bobs):
    html = page(bobs, at(history, "moves"))
    for served in history.served[4:7]:
        assert f"/time-machine/fetches/{served.ledger_id}/" in html


def test_an_erasure_is_shown_with_its_author(history, bobs):
    served = history.served[4]
    html = page(bobs, address(history, f"fetches/{served.ledger_id}/"))
    assert "Some text in this prompt has been erased" in html
    assert "She asked for it." in html
    assert "flowerpot" not in html
    assert "⟦erased⟧" in html
    assert "/text/" not in html
    assert "has been erased" in page(bobs, address(history, f"fetches/{served.ledger_id}/text/"), 410)


@pytest.mark.slow
def test_other_bytes_than_were_recorded_are_loud(history, bobs):
    served = history.served[-1]
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET served_digest = %s WHERE id = %s", "0" * 64, served.ledger_id)
        html = page(bobs, address(history, f"fetches/{served.ledger_id}/?check=all"))
        assert "The text does not match the recorded digest" in html
        assert 'aria-label="Failed"' in html
        assert "does not match the recorded digest" in page(
            bobs, address(history, f"fetches/{served.ledger_id}/text/"), 410
        )


@pytest.mark.slow
def test_an_expired_row_is_shown_with_its_date(history, bobs):
    gone = history.served[0].ledger_id
    for more in ("", "text/", "evidence/"):
        assert "was deleted on" in page(bobs, address(history, f"fetches/{gone}/{more}"), 410)


@pytest.mark.slow
def test_tenant_text_is_escaped(history, bobs):
    history.reword("<script>alert(1)</script> & <b>bold</b>")
    html = page(bobs, at(history, "erasure", "latest"))
    assert "<script>alert(1)" not in html
    [served] = history.serve(1, label="latest")
    html = page(bobs, address(history, f"fetches/{served.ledger_id}/"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "<b>bold" not in html


# --- downloads -----------------------------------------------------------------------------------------


def test_the_text_is_downloaded_to_the_byte(history, bobs):
    served = history.served[-1]
    response = bobs.get(address(history, f"fetches/{served.ledger_id}/text/"))
    assert response.content == served.text.encode()
    assert f"pilot-deck-ledger-{served.ledger_id}.md" in response["Content-Disposition"]
    assert response["Content-Type"].startswith("text/markdown")


def test_the_evidence_is_downloaded_and_verifies(history, bobs):
    for path in (f"fetches/{history.served[-1].ledger_id}/evidence/",):
        response = bobs.get(address(history, path))
        assert response["Content-Type"] == "application/json"
        states = {
            check.state for check in run_evidence_checks(json.loads(response.content), get_public_key()[0])
        }
        assert states <= {"ok", "absent"}
    response = bobs.get(at(history, "erasure", more="evidence/"))
    states = {check.state for check in run_evidence_checks(json.loads(response.content), get_public_key()[0])}
    assert states == {"ok"}
    assert bobs.get(at(history, "erasure", more="text/")).status_code == 200


# --- outsiders and invalid input -----------------------------------------------------------------------


@pytest.mark.slow
def test_strangers_get_404_for_everything(history, mallory, elsewhere):
    client = signed_in(mallory)
    entry = history.served[-1].ledger_id
    paths = [f"fetches/{entry}/{more}" for more in ("", "text/", "evidence/")]
    for path in (address(history), *(address(history, path) for path in paths), at(history, "erasure")):
        page(client, path, 404)
    for path in paths:
        page(client, f"/w/{elsewhere.slug}/time-machine/{path}", 404)
    page(
        client,
        f"/w/{elsewhere.slug}/time-machine/prompts/{history.prompt().pk}/production/2026-01-01T00:00:00Z/",
        404,
    )


def test_what_is_not_there_is_404(history, bobs):
    for path in (
        "fetches/999999999/",
        "fetches/99999999999999999999999/",
        "prompts/1/production/soon/",
        "prompts/99999999999/production/2026-01-01T00:00:00Z/",
        "prompts/999999/production/2026-01-01T00:00:00Z/",
    ):
        page(bobs, address(history, path), 404)


def test_times_in_urls_follow_the_same_rules(history, bobs):
    prompt = history.prompt().pk
    assert "did not exist yet" in page(
        bobs, address(history, f"prompts/{prompt}/production/2019-01-01T00:00:00Z/"), 422
    )
    assert "a time in the past" in page(
        bobs, address(history, f"prompts/{prompt}/production/2999-01-01T00:00:00Z/"), 422
    )
    page(
        bobs,
        address(
            history, f"prompts/{prompt}/no-such/{format_timestamp(timezone.now() - timedelta(hours=1))}/"
        ),
        422,
    )


def test_the_search_page_takes_few_queries(history, bobs):
    page(bobs, address(history))
    with CaptureQueriesContext(
        connection,
    ) as query:
        page(bobs, address(history))
    # Every page queries the session, the user and the membership.
    assert len(query) <= 8 + 3
