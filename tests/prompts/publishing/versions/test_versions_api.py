"""REST API of prompts and versions: revalidated responses by digest, provenance, diff and verification."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from personas.models import User, Workspace
from prompts.evidence.erasure.services import erase_record
from prompts.models import PromptLabel
from prompts.publishing.versions.selectors import get_version_text
from tests.api_client import Api
from tests.factories import BY, make_memory
from tests.personas.api.prompts_stage import (  # noqa: F401  # some are fixtures
    Deck,
    a_foreign_deck,
    a_narrow_bot,
    a_narrow_key,
    good,
    problem,
)
from tests.personas.api.shared_deck import (  # noqa: F401  # fixtures
    ashore,
    shared_alice,
    shared_bob,
    shared_deck,
    shared_workspace,
)

pytestmark = pytest.mark.django_db
REVALIDATE = "private, no-cache"


def test_prompts_are_listed_with_their_labels(admin: Api, bot: Api, deck: Deck) -> None:
    deck.reword("Be wise.")
    [cook, pilot] = sorted(good(admin.get("prompts"))["items"], key=lambda row: row["agent"])
    assert (cook["agent"], pilot["agent"], pilot["channel"]) == ("cook", "pilot", "deck")
    assert pilot["latest"]["version"] == 2
    [label] = pilot["labels"]
    assert (label["name"], label["version"], label["digest"]) == ("production", 2, pilot["latest"]["digest"])
    assert [row["agent"] for row in good(bot.get("prompts?agent=cook"))["items"]] == ["cook"]
    assert good(admin.get("prompts?channel=no-such"))["items"] == []
    first = good(admin.get("prompts?limit=1"))
    rest = good(admin.get(f"prompts?limit=1&cursor={first['next_cursor']}"))
    assert {row["agent"] for row in first["items"] + rest["items"]} == {"cook", "pilot"}


def test_a_rebuild_returns_the_new_versions(admin: Api, bot: Api, deck: Deck) -> None:
    make_memory(deck.workspace, "Likes tea.", agent=deck.agents[0])
    [pilot] = good(admin.get("prompts?agent=pilot"))["items"]
    assert pilot["pending"] == 1
    result = good(admin.post("agents/pilot/prompts:rebuild"))
    assert (result["built"], result["unchanged"], result["failed"]) == (1, 0, 0)
    assert result["versions"] == [
        {"channel": "deck", "version": 2, "digest": deck.prompt().latest.digest}  # type: ignore[union-attr]
    ]
    assert good(admin.post("agents/pilot/prompts:rebuild"))["unchanged"] == 1
    problem(bot.post("agents/pilot/prompts:rebuild"), 403, "out_of_scope")


def test_versions_of_a_prompt_come_newest_first(admin: Api, bot: Api, deck: Deck) -> None:
    deck.reword("Be wise.")
    deck.reword("Be kind.")
    page = good(admin.get("agents/pilot/channels/deck/versions?limit=2"))
    assert [row["version"] for row in page["items"]] == [3, 2]
    assert page["items"][0]["labels"] == ["latest", "production"]
    assert page["items"][0]["previous_hash"] == page["items"][1]["hash"]
    last = good(bot.get(f"agents/pilot/channels/deck/versions?cursor={page['next_cursor']}"))
    assert [row["version"] for row in last["items"]] == [1]
    assert good(admin.get("agents/pilot/channels/deck/versions/2")) == page["items"][1]
    for address in ("versions/4", "versions/0", f"versions/{2**40}"):
        problem(admin.get(f"agents/pilot/channels/deck/{address}"), 404, "not_found")


def test_a_version_is_cached_and_revalidated(admin: Api, deck: Deck) -> None:
    version = deck.version(1)
    response = admin.get(f"prompt-versions/{version.digest}")
    body = good(response)
    assert body["text"] == get_version_text(version) == "".join(block["text"] for block in body["blocks"])
    assert body["segments"][-1]["range"][1] == len(body["text"])
    assert sum(section["tokens"] for section in body["sections"]) == body["tokens"]["total"] == version.tokens
    assert body["tokens"]["sections"] == {section["name"]: section["tokens"] for section in body["sections"]}
    assert response["Cache-Control"] == REVALIDATE
    second = admin.get(f"prompt-versions/{version.digest}", If_None_Match=response["ETag"])
    assert (second.status_code, second.content, second["ETag"]) == (304, b"", response["ETag"])
    assert admin.get(f"prompt-versions/{version.digest}", If_None_Match='"other"').status_code == 200


def test_several_versions_can_share_a_digest(admin: Api, narrow: Api, deck: Deck) -> None:
    assert deck.version(1).digest == deck.version(1, "cook").digest
    deck.reword("Be wise.")
    deck.reword("Be brave.")
    digest = deck.version(1).digest
    places = good(admin.get(f"prompt-versions/{digest}/usages"))["items"]
    assert [(row["agent"], row["version"]) for row in places] == [
        ("pilot", 1),
        ("cook", 1),
        ("pilot", 3),
        ("cook", 3),
    ]
    assert good(admin.get(f"prompt-versions/{digest}"))["first"] == places[0]
    mine = good(narrow.get(f"prompt-versions/{digest}/usages"))["items"]
    assert {row["agent"] for row in mine} == {"cook"}
    assert good(narrow.get(f"prompt-versions/{digest}"))["first"]["agent"] == "cook"
    chosen = good(admin.get(f"prompt-versions/{digest}/provenance?agent=cook&version=3"))
    assert (chosen["agent"], chosen["version"]) == ("cook", 3)
    problem(narrow.get(f"prompt-versions/{digest}/provenance?agent=pilot"), 404)


@pytest.mark.slow
def test_bots_get_metadata_without_text(
    bot: Api, deck: Deck, key_for: Callable[..., Api], workspace: Workspace, alice: User
) -> None:
    make_memory(deck.workspace, "Likes a very rare tea.", agent=deck.agents[0])
    deck.build()
    deck.reword("Be wise.")
    digest, other = deck.version(2).digest, deck.version(1).digest
    labelled = key_for(workspace, alice, labels=["production"])
    for api in (bot, labelled):
        for address in ("", "/usages", "/provenance", "/verify"):
            answer = api.get(f"prompt-versions/{digest}{address}")
            assert answer.status_code == (403 if address and api is bot else 200)
            assert b"rare tea" not in answer.content
        assert good(api.get(f"prompt-versions/{digest}"))["text"] is None
        problem(api.get(f"prompt-versions/{digest}/diff?against={other}"), 403, "out_of_scope")
    rows = [good(bot.get(f"agents/pilot/channels/deck/{path}")) for path in ("versions", "versions/2")]
    for row in (*rows[0]["items"], rows[1], good(bot.get(f"prompt-versions/{digest}"))["first"]):
        assert [row[name] for name in ("author", "message", "causes")] == [None] * 3


def test_provenance_names_record_revision_and_author(admin: Api, deck: Deck) -> None:
    deck.reword("Be wise.\nAnd calm.")
    version = deck.version(2)
    answer = admin.get(f"prompt-versions/{version.digest}/provenance")
    body, text = good(answer), get_version_text(version)
    assert answer["Cache-Control"] == REVALIDATE
    assert body["spans"][0]["start"] == 0
    assert body["spans"][-1]["end"] == len(text)
    [soul] = [span for span in body["spans"] if span["kind"] == "soul"]
    assert (soul["id"], soul["revision"], soul["author"]) == (str(deck.soul.pk), 2, "test")
    lines = text.split("\n")[soul["first_line"] - 1 : soul["last_line"]]
    assert "Be wise." in "\n".join(lines)
    assert "And calm." in "\n".join(lines)


def test_two_versions_are_compared(admin: Api, deck: Deck) -> None:
    deck.reword("Be wise.")
    old, new = deck.version(1).digest, deck.version(2).digest
    answer = admin.get(f"prompt-versions/{new}/diff?against={old}")
    [soul] = [one for one in good(answer)["sections"] if one["status"] != "same"]
    kinds = [(line["kind"], line["text"]) for line in soul["lines"] if line["kind"] != "same"]
    assert kinds == [("removed", "Be brave."), ("added", "Be wise.")]
    assert answer["Cache-Control"] == REVALIDATE
    missing = problem(admin.get(f"prompt-versions/{new}/diff"), 422, "invalid")
    assert missing["errors"][0]["parameter"] == "against"


@pytest.mark.slow
def test_a_sound_version_verifies_and_a_forged_one_does_not(admin: Api, deck: Deck) -> None:
    deck.reword("Be wise.")
    first = deck.version(1)
    body = good(admin.get(f"prompt-versions/{first.digest}/verify?agent=pilot"))
    assert (body["is_valid"], [place["errors"] for place in body["usages"]]) == (True, [[]])
    for column, value in (("author_label", "somebody"), ("layout", "nova"), ("text_digest", "0" * 64)):
        with forged(first.pk, column, value):
            [place] = good(admin.get(f"prompt-versions/{first.digest}/verify?agent=pilot"))["usages"]
            assert (place["is_valid"], bool(place["errors"])) == (False, True), column
    second = deck.version(2)
    with forged(first.pk, "hash", "0" * 64):
        body = good(admin.get(f"prompt-versions/{second.digest}/verify?agent=pilot"))
        assert not body["is_valid"]
    assert good(admin.get(f"prompt-versions/{second.digest}/verify"))["is_valid"]


class forged:  # noqa: N801  # a context manager
    """Overwrite a column of a version in the database, bypassing the triggers; restored on exit."""

    def __init__(self, pk: int, column: str, value: str) -> None:
        self.pk, self.column, self.value = pk, column, value

    def __enter__(self) -> None:
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT {self.column} FROM prompts_promptversion WHERE id = %s", [self.pk])  # noqa: S608  # our own name
            [self.before] = cursor.fetchone() or [None]
        self.write(self.value)

    def __exit__(self, *_: object) -> None:
        self.write(self.before)

    def write(self, value: Any) -> None:
        statements = TRIGGER_STATEMENTS[connection.vendor]
        with connection.cursor() as cursor:
            cursor.execute(statements[0])
            cursor.execute(
                f"UPDATE prompts_promptversion SET {self.column} = %s WHERE id = %s",  # noqa: S608  # our own name
                [value, self.pk],
            )
            cursor.execute(statements[1])


TRIGGER_STATEMENTS = {
    "postgresql": (
        "SET LOCAL session_replication_role = replica",
        "SET LOCAL session_replication_role = DEFAULT",
    ),
    "sqlite": (
        "DROP TRIGGER IF EXISTS prompts_promptversion_no_UPDATE",
        "SELECT 1",
    ),
}


@pytest.mark.slow
def test_erased_versions_return_410(admin: Api, bot: Api, deck: Deck) -> None:
    memory = make_memory(deck.workspace, "Mrs Penhaligon is fond of tea.", agent=deck.agents[0])
    deck.build()
    digest, other = deck.version(2).digest, deck.version(1).digest
    etag = admin.get(f"prompt-versions/{digest}")["ETag"]
    erase_record(memory, reason="Asked for.", by=BY)
    for address in ("", "/provenance", f"/diff?against={other}"):
        problem(admin.get(f"prompt-versions/{digest}{address}"), 410, "erased")
    problem(admin.get(f"prompt-versions/{digest}", If_None_Match=etag), 410, "erased")
    problem(admin.get(f"prompt-versions/{other}/diff?against={digest}"), 410, "erased")
    assert good(admin.get(f"prompt-versions/{digest}/verify"))["is_valid"]
    assert good(bot.get(f"prompt-versions/{digest}"))["text"] is None


@pytest.mark.hard
def test_foreign_and_missing_versions_are_indistinguishable(
    admin: Api, narrow: Api, deck: Deck, elsewhere_deck: Deck
) -> None:
    foreign, mine = elsewhere_deck.version(2).digest, deck.version(1).digest
    for address in ("", "/usages", "/provenance", f"/diff?against={mine}", "/verify"):
        one = problem(admin.get(f"prompt-versions/{foreign}{address}"), 404, "not_found")
        other = problem(admin.get(f"prompt-versions/{'0' * 64}{address}"), 404, "not_found")
        assert one["detail"].replace(foreign, "…") == other["detail"].replace("0" * 64, "…")
    for name in (foreign, "0" * 64):
        body = problem(admin.get(f"prompt-versions/{mine}/diff?against={name}"), 422)
        assert body["errors"] == [{"detail": "Version not found.", "parameter": "against"}]
    for address in ("versions", "versions/1"):
        problem(narrow.get(f"agents/pilot/channels/deck/{address}"), 404, "not_found")
    problem(narrow.post("agents/pilot/prompts:rebuild"), 404, "not_found")
    assert [row["agent"] for row in good(narrow.get("prompts"))["items"]] == ["cook"]
    assert PromptLabel.objects.in_workspace(deck.workspace).count() == 2


def test_a_list_of_prompts_takes_as_many_queries_for_many(
    admin: Api, deck: Deck, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(6):
        admin.get("prompts")
    with django_assert_max_num_queries(6):
        admin.get("agents/pilot/channels/deck/versions")
