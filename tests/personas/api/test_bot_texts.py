"""Bots read memories and tasks: the text only of what they wrote, as long as nobody changed it."""

import pytest

from personas.actors import Actor
from personas.api_keys.format import BOT
from personas.api_keys.services import rotate_key
from personas.memories.services import approve_memory, supersede_memory
from personas.models import ApiKey, Memory, Task
from personas.records.services import edit_record, restore_revision
from tests.api_client import Api
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent(workspace):
    return make_agent(workspace, "pilot")


@pytest.fixture
def by_alice(alice):
    return Actor.person(alice)


def edit(record, by, **values):
    current = type(record).objects.in_workspace(record.workspace_id).get(pk=record.pk)
    return edit_record(current, values, expected=current.revision, by=by)


def get_memory(workspace, number):
    return Memory.objects.in_workspace(workspace).get(pk=number)


def get_task(workspace, number):
    return Task.objects.in_workspace(workspace).get(number=number)


def make_task(api, title="Brew", steps=("Boil", "Pour")):
    body = {"title": title, "description": "With care.", "steps": [{"title": step} for step in steps]}
    response = api.post("tasks", body)
    assert response.status_code == 201
    return response.json()


# --- memories ------------------------------------------------------------------------------------------


def test_a_bot_reads_only_memories_that_it_wrote(bot, admin, key_for, workspace, alice):
    other = key_for(workspace, alice, BOT)
    own = bot.post("memories", {"text": "Likes tea."}).json()
    assert own["text"] == "Likes tea."
    foreign = [key.post("memories", {"text": "Hidden fact."}).json()["id"] for key in (other, admin)]
    listed = bot.get("memories?archived=any")
    assert [row["id"] for row in listed.json()["items"]] == [own["id"]]
    assert b"Hidden" not in listed.content
    assert bot.get(f"memories/{own['id']}").json()["text"] == "Likes tea."
    for number in foreign:
        missing = bot.get(f"memories/{number}")
        assert missing.status_code == 404
        assert b"Hidden" not in missing.content
    narrow = key_for(workspace, alice, BOT, agents=[make_agent(workspace, "cook").slug])
    assert narrow.get("memories").json()["items"] == []


def test_a_successor_by_rotation_reads_what_its_predecessor_wrote(bot, workspace, alice, by_alice, client):
    own = bot.post("memories", {"text": "Likes tea."}).json()
    key = ApiKey.objects.in_workspace(workspace).get(kind=BOT)
    for name in ("Other name", "Third name"):
        key, secret = rotate_key(key, ends_at=key.expires_at.replace(year=2000), by=by_alice, name=name)
    last = Api(secret, client)
    assert last.get(f"memories/{own['id']}").json()["text"] == "Likes tea."
    assert make_task(last)["title"] == "Brew"


def test_a_memory_that_a_person_changed_has_no_text_for_its_bot(bot, admin, workspace, by_alice):
    number = bot.post("memories", {"text": "Likes tea.", "source": "chat"}).json()["id"]
    memory = approve_memory(get_memory(workspace, number), by=by_alice)
    assert bot.get(f"memories/{number}").json()["text"] == "Likes tea."
    edit(memory, by_alice, text="Secret plan.", source="board")
    for path in (f"memories/{number}", "memories", f"memories/{number}?fields=text,source"):
        response = bot.get(path)
        assert response.status_code == 200
        assert b"Secret" not in response.content
        assert b"board" not in response.content
    assert bot.get(f"memories/{number}").json()["text"] is None
    assert admin.get(f"memories/{number}").json()["text"] == "Secret plan."
    restore_revision(get_memory(workspace, number), 1, expected=3, by=by_alice)
    assert bot.get(f"memories/{number}").json()["text"] == "Likes tea."


def test_a_memory_that_supersedes_that_of_a_bot_is_only_a_number(bot, admin, workspace, by_alice):
    number = bot.post("memories", {"text": "Likes tea."}).json()["id"]
    successor = get_memory(workspace, admin.post("memories", {"text": "Secret taste."}).json()["id"])
    supersede_memory(get_memory(workspace, number), successor, by=by_alice)
    response = bot.get(f"memories/{number}")
    assert response.json()["superseded_by"] == successor.pk
    assert b"Secret" not in response.content
    assert bot.get(f"memories/{successor.pk}").status_code == 404


@pytest.mark.parametrize("path", ["memories", "tasks"])
def test_a_bot_cannot_search_text(path, bot, admin):
    for text in ("Secret", "Nothing"):
        problem = bot.get(f"{path}?q={text}")
        assert problem.status_code == 422
        assert problem.json()["errors"][0]["parameter"] == "q"
    assert admin.get(f"{path}?q=Secret").status_code == 200


# --- tasks ---------------------------------------------------------------------------------------------


def test_a_bot_reads_numbers_and_states_of_tasks_of_others(bot, admin):
    number = make_task(admin, "Secret mission", ("Secret step", "Second"))["number"]
    for path in ("tasks", f"tasks/{number}", f"tasks/{number}?fields=title,steps"):
        assert b"Secret" not in bot.get(path).content
    task = bot.get(f"tasks/{number}").json()
    assert (task["number"], task["status"], task["title"], task["description"]) == (
        number,
        "open",
        None,
        None,
    )
    assert task["steps"] == [{"title": None, "is_done": False}] * 2
    ticked = bot.post(f"tasks/{number}/steps/1:complete", {"is_done": True})
    assert ticked.json()["steps"] == [{"title": None, "is_done": False}, {"title": None, "is_done": True}]
    assert b"Secret" not in ticked.content
    # The step's revision is written by the bot, with the text of others.
    assert bot.get(f"tasks/{number}").json()["title"] is None
    assert bot.get(f"tasks/{number}/revisions").status_code == 403
    assert admin.get(f"tasks/{number}").json()["title"] == "Secret mission"


def test_a_task_of_a_bot_that_a_person_changed_keeps_only_the_bots_words(bot, workspace, by_alice):
    number = make_task(bot)["number"]
    task = bot.get(f"tasks/{number}").json()
    assert (task["title"], [step["title"] for step in task["steps"]]) == ("Brew", ["Boil", "Pour"])
    steps = [
        {"title": "Boil", "is_done": False},
        {"title": "Secret pour", "is_done": False},
        {"title": "Pour", "is_done": False},
    ]
    edit(get_task(workspace, number), by_alice, title="Secret brew", steps=steps)
    ticked = bot.post(f"tasks/{number}/steps/0:complete", {"is_done": True})
    again = bot.post(f"tasks/{number}/steps/1:complete", {"is_done": True})
    for response in (ticked, again, bot.get(f"tasks/{number}"), bot.get("tasks")):
        assert response.status_code == 200
        assert b"Secret" not in response.content
    task = bot.get(f"tasks/{number}").json()
    assert (task["title"], task["description"]) == (None, "With care.")
    assert [step["title"] for step in task["steps"]] == ["Boil", None, None]
    assert [step["is_done"] for step in task["steps"]] == [True, True, False]


def test_a_retry_of_a_bot_does_not_return_what_a_person_wrote_since(bot, workspace, by_alice):
    body = {"title": "Brew", "steps": [{"title": "Boil"}]}
    number = bot.post("tasks", body, Idempotency_Key="one").json()["number"]
    edit(get_task(workspace, number), by_alice, title="Secret brew")
    again = bot.post("tasks", body, Idempotency_Key="one")
    assert again.json()["number"] == number
    assert b"Secret" not in again.content


def test_another_key_with_a_name_like_that_of_a_bot_is_another_bot(bot, key_for, workspace, alice):
    number = make_task(bot)["number"]
    names = list(ApiKey.objects.in_workspace(workspace).values_list("name", flat=True))
    other = key_for(workspace, alice, BOT)
    assert other.get(f"tasks/{number}").json()["title"] is None
    assert len(names) == 1


# --- other operations ----------------------------------------------------------------------------------


CLOSED_PATHS = (
    *("agents", "agents/pilot", "souls", "identities", "user-profiles", "channels", "tools", "skills"),
    *("responsibilities", "sources", "context-files", "rule-sets", "prompt-settings", "layouts", "releases"),
    *("agents/pilot/context", "usages?kind=soul&id=1", "ledger/1/replay", "ledger/1/evidence"),
)


def test_operations_with_text_are_closed_to_bots_and_name_what_to_use(bot, agent):
    for path in CLOSED_PATHS:
        response = bot.get(path)
        assert response.status_code == 403, path
        assert "fetch or render the prompt" in response.json()["detail"]
