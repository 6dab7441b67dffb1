"""The time machine: from a moment or a request to the very bytes, with what proves them."""

import json
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from personas.models import User
from prompts.integrity.checkpoints import get_public_key
from prompts.proof.canonical import format_timestamp
from prompts.replay.evidence import run_evidence_checks
from tests.factories import signed_in
from tests.prompts.integrity.forged_history import by_hand, unguarded
from tests.prompts.integrity.history_stage import History

pytestmark = pytest.mark.django_db


@pytest.fixture
def bobs(history: History) -> Client:
    return signed_in(history.users["bob"])


def address(history: History, path: str = "") -> str:
    return f"/w/{history.workspace.slug}/time-machine/{path}"


def page(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.content[:500]
    return answer.content.decode()


def at(history: History, name: str, label: str = "production", more: str = "") -> str:
    when = format_timestamp(history.times[name])
    return address(history, f"prompts/{history.prompt().pk}/{label}/{when}/{more}")


# --- finding -------------------------------------------------------------------------------------------


def test_a_moment_leads_to_an_address_that_can_be_handed_on(history, bobs):
    local = timezone.localtime(history.times["moves"]).strftime("%Y-%m-%dT%H:%M:%S")
    asked = f"?agent=pilot&channel=deck&at={quote(local)}&label=production"
    answer = bobs.get(address(history, asked))
    assert answer.status_code == 302
    assert "/production/" in answer["Location"]
    # To the second, as it was typed: the move came a fraction later.
    assert "Fetched around then" in page(bobs, answer["Location"])


def test_the_moment_is_meant_in_the_readers_own_time(history, bobs):
    User.objects.filter(pk=history.users["bob"].pk).update(timezone="Asia/Tokyo")
    form = page(bobs, address(history))
    assert "In your time zone, Asia/Tokyo." in form
    typed = "2026-01-02T09:00:00"
    answer = bobs.get(address(history, f"?agent=pilot&channel=deck&at={typed}&label=production"))
    assert answer.status_code == 422
    assert b"the first version was built on" in answer.content


def test_a_request_leads_to_its_fetch(history, bobs):
    served = history.served[-1]
    for said in (served.request_id, str(served.ledger_id)):
        answer = bobs.get(address(history, f"?request={said}"))
        assert answer["Location"] == address(history, f"fetches/{served.ledger_id}/")


def test_a_request_for_many_prompts_lists_them(history, bobs):
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET request_id = 'batch'")
        found = page(bobs, address(history, "?request=batch"))
        assert "That request was handed 9 prompts" in found
        assert found.count("/time-machine/fetches/") == 9


NOWHERE = {
    "?request=never": "Nothing was handed out here under the request id",
    "?request=": "This field is required",
    "?agent=pilot&channel=deck&label=production&at=soon": "Enter a valid date/time",
    "?agent=pilot&channel=deck&label=production&at=2999-01-01T00:00": "Name a moment that has passed",
    "?agent=nobody&channel=deck&label=production&at=2026-01-01T00:00": "Select a valid choice",
    "?agent=cook&channel=mast&label=production&at=2026-01-01T00:00": "never spoke on this channel",
    "?agent=pilot&channel=deck&label=Bad+Label&at=2026-01-01T00:00": "lower-case letters",
    "?agent=pilot&channel=deck&label=production&at=2019-01-01T00:00": "pointed at nothing yet",
    "?agent=pilot&channel=deck&at=&request=": "This field is required",
}


def test_what_leads_nowhere_is_said_under_its_field(history, bobs):
    for asked, said in NOWHERE.items():
        found = page(bobs, address(history, asked), 422)
        assert said in found, asked
        assert "was saved" not in found, "this form saves nothing"


def test_without_any_prompt_the_page_says_where_the_past_begins(elsewhere, mallory):
    assert "No prompt was built yet" in page(signed_in(mallory), f"/w/{elsewhere.slug}/time-machine/")


# --- one fetch -----------------------------------------------------------------------------------------


def test_a_fetch_is_shown_with_its_digest_and_where_its_lines_came_from(history, bobs):
    served = history.served[-1]
    found = page(bobs, address(history, f"fetches/{served.ledger_id}/"))
    assert "These are the very bytes that were handed out" in found
    assert served.served_digest in found
    assert served.request_id in found
    assert "Be careful." in found
    assert "Revision" in found
    assert "Text built again" not in found, "all checks are run when they are asked for"


def test_all_checks_are_run_when_asked_for(history, bobs):
    served = history.served[-1]
    found = page(bobs, address(history, f"fetches/{served.ledger_id}/?check=all"))
    assert "Text built again" in found
    assert "not yet sealed" in found
    assert 'aria-label="Failed"' not in found


def test_a_version_that_is_not_in_force_any_more_can_be_compared_with_now(history, bobs):
    found = page(bobs, at(history, "beginning"))
    assert "?compare=now" in found
    assert ">version 4</a> now" in found
    against = page(bobs, at(history, "beginning") + "?compare=now")
    assert "What the label led to then, and what it leads to now." in against
    assert f"/prompts/{history.prompt().pk}/diff/1/4/" in against
    assert "unchanged lines" not in page(bobs, at(history, "beginning") + "?compare=now&show=all")
    now = page(bobs, at(history, "erasure"))
    assert "Compare with now" not in now
    assert "is here still" in now


def test_a_fetch_is_compared_with_what_the_same_call_would_be_told_now(history, bobs):
    paths = (address(history, f"fetches/{served.ledger_id}/") for served in history.served[4:])
    behind = next(path for path in paths if "?compare=now" in page(bobs, path))
    found = page(bobs, f"{behind}?compare=now")
    assert "the same call with the same facts would be told now" in found
    assert "dr-diff-line is-" in found


def test_the_changes_before_and_after_are_one_step_away(history, bobs):
    found = page(bobs, at(history, "beginning"))
    assert 'rel="prev"' not in found
    assert "To version 2" in found
    steps = 0
    while 'rel="next"' in found:
        path = found.partition('rel="next" href="')[2].partition('"')[0]
        found, steps = page(bobs, path), steps + 1
    assert steps > 1
    assert "is here still" in found
    assert 'rel="prev"' in found


def test_a_link_from_an_agent_fills_in_what_it_knows(history, bobs):
    found = page(bobs, address(history, "?agent=pilot&channel=deck"))
    assert '<option value="pilot" selected>' in found
    assert '<option value="deck" selected>' in found


def test_who_fetched_around_then_is_listed(history, bobs):
    found = page(bobs, at(history, "moves"))
    for served in history.served[4:7]:
        assert f"/time-machine/fetches/{served.ledger_id}/" in found


def test_erased_words_are_said_to_be_so_and_by_whom(history, bobs):
    held = history.served[4]
    found = page(bobs, address(history, f"fetches/{held.ledger_id}/"))
    assert "Words of this prompt were erased since" in found
    assert "She asked for it." in found
    assert "flowerpot" not in found
    assert "⟦erased⟧" in found
    assert "/text/" not in found
    assert "were erased since" in page(bobs, address(history, f"fetches/{held.ledger_id}/text/"), 410)


def test_other_bytes_than_were_recorded_are_loud(history, bobs):
    served = history.served[-1]
    with unguarded():
        by_hand("UPDATE prompts_ledgerentry SET served_digest = %s WHERE id = %s", "0" * 64, served.ledger_id)
        found = page(bobs, address(history, f"fetches/{served.ledger_id}/?check=all"))
        assert "These are not the bytes that were recorded" in found
        assert 'aria-label="Failed"' in found
        assert "NOT the bytes" in page(bobs, address(history, f"fetches/{served.ledger_id}/text/"), 410)


def test_a_row_that_rolled_off_is_gone_with_its_date(history, bobs):
    gone = history.served[0].ledger_id
    for more in ("", "text/", "evidence/"):
        assert "was let go on" in page(bobs, address(history, f"fetches/{gone}/{more}"), 410)


def test_tenants_words_are_only_shown(history, bobs):
    history.reword("<script>alert(1)</script> & <b>bold</b>")
    found = page(bobs, at(history, "erasure", "latest"))
    assert "<script>alert(1)" not in found
    [served] = history.serve(1, label="latest")
    found = page(bobs, address(history, f"fetches/{served.ledger_id}/"))
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in found
    assert "<b>bold" not in found


# --- to take away --------------------------------------------------------------------------------------


def test_the_text_is_taken_away_to_the_byte(history, bobs):
    served = history.served[-1]
    answer = bobs.get(address(history, f"fetches/{served.ledger_id}/text/"))
    assert answer.content == served.text.encode()
    assert f"pilot-deck-ledger-{served.ledger_id}.md" in answer["Content-Disposition"]
    assert answer["Content-Type"].startswith("text/markdown")


def test_the_evidence_is_taken_away_and_stands(history, bobs):
    for path in (f"fetches/{history.served[-1].ledger_id}/evidence/",):
        answer = bobs.get(address(history, path))
        assert answer["Content-Type"] == "application/json"
        states = {
            check.state for check in run_evidence_checks(json.loads(answer.content), get_public_key()[0])
        }
        assert states <= {"ok", "absent"}
    answer = bobs.get(at(history, "erasure", more="evidence/"))
    states = {check.state for check in run_evidence_checks(json.loads(answer.content), get_public_key()[0])}
    assert states == {"ok"}
    assert bobs.get(at(history, "erasure", more="text/")).status_code == 200


# --- strangers and nonsense ----------------------------------------------------------------------------


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


def test_moments_in_an_address_are_held_to_the_same_rules(history, bobs):
    prompt = history.prompt().pk
    assert "pointed at nothing yet" in page(
        bobs, address(history, f"prompts/{prompt}/production/2019-01-01T00:00:00Z/"), 422
    )
    assert "a moment that has passed" in page(
        bobs, address(history, f"prompts/{prompt}/production/2999-01-01T00:00:00Z/"), 422
    )
    page(
        bobs,
        address(
            history, f"prompts/{prompt}/no-such/{format_timestamp(timezone.now() - timedelta(hours=1))}/"
        ),
        422,
    )


def test_the_way_in_asks_few_questions(history, bobs):
    page(bobs, address(history))
    with CaptureQueriesContext(
        connection,
    ) as asked:
        page(bobs, address(history))
    # The session, the person and the membership are asked for on every page.
    assert len(asked) <= 8 + 3
