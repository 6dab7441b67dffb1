"""Page actions that change prompts are reviewed before they are saved."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from personas.models import Agent, Memory, MemoryStatus, Soul, User, Workspace
from personas.records.services import edit_record
from personas.ui.responses import REVIEWED_FIELD, create_review_token
from prompts.models import PRODUCTION, AgentPrompt, PromptLabel
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import roll_back
from prompts.publishing.versions.selectors import get_version_text
from tests.factories import BY, PASSWORD, make_agent, make_channel, make_memory, make_soul, signed_in

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def soul(workspace: Workspace) -> Soul:
    return make_soul(workspace, text="Be brave.")


@pytest.fixture
def pilot(workspace: Workspace, soul: Soul) -> Agent:
    """An agent on two channels, whose production follows its builds."""
    channels = [make_channel(workspace, "deck"), make_channel(workspace, "radio")]
    agent = make_agent(workspace, "pilot", soul=soul, channels=channels)
    edit_record(soul, {"text": "Be calm."}, expected=1, by=BY)
    return agent


@pytest.fixture
def editor(alice: User) -> Client:
    """Alice's client. It does not confirm reviews by itself, unlike `signed_in`."""
    client = Client()
    client.cookies = signed_in(alice).cookies
    return client


def get_production(agent: Agent, channel: str = "deck") -> str:
    label = PromptLabel.unscoped.get(prompt__agent=agent, prompt__channel__slug=channel, name=PRODUCTION)
    return get_version_text(label.version)


def confirm(client: Client, path: str, data: dict[str, Any]) -> Any:
    """Send an action, check that it is reviewed, and press the button of the review."""
    review = client.post(path, data)
    assert review.status_code == 200
    assert review["Dramatis-Review"] == "required"
    return client.post(path, {**data, REVIEWED_FIELD: review.context["token"]})


def soul_form(soul: Soul, text: str) -> dict[str, Any]:
    soul.refresh_from_db()
    return {"name": soul.name, "text": text, "revision": soul.revision}


def test_a_save_shows_the_prompts_and_the_diff_and_saves_nothing(editor, workspace, soul, pilot):
    path = f"/w/{workspace.slug}/souls/{soul.slug}/edit/"
    page = editor.post(path, soul_form(soul, "Be loud.")).content.decode()
    assert "Save and deploy (2 prompts)" in page
    assert "Be loud." in page
    assert "Nothing has been saved yet." in page
    soul.refresh_from_db()
    assert soul.text == "Be calm."
    assert "Be loud." not in get_production(pilot)


def test_the_button_of_the_review_saves_and_deploys(editor, workspace, soul, pilot):
    path = f"/w/{workspace.slug}/souls/{soul.slug}/edit/"
    data = {**soul_form(soul, "Be loud."), "change_message": "Louder."}
    assert confirm(editor, path, data).status_code == 302
    assert "Be loud." in get_production(pilot)
    soul.refresh_from_db()
    assert soul.text == "Be loud."


def test_a_reviewed_agent_waits_for_approval(editor, workspace, soul, pilot):
    edit_record(pilot, {"release_policy": "reviewed"}, expected=pilot.revision, by=BY)
    page = editor.post(f"/w/{workspace.slug}/souls/{soul.slug}/edit/", soul_form(soul, "Be loud."))
    assert "Save (2 prompts wait for approval)" in page.content.decode()


def test_a_save_whose_build_fails_is_kept_for_the_workers(editor, workspace, soul, pilot, monkeypatch):
    def fail(*args: Any) -> None:
        raise RuntimeError("The disk is full.")

    monkeypatch.setattr("prompts.publishing.builds.publish.advance_production", fail)
    path = f"/w/{workspace.slug}/souls/{soul.slug}/edit/"
    assert confirm(editor, path, soul_form(soul, "Be loud.")).status_code == 302
    soul.refresh_from_db()
    assert soul.text == "Be loud."
    assert "Be loud." not in get_production(pilot)
    monkeypatch.undo()
    rebuild_agents(workspace, [pilot.pk])
    assert "Be loud." in get_production(pilot)


def test_an_action_that_changes_no_prompt_is_done_at_once(editor, workspace, pilot):
    other = make_soul(workspace, "Other", text="Nobody has this.")
    path = f"/w/{workspace.slug}/souls/{other.slug}/edit/"
    assert editor.post(path, soul_form(other, "Still nobody.")).status_code == 302
    other.refresh_from_db()
    assert other.text == "Still nobody."


def test_a_token_is_valid_for_what_was_shown_only(editor, workspace, soul, pilot):
    path = f"/w/{workspace.slug}/souls/{soul.slug}/edit/"
    data = soul_form(soul, "Be loud.")
    token = editor.post(path, data).context["token"]
    answer = editor.post(path, {**data, "text": "Be evil.", REVIEWED_FIELD: token})
    assert answer["Dramatis-Review"] == "required"
    assert "The prompts changed after you opened the review" in answer.content.decode()
    assert "Be evil." not in get_production(pilot)


@pytest.mark.parametrize("forged", ["", "x", "other user", "other path"])
def test_a_token_of_someone_else_or_of_another_action_is_worth_nothing(editor, alice, soul, pilot, forged):
    workspace = soul.workspace
    path = f"/w/{workspace.slug}/souls/{soul.slug}/edit/"
    data = soul_form(soul, "Be loud.")
    effect = editor.post(path, data).context["action"].digest
    tokens = {
        "other user": create_review_token(alice.pk + 1, path, effect),
        "other path": create_review_token(alice.pk, "/elsewhere/", effect),
    }
    answer = editor.post(path, {**data, REVIEWED_FIELD: tokens.get(forged, forged)})
    assert answer["Dramatis-Review"] == "required"
    assert "Be loud." not in get_production(pilot)


def test_restoring_a_revision_is_reviewed_and_its_undo_is_not(editor, workspace, soul, pilot):
    path = f"/w/{workspace.slug}/souls/{soul.slug}/history/1/restore/"
    soul.refresh_from_db()
    page = editor.post(path, {"expected": soul.revision})
    assert "Restore and deploy (2 prompts)" in page.content.decode()
    answer = confirm(editor, path, {"expected": soul.revision})
    assert "Be brave." in get_production(pilot)
    undo = editor.get(answer["Location"]).context["messages"]
    [fields] = [message.extra_tags for message in undo if "undo" in (message.extra_tags or "")]
    parsed = json.loads(fields)
    assert editor.post(parsed["undo"], parsed["fields"]).status_code == 302
    assert "Be calm." in get_production(pilot)


def test_approving_a_memory_is_reviewed(editor, workspace, pilot):
    memory = make_memory(workspace, text="The reef moved.", status=MemoryStatus.PROPOSED, agent=pilot)
    path = f"/w/{workspace.slug}/memories/{memory.pk}/approve/"
    page = editor.post(path).content.decode()
    assert "Approve and deploy (2 prompts)" in page
    assert "The reef moved." in page
    assert Memory.unscoped.get(pk=memory.pk).status == MemoryStatus.PROPOSED
    confirm(editor, path, {})
    assert "The reef moved." in get_production(pilot)


def test_the_review_of_a_bulk_action_has_its_verb(editor, workspace, pilot):
    active = make_memory(workspace, text="The reef moved.", agent=pilot)
    proposed = make_memory(workspace, text="It rains.", status=MemoryStatus.PROPOSED, agent=pilot)
    for page, verb, memory, button in (
        ("all/bulk", "archive", active, "Revoke and deploy (2 prompts)"),
        ("decide", "approve", proposed, "Approve and deploy (2 prompts)"),
    ):
        data = {"verb": verb, "chosen": memory.pk}
        assert button in editor.post(f"/w/{workspace.slug}/memories/{page}/", data).content.decode()


def test_a_roll_back_is_reviewed(editor, workspace, pilot):
    prompt = AgentPrompt.unscoped.get(agent=pilot, channel__slug="deck")
    path = f"/w/{workspace.slug}/prompts/{prompt.pk}/roll-back/"
    page = editor.post(path, {"note": "Too calm."}).content.decode()
    assert "Roll back and deploy (1 prompt)" in page
    assert "brave" in page
    assert "Be calm." in get_production(pilot)
    confirm(editor, path, {"note": "Too calm."})
    assert "Be brave." in get_production(pilot)


def test_resuming_automatic_releases_is_reviewed(editor, workspace, pilot):
    prompt = AgentPrompt.unscoped.get(agent=pilot, channel__slug="deck")
    roll_back([prompt], by=BY, note="Too calm.")
    page = editor.post(f"/w/{workspace.slug}/prompts/{prompt.pk}/unpin/").content.decode()
    assert "Resume and deploy (1 prompt)" in page
    assert "Be brave." in get_production(pilot)


def test_resuming_is_done_at_once_if_production_stays_where_it_is(editor, workspace, pilot):
    AgentPrompt.unscoped.filter(agent=pilot).update(is_pinned=True)
    prompt = AgentPrompt.unscoped.get(agent=pilot, channel__slug="deck")
    answer = editor.post(f"/w/{workspace.slug}/prompts/{prompt.pk}/unpin/")
    assert answer.status_code == 302
    prompt.refresh_from_db()
    assert not prompt.is_pinned


def test_prompt_settings_are_reviewed(editor, workspace, pilot):
    path = f"/w/{workspace.slug}/prompt-settings/agents/{pilot.slug}/"
    form = editor.get(path).context["form"]
    data = {name: form[name].value() or "" for name in form.fields}
    data |= {"mission": "Guard the reef."}
    answer = editor.post(path, data)
    assert answer["Dramatis-Review"] == "required"
    assert "(2 prompts)" in answer.content.decode()


def test_erasing_is_reviewed(editor, workspace, pilot):
    memory = make_memory(workspace, text="Ann lives at 5 Low Road.", agent=pilot)
    edit_record(memory, {"text": "Ann lives at 6 Low Road."}, expected=memory.revision, by=BY)
    assert "6 Low Road" in get_production(pilot)
    path = f"/w/{workspace.slug}/erasures/memories/{memory.pk}/"
    data = {"reason": "Asked for.", "sure": "on"}
    page = editor.post(path, data).content.decode()
    assert "Erase and deploy (2 prompts)" in page
    assert "6 Low Road" in get_production(pilot)
    confirm(editor, path, data)
    assert "6 Low Road" not in get_production(pilot)


def skip_review(_request: Any, _view: Any, call: Any) -> Any:
    """A planted fault: views that are called again after a sign-in have no review step."""
    return call()


@pytest.mark.parametrize("is_planted", [False, pytest.param(True, marks=pytest.mark.planted)])
def test_an_action_is_also_reviewed_after_a_sign_in(alice, workspace, pilot, settings, is_planted):
    """Sign in, erase, confirm the sign-in: the stored request shows its review, and only then erases."""
    if is_planted:
        settings.REVIEW_STEP = f"{__name__}.skip_review"
    alice.set_password(PASSWORD)
    alice.save()
    client = Client()
    client.cookies = signed_in(alice).cookies
    memory = make_memory(workspace, text="Ann lives at 5 Low Road.", agent=pilot)
    path, data = f"/w/{workspace.slug}/erasures/memories/{memory.pk}/", {"reason": "Asked for.", "sure": "on"}
    assert "/reauthenticate/" in client.post(path, data)["Location"]
    answer = client.post("/accounts/reauthenticate/", {"password": PASSWORD, "next": path})
    assert (answer.headers.get("Dramatis-Review") == "required") != is_planted
    assert ("5 Low Road" in get_production(pilot)) != is_planted
    if not is_planted:
        client.post(path, {**data, REVIEWED_FIELD: answer.context["token"]})
        assert "5 Low Road" not in get_production(pilot)


def test_a_script_can_ask_for_the_review_without_saving(editor, workspace, soul, pilot):
    path, ask = f"/w/{workspace.slug}/souls/{soul.slug}/edit/", {"Dramatis-Review": "ask"}
    answer = editor.post(path, soul_form(soul, "Be loud."), headers=ask)
    assert answer["Dramatis-Review"] == "required"
    assert "<html" not in answer.content.decode()
    other = make_soul(workspace, "Other", text="Nobody has this.")
    path = f"/w/{workspace.slug}/souls/{other.slug}/edit/"
    assert editor.post(path, soul_form(other, "Still nobody."), headers=ask).status_code == 204
    other.refresh_from_db()
    assert other.text == "Nobody has this."
    assert not list(editor.get(f"/w/{workspace.slug}/souls/").context["messages"])


def test_the_messages_of_an_action_are_discarded_and_earlier_ones_stay(editor, workspace, pilot):
    other = make_soul(workspace, "Other", text="Nobody has this.")
    editor.post(f"/w/{workspace.slug}/souls/{other.slug}/edit/", soul_form(other, "Still nobody."))
    memory = make_memory(workspace, text="The reef moved.", status=MemoryStatus.PROPOSED, agent=pilot)
    path, data = f"/w/{workspace.slug}/memories/decide/", {"approve": memory.pk}
    for headers in ({"HX-Request": "true"}, {"Dramatis-Review": "ask"}):
        assert editor.post(path, data, headers=headers)["Dramatis-Review"] == "required"
    page = editor.post(path, data)
    assert [str(message) for message in page.context["messages"]] == ["“Other” saved."]


def test_an_uploaded_file_is_kept_by_the_page_of_the_review(editor, workspace, pilot):
    path = f"/w/{workspace.slug}/memories/import/"
    text = '[\n"The reef moved."]'
    upload = SimpleUploadedFile("memories.json", text.encode("utf-8-sig"))
    page = editor.post(path, {"file": upload, "text": "overridden by the file"})
    assert "Import and deploy (2 prompts)" in page.content.decode()
    fields = dict(page.context["fields"])
    assert fields == {"text": text}
    assert editor.post(path, {**fields, REVIEWED_FIELD: page.context["token"]}).status_code == 200
    assert "The reef moved." in get_production(pilot)


def test_a_card_on_the_board_gets_the_review_as_a_dialog(editor, workspace, pilot):
    memory = make_memory(workspace, text="The reef moved.", status=MemoryStatus.PROPOSED, agent=pilot)
    answer = editor.post(
        f"/w/{workspace.slug}/memories/decide/", {"approve": memory.pk}, headers={"HX-Request": "true"}
    )
    assert answer["HX-Retarget"] == "#dr-review-body"
    assert "Approve and deploy (2 prompts)" in answer.content.decode()
    assert Memory.unscoped.get(pk=memory.pk).status == MemoryStatus.PROPOSED


def test_the_impact_of_a_new_agent_names_its_prompts_and_creates_nothing(editor, workspace, pilot, soul):
    """Before, it said that no prompt changes."""
    channels = [link.channel_id for link in pilot.channel_links.all()]
    form = editor.get(f"/w/{workspace.slug}/agents/new/").context["form"]
    data = {name: form[name].value() or "" for name in form.fields if "tools" not in name}
    data |= {"name": "Cook", "slug": "cook", "channels": channels, "soul": soul.pk}
    page = editor.post(f"/w/{workspace.slug}/impact/agents/", data).content.decode()
    assert "Adds 2 prompts for 1 agent" in page
    assert "Create and deploy (2 prompts)" in page
    assert "Be calm." in page
    assert not Agent.unscoped.filter(slug="cook").exists()


def test_a_first_version_in_production_shows_its_full_text(editor, workspace, pilot, soul):
    """A change of another prompt beside it makes the review necessary."""
    new = make_channel(workspace, "bridge")
    data = agent_form(editor, workspace, pilot)
    data["channels"] = [*data["channels"], new.pk]
    data["instructions"] = "Answer in verse."
    page = editor.post(f"/w/{workspace.slug}/agents/{pilot.slug}/edit/", data).content.decode()
    assert "Save and deploy (3 prompts)" in page
    assert "New in production" in page
    assert "full text" in page


def agent_form(editor: Client, workspace: Workspace, agent: Agent) -> dict[str, Any]:
    form = editor.get(f"/w/{workspace.slug}/agents/{agent.slug}/edit/").context["form"]
    values = {name: form[name].value() for name in form.fields}
    return {name: "" if value is None else value for name, value in values.items()}
