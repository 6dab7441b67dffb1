"""Comments on memories and on lines of versions: who writes them, who is notified, and what is erased."""

import pytest
from django.urls import reverse

from personas.actors import Actor
from personas.erasure.services import ERASED_TEXT
from personas.errors import InvalidInput
from personas.models import AuditEvent, Notification
from personas.notifications.descriptions import describe_notifications
from personas.notifications.services import create_all_notifications
from personas.roles import Role
from prompts.errors import NotAllowed
from prompts.evidence.erasure.services import erase_record
from prompts.models import AgentPrompt, Comment, PromptVersion
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.comments.selectors import get_version_lines
from prompts.publishing.comments.services import comment_on_line, comment_on_memory, delete_comment
from tests.factories import join, make_agent, make_channel, make_memory, make_soul, make_user

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(workspace) -> Actor:
    user = make_user("Ada")
    join(workspace, user, Role.VIEWER)
    return Actor.person(user)


@pytest.fixture
def version(workspace) -> PromptVersion:
    soul = make_soul(workspace, text="Be brave.\nBe kind.")
    agent = make_agent(workspace, "careful", soul=soul, channels=[make_channel(workspace, "deck")])
    rebuild_agents(workspace, [agent.pk])
    prompt = AgentPrompt.objects.in_workspace(workspace).select_related("latest").get()
    assert prompt.latest
    return prompt.latest


@pytest.fixture
def memory(workspace, bob):
    return make_memory(workspace, text="The reef moved.", by=Actor.person(bob))


def list_notified(workspace) -> list[tuple[str, str, str]]:
    create_all_notifications()
    rows = Notification.objects.in_workspace(workspace).select_related("member__user", "event__actor")
    texts = describe_notifications(workspace, list(rows))
    return sorted(
        (str(row.member.user), text.title, text.detail) for row, text in zip(rows, texts, strict=True)
    )


def find_line(version, text: str) -> int:
    return next(index for index, line in enumerate(get_version_lines(version), 1) if text in line)


def version_url(version) -> str:
    return f"/w/harbour/comments/versions/{version.prompt_id}/{version.number}/"


# --- memories --------------------------------------------------------------------------------------------


def test_a_comment_on_a_memory_notifies_its_author_and_earlier_commenters(workspace, memory, ada, alice):
    comment_on_memory(memory, text="Which reef?", by=ada)
    assert list_notified(workspace) == [("Bob", "Ada commented on a memory", "Which reef?")]
    comment_on_memory(memory, text="The north one.", by=Actor.person(alice))
    people = {person for person, _title, detail in list_notified(workspace) if detail == "The north one."}
    assert people == {"Ada", "Bob"}


def test_a_viewer_comments_on_the_page_of_a_memory(as_bob, memory):
    url = f"/w/harbour/comments/memories/{memory.pk}/"
    assert url in as_bob.get(f"/w/harbour/memories/{memory.pk}/").content.decode()
    answer = as_bob.post(url, {"text": "Is this so?"})
    assert answer.url == f"/w/harbour/memories/{memory.pk}/#comments"
    panel = as_bob.get(url, headers={"HX-Request": "true"})
    assert "Is this so?" in panel.content.decode()
    assert "<html" not in panel.content.decode()
    assert "<html" in as_bob.get(url).content.decode()


def test_the_list_is_sent_again_only_after_a_new_comment(as_bob, memory, ada):
    url, script = f"/w/harbour/comments/memories/{memory.pk}/", {"HX-Request": "true"}
    mark = as_bob.get(url, headers=script).context["mark"]
    assert as_bob.get(f"{url}?seen={mark}", headers=script).status_code == 204
    comment_on_memory(memory, text="Which reef?", by=ada)
    part = as_bob.get(f"{url}?seen={mark}", headers=script).content.decode()
    assert "Which reef?" in part
    # What is typed into the form stays.
    assert "<form" not in part


def test_an_erasure_deletes_the_comments_on_the_memory(workspace, memory, version, ada, alice):
    comment_on_memory(memory, text="The reef moved, really?", by=ada)
    comment_on_line(version, 1, text="Why?", by=ada)
    [event] = AuditEvent.objects.in_workspace(workspace).filter(verb="commented", kind="memory")
    assert event.object_label == str(memory)
    erase_record(memory, reason="Asked for.", by=Actor.person(alice))
    assert [comment.text for comment in Comment.objects.in_workspace(workspace)] == ["Why?"]
    event.refresh_from_db()
    assert event.object_label == ERASED_TEXT


# --- lines of versions -----------------------------------------------------------------------------------


def test_a_comment_on_a_line_shows_the_line(as_bob, workspace, version, ada):
    line = find_line(version, "Be kind.")
    comment_on_line(version, line, text="Kind to whom?", by=ada)
    page = as_bob.get(version_url(version), headers={"HX-Request": "true"}).content.decode()
    assert f"Line {line}" in page
    assert "Be kind." in page
    assert "Kind to whom?" in page


def test_every_row_of_a_version_links_to_the_form_with_its_line(as_bob, version):
    line = find_line(version, "Be brave.")
    page = as_bob.get(reverse("versions:detail", args=["harbour", version.prompt_id, version.number]))
    assert f'href="?line={line}#comments"' in page.content.decode()
    opened = as_bob.get(f"{page.request['PATH_INFO']}?line={line}")
    [row] = [
        row for section in opened.context["reading"].sections for row in section.rows if row.comments_url
    ]
    assert row.line <= line
    assert row.comments_url.startswith(f"{version_url(version)}?lines={row.line}-")
    panel = as_bob.get(row.comments_url, headers={"HX-Request": "true"})
    assert panel.context["comment_form"]["line"].value() == line
    kind = find_line(version, "Be kind.")
    assert f'<option value="{kind}"' in panel.content.decode()
    other = as_bob.get(row.comments_url.replace(f"&line={line}", f"&line={kind}"))
    assert other.context["comment_form"]["line"].value() == kind


@pytest.mark.parametrize("lines", ["", "x", "0-3", "5-2", "1-999999999", "3"])
def test_without_a_range_of_lines_all_comments_are_listed_and_no_form(as_bob, version, ada, lines):
    comment_on_line(version, 2, text="Why?", by=ada)
    panel = as_bob.get(f"{version_url(version)}?lines={lines}", headers={"HX-Request": "true"})
    assert "Why?" in panel.content.decode()
    assert panel.context["comment_form"] is None


def test_the_comments_on_other_lines_are_not_in_the_panel_of_a_row(as_bob, version, ada):
    comment_on_line(version, 2, text="Why?", by=ada)
    url, script = f"{version_url(version)}?lines=3-4", {"HX-Request": "true"}
    panel = as_bob.get(url, headers=script)
    assert "Why?" not in panel.content.decode()
    mark = panel.context["mark"]
    assert f"?lines=3-4&amp;seen={mark}" in panel.content.decode()
    assert as_bob.get(f"{url}&seen={mark}", headers=script).status_code == 204


def test_a_row_shows_the_number_of_comments_on_its_lines(as_bob, version, ada):
    url = reverse("versions:detail", args=["harbour", version.prompt_id, version.number])
    assert "has-comments" not in as_bob.get(url).content.decode()
    line = find_line(version, "Be kind.")
    for text in ("Why?", "Kind to whom?"):
        comment_on_line(version, line, text=text, by=ada)
    page = as_bob.get(url).content.decode()
    assert page.count("has-comments") == 1
    # The link opens the line with the comments.
    assert f'has-comments" href="?line={line}#comments"' in page
    assert '<span class="sr-only">Comments: </span>2</a>' in page


def test_a_comment_on_a_version_notifies_earlier_commenters(workspace, version, ada, bob):
    comment_on_line(version, 2, text="Why?", by=ada)
    comment_on_line(version, 2, text="Because.", by=Actor.person(bob))
    title = "Bob commented on line 2 of version 1 (careful on deck)"
    assert ("Ada", title, "Because.") in list_notified(workspace)


@pytest.mark.parametrize("line", [0, 10_000, -1])
def test_a_line_that_the_version_does_not_have_is_refused(workspace, version, ada, line):
    with pytest.raises(InvalidInput):
        comment_on_line(version, line, text="Where?", by=ada)
    assert not Comment.objects.in_workspace(workspace).exists()


@pytest.mark.parametrize("values", [{"text": ""}, {"text": "x" * 4_001}, {"line": "x", "text": "Why?"}, {}])
def test_an_invalid_comment_is_not_saved(as_bob, workspace, memory, version, values):
    as_bob.post(version_url(version), {"line": "1"} | values)
    as_bob.post(f"/w/harbour/comments/memories/{memory.pk}/", {"text": ""} if "line" in values else values)
    assert not Comment.objects.in_workspace(workspace).exists()


def test_others_get_404(as_mallory, memory, version):
    for url in (f"/w/harbour/comments/memories/{memory.pk}/", version_url(version)):
        assert as_mallory.get(url).status_code == 404
        assert as_mallory.post(url, {"text": "Hello", "line": 1}).status_code == 404


# --- deleting --------------------------------------------------------------------------------------------


def test_an_author_deletes_a_comment_and_the_open_list_loses_it(as_bob, workspace, memory, bob):
    comment = comment_on_memory(memory, text="Secretly wrong", by=Actor.person(bob))
    url, script = f"/w/harbour/comments/memories/{memory.pk}/", {"HX-Request": "true"}
    panel = as_bob.get(url, headers=script)
    assert f'action="/w/harbour/comments/{comment.pk}/delete/"' in panel.content.decode()
    answer = as_bob.post(f"/w/harbour/comments/{comment.pk}/delete/")
    assert answer.url == f"/w/harbour/memories/{memory.pk}/#comments"
    part = as_bob.get(f"{url}?seen={panel.context['mark']}", headers=script)
    assert "No comments yet." in part.content.decode()
    event = AuditEvent.objects.in_workspace(workspace).get(verb="comment deleted")
    assert (event.kind, event.object_id, event.before) == ("memory", memory.pk, {"comment_id": comment.pk})
    assert event.object_label == str(memory)


def test_the_deletion_of_a_comment_on_a_line_returns_to_the_version(as_bob, workspace, version, bob):
    comment = comment_on_line(version, 1, text="Why?", by=Actor.person(bob))
    answer = as_bob.post(f"/w/harbour/comments/{comment.pk}/delete/")
    page = reverse("versions:detail", args=["harbour", version.prompt_id, version.number])
    assert answer.url == f"{page}?line=1#comments"
    assert not Comment.objects.in_workspace(workspace).exists()


def test_nobody_deletes_the_comment_of_another(as_alice, workspace, memory, ada, alice):
    comment = comment_on_memory(memory, text="Which reef?", by=ada)
    panel = as_alice.get(f"/w/harbour/comments/memories/{memory.pk}/").content.decode()
    assert "/delete/" not in panel
    for key in (comment.pk, 2**63):
        assert as_alice.post(f"/w/harbour/comments/{key}/delete/").status_code == 404
    with pytest.raises(NotAllowed):
        delete_comment(comment, by=Actor.person(alice))
    assert Comment.objects.in_workspace(workspace).exists()


def test_an_erasure_deletes_comments_on_versions_that_quote_the_text(workspace, ada, alice):
    agent = make_agent(workspace, "careful", channels=[make_channel(workspace, "deck")])
    memory = make_memory(workspace, text="The reef moved.", agent=agent)
    rebuild_agents(workspace, [agent.pk])
    version = AgentPrompt.objects.in_workspace(workspace).select_related("latest").get().latest
    assert version
    line = find_line(version, "The reef moved.")
    comment_on_line(version, line, text="“The reef moved.” Really?", by=ada)
    comment_on_line(version, line, text="Is this so?", by=ada)
    erase_record(memory, reason="Asked for.", by=Actor.person(alice))
    assert [comment.text for comment in Comment.objects.in_workspace(workspace)] == ["Is this so?"]


# --- API -------------------------------------------------------------------------------------------------


def test_the_api_lists_creates_and_deletes_comments_on_a_memory(workspace, memory, admin, ada):
    comment_on_memory(memory, text="Which reef?", by=ada)
    created = admin.post(f"memories/{memory.pk}/comments", {"text": "The north one."})
    assert created.status_code == 201
    items = admin.get(f"memories/{memory.pk}/comments").json()["items"]
    assert [(item["author"], item["text"], item["line"]) for item in items] == [
        ("ada@example.com", "Which reef?", None),
        ("alice@example.com (key Key 1)", "The north one.", None),
    ]
    assert items[1] == created.json()
    assert admin.post(f"memories/{memory.pk}/comments", {"text": " "}).status_code == 422
    assert admin.call("DELETE", f"memories/{memory.pk}/comments/{items[0]['id']}").status_code == 403
    assert admin.call("DELETE", f"memories/{memory.pk}/comments/{items[1]['id']}").status_code == 204
    assert admin.call("DELETE", f"memories/{memory.pk}/comments/{items[1]['id']}").status_code == 404
    assert [comment.text for comment in Comment.objects.in_workspace(workspace)] == ["Which reef?"]


def test_the_api_lists_creates_and_deletes_comments_on_lines(workspace, version, memory, admin):
    path = f"agents/careful/channels/deck/versions/{version.number}/comments"
    line = find_line(version, "Be kind.")
    created = admin.post(path, {"line": line, "text": "Kind to whom?"})
    assert (created.status_code, created.json()["line"]) == (201, line)
    assert admin.get(path).json() == {"items": [created.json()], "next_cursor": None}
    problem = admin.post(path, {"line": 10_000, "text": "Where?"})
    assert (problem.status_code, problem.json()["errors"][0]["pointer"]) == (422, "/line")
    assert admin.get(path.replace("/1/", "/2/")).status_code == 404
    # The comment is on another subject.
    assert admin.call("DELETE", f"memories/{memory.pk}/comments/{created.json()['id']}").status_code == 404
    assert admin.call("DELETE", f"{path}/{created.json()['id']}").status_code == 204
    assert not Comment.objects.in_workspace(workspace).exists()


def test_a_retry_with_the_same_key_adds_one_comment(workspace, memory, admin):
    headers = {"Idempotency-Key": "once"}
    for _ in range(2):
        assert admin.post(f"memories/{memory.pk}/comments", {"text": "Why?"}, **headers).status_code == 201
    assert Comment.objects.in_workspace(workspace).count() == 1
