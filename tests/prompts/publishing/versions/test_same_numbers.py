"""Pages and API agree on the tokens of a version, of its sections, and on the share that can be cached."""

import re
from typing import Any

import pytest
from django.urls import reverse
from django.utils import timezone

from personas.actors import Actor
from personas.models import Memory
from personas.records.services import edit_record
from prompts.evidence.erasure.services import erase_record
from prompts.models import AgentPrompt
from prompts.proof.canonical import format_timestamp
from prompts.publishing.releases.services import request_release
from tests.api_client import admin, full_budgets, key_for  # noqa: F401  # fixtures
from tests.factories import BY, make_agent, make_channel, make_memory, make_soul, make_tool

pytestmark = pytest.mark.django_db(transaction=True)

SOUL = "# Calm\n\nStay calm.\n\n- Answer first.\n- Then say why.\n"


@pytest.fixture
def prompt(workspace) -> Any:
    soul = make_soul(workspace, text="Be quick.")
    agent = make_agent(
        workspace, "pilot", soul=soul, instructions="Be kind.", channels=[make_channel(workspace, "deck")]
    )
    make_memory(workspace, "High water is at six.", agent=agent)
    edit_record(soul, {"text": SOUL}, expected=1, by=BY)
    return AgentPrompt.unscoped.select_related("latest").get(agent=agent)


def read(client: Any, path: str) -> str:
    response = client.get(path, follow=True)
    assert response.status_code == 200, path
    html: str = response.content.decode()
    return re.sub(r"\s+", " ", html.partition("<main")[2].partition("</main>")[0])


def test_all_pages_show_the_tokens_of_the_version(as_alice, workspace, prompt, admin):  # noqa: F811
    number, total = prompt.latest.number, f"{prompt.latest.tokens:,}"
    base = f"/w/{workspace.slug}"
    at = format_timestamp(timezone.now())
    replay = reverse("replay:moment", args=[workspace.slug, prompt.pk, "production", at])
    version_page = read(as_alice, f"{base}/prompts/{prompt.pk}/versions/{number}/")
    studio_page, replay_page = read(as_alice, f"{base}/studio/pilot/"), read(as_alice, replay)
    assert f"{total} tokens" in version_page
    assert (
        f"{total}</strong> tokens" in studio_page
        or f"{total}</span> tokens" in studio_page
        or f">{total}<" in studio_page
    )
    assert f"{total} tokens" in replay_page
    for path in ("", "agents/pilot/channels/", "agents/pilot/versions/"):
        assert re.search(rf"\b{total}\b", read(as_alice, f"{base}/{path}")), path
    shares = {re.search(r"(\d+)% cacheable", page)[1] for page in (version_page, studio_page, replay_page)}  # type: ignore[index]
    assert len(shares) == 1
    answer = admin.get(f"agents/pilot/channels/deck/versions/{number}").json()
    assert answer["tokens"]["total"] == prompt.latest.tokens


def test_a_review_counts_a_section_as_the_version_does(as_alice, workspace, prompt):
    _characters, tokens = prompt.latest.sizes["soul"]
    number = prompt.latest.number
    diff = as_alice.get(f"/w/{workspace.slug}/prompts/{prompt.pk}/diff/{number - 1}/{number}/")
    [section] = [one for one in diff.context["diff"].sections if one.name == "soul"]
    assert section.tokens_after == tokens


def test_the_numbers_of_a_diff_add_up(as_alice, workspace, prompt):
    """Sections add up to the difference of the versions, cached and uncached tokens to the newer version."""
    tool = make_tool(workspace, "charts", description="Looks up a chart.")
    edit_record(prompt.agent, {"tools": [tool]}, expected=1, by=BY)
    old, new = prompt.versions.order_by("number")[0], prompt.versions.order_by("-number")[0]
    page = as_alice.get(f"/w/{workspace.slug}/prompts/{prompt.pk}/diff/{old.number}/{new.number}/")
    diff = page.context["diff"]
    assert diff.token_delta == new.tokens - old.tokens
    assert diff.prefix.kept_tokens + diff.prefix.rewritten_tokens == new.tokens
    assert sum(section.token_delta for section in diff.all_changed) == diff.token_delta


def test_the_sections_of_a_review_add_up_to_the_tokens_of_the_prompt(as_alice, workspace, prompt):
    values = {"name": prompt.agent.soul.name, "text": f"{SOUL}\nBe brief.\n", "revision": 2}
    as_alice.post(f"/w/{workspace.slug}/studio/pilot/review/?part=souls:{prompt.agent.soul.slug}", values)
    page = as_alice.get(f"/w/{workspace.slug}/studio/pilot/review/?part=souls:{prompt.agent.soul.slug}")
    [difference] = page.context["review"].differences
    assert sum(section.token_delta for section in difference.sections) == page.context["review"].token_delta
    [soul] = difference.sections
    assert soul.tokens_before == prompt.latest.sizes["soul"][1]


def test_the_fleet_counts_versions_and_not_prompts(as_alice, workspace, prompt):
    before = as_alice.get(f"/w/{workspace.slug}/").context["counts"].built
    edit_record(prompt.agent.soul, {"text": "Be slow."}, expected=2, by=BY)
    edit_record(prompt.agent.soul, {"text": "Be slower."}, expected=3, by=BY)
    page = as_alice.get(f"/w/{workspace.slug}/")
    assert page.context["counts"].built == before + 2
    assert "Versions built" in page.content.decode()


def get_release_figures(page: Any) -> tuple[Any, ...]:
    review = page.context["review"]
    sections = [
        (section.name, section.tokens_before, section.tokens_after)
        for difference in review.differences
        for section in difference.sections
    ]
    prefixes = [difference.prefix for difference in review.differences]
    return review.summary, review.token_delta, review.rewritten_tokens, sections, prefixes


def test_the_figures_of_a_release_stay_after_an_erasure(as_alice, workspace, alice, prompt):
    edit_record(prompt.agent, {"release_policy": "reviewed"}, expected=1, by=Actor.person(alice))
    memory = Memory.unscoped.get()
    edit_record(memory, {"text": "High water is at seven, and at noon on Sundays."}, expected=1, by=BY)
    make_memory(workspace, "The reef moved.", agent=prompt.agent)
    prompts = list(AgentPrompt.objects.in_workspace(workspace).select_related("latest"))
    release = request_release(workspace, prompts, message="Tides", by=Actor.person(alice))
    path = f"/w/{workspace.slug}/releases/{release.number}/"
    before = as_alice.get(path)
    memory.refresh_from_db()
    erase_record(memory, reason="Asked", by=BY)
    after = as_alice.get(path)
    assert "at noon on Sundays" in before.content.decode()
    assert "at noon on Sundays" not in after.content.decode()
    assert get_release_figures(before)[2] > 0
    assert get_release_figures(after) == get_release_figures(before)


@pytest.mark.planted
def test_figures_that_are_computed_from_the_erased_text_are_detected(
    as_alice, workspace, alice, prompt, monkeypatch
):
    monkeypatch.setattr("prompts.publishing.releases.services.measure_prefixes", lambda workspace, items: {})
    with pytest.raises(AssertionError):
        test_the_figures_of_a_release_stay_after_an_erasure(as_alice, workspace, alice, prompt)


def test_the_diff_of_two_versions_keeps_its_numbers_after_an_erasure(as_alice, workspace, prompt):
    memory = make_memory(workspace, "The reef moved, and so did the buoy.", agent=prompt.agent)
    prompt.refresh_from_db()
    number = prompt.last_number
    path = f"/w/{workspace.slug}/prompts/{prompt.pk}/diff/{number - 1}/{number}/"
    before = as_alice.get(path).context["diff"]
    erase_record(memory, reason="Asked", by=BY)
    after = as_alice.get(path).context["diff"]
    assert before.token_delta > 0
    assert after.token_delta == before.token_delta
