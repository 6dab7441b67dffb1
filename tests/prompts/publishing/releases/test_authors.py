"""Nobody approves an own change: a person counts with pages, admin keys, bot keys and pushed files."""

from collections.abc import Callable

import pytest
from django.test import Client

from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.api_keys.format import BOT, key_digest
from personas.api_keys.services import revoke_key, rotate_key
from personas.erasure.services import erase_record_text
from personas.members.services import remove_member
from personas.memories.services import approve_memory
from personas.models import ApiKey, Membership, Memory, Soul, User
from personas.records.services import archive_record, edit_record, restore_revision
from personas.roles import Role
from prompts.errors import OwnChange
from prompts.evidence.erasure.services import erase_record
from prompts.models import AgentPrompt, Release
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import roll_back
from prompts.publishing.releases import authors
from prompts.publishing.releases.services import approve_release, request_release, run_release
from skills.agent_context.services import choose_context
from skills.archives import bundle_files
from skills.files.services import approve_file
from skills.models import ContextFile, RefreshRun, Source
from skills.refresh.runs import claim_run, request_refresh
from skills.refresh.services import refresh_source
from skills.uploads.services import push_bundle
from tests.api_client import Api
from tests.factories import BY, join, make_agent, make_channel, make_memory, make_soul, make_user, signed_in
from tests.shared_cast import (  # noqa: F401  # fixtures
    SharedCast,
    shared_alice,
    shared_as_alice,
    shared_bob,
    shared_cast,
    shared_commits,
    shared_props,
    shared_workspace,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("commits")]
HAS_ELSEWHERE = False


class Desk:
    """A reviewed agent in production, and two admins: Nadia, who changes something, and Otis."""

    def __init__(self, shared: SharedCast) -> None:
        self.workspace, self.alice = shared.workspace, shared.alice
        self.nadia, self.otis = make_user("Nadia"), make_user("Otis")
        join(self.workspace, self.nadia, Role.ADMIN)
        join(self.workspace, self.otis, Role.ADMIN)
        self.soul: Soul = make_soul(self.workspace, text="Be brave, and keep the harbour safe.")
        channel = make_channel(self.workspace, "deck")
        self.agent = make_agent(
            self.workspace, "careful", soul=self.soul, channels=[channel], release_policy="reviewed"
        )
        self.release_all()

    @property
    def prompt(self) -> AgentPrompt:
        rows = AgentPrompt.objects.in_workspace(self.workspace).select_related("latest", "agent", "channel")
        return rows.get(agent=self.agent)

    def request(self) -> Release:
        by = Actor.person(self.alice)
        return request_release(self.workspace, [self.prompt], message="Go", by=by)

    def release_all(self) -> None:
        """Release the latest version, approved by a person who is nobody else here."""
        approver = User.objects.filter(email="pia@example.com").first() or make_user("Pia")
        release = approve_release(self.request(), by=Actor.person(approver))
        run_release(release, by=Actor.person(self.alice))

    def edit(self, by: User, text: str) -> None:
        self.soul.refresh_from_db()
        edit_record(self.soul, {"text": text}, expected=self.soul.revision, by=Actor.person(by))


def set_stage(shared: SharedCast) -> Desk:
    return Desk(shared)


@pytest.fixture
def desk(props: Desk) -> Desk:
    return props


@pytest.fixture
def check_approvals(desk: Desk, key_for: Callable[..., Api]) -> Callable[..., str]:
    """Return a function that requests a release: Nadia gets 403 on the page and by API, Otis can approve it.

    It returns why Nadia cannot.
    """

    def check() -> str:
        release = desk.request()
        answer = key_for(desk.workspace, desk.nadia).post(f"releases/{release.number}:approve")
        assert answer.status_code == 403, answer.content
        assert answer.json()["code"] == "not_allowed"
        reason: str = answer.json()["detail"]
        client = signed_in(desk.nadia)
        path = f"/w/{desk.workspace.slug}/releases/{release.number}/"
        page = client.get(path).content.decode()
        assert "because you changed Careful · Deck since the last release" in page
        assert ">Approve<" not in page
        refused = client.post(f"{path}approve/", {})
        assert refused.status_code == 403
        assert "because you changed Careful · Deck since the last release" in refused.content.decode()
        assert ">Approve<" in signed_in(desk.otis).get(path).content.decode()
        other = key_for(desk.workspace, desk.otis).post(f"releases/{release.number}:approve")
        assert other.status_code == 200, other.content
        return reason

    return check


def get_key(api: Api) -> ApiKey:
    return ApiKey.unscoped.get(digest=key_digest(api.secret))


def trusted_bot(key_for: Callable[..., Api], desk: Desk, user: User) -> Api:
    return key_for(desk.workspace, user, BOT, verbs=["fetch", "read", "write", "activate"])


def remember(api: Api, text: str = "Likes tea with lemon.") -> None:
    answer = api.post("memories", {"text": text, "agent": "careful"})
    assert answer.status_code == 201, answer.content


# --- bot keys ------------------------------------------------------------------------------------------


def test_the_creator_of_a_bot_key_cannot_approve_what_it_wrote(desk, key_for, check_approvals):
    bot = trusted_bot(key_for, desk, desk.nadia)
    remember(bot)
    reason = check_approvals()
    assert "Likes tea with lemon." in reason
    assert f"as bot:{get_key(bot).name}" in reason


def test_a_proposal_counts_for_the_creator_of_the_key_when_someone_else_activates_it(
    desk, key_for, check_approvals
):
    """Also if the released version was built after the proposal."""
    remember(key_for(desk.workspace, desk.nadia, BOT, verbs=["read", "write"]))
    memory = Memory.unscoped.get()
    make_memory(desk.workspace, "Another.", agent=desk.agent)
    desk.release_all()
    approve_memory(memory, by=Actor.person(desk.alice))
    assert "Likes tea with lemon." in check_approvals()


@pytest.mark.parametrize("end", ["revoked", "creator left"])
def test_a_key_that_ended_still_counts(end, desk, key_for, check_approvals):
    bot = trusted_bot(key_for, desk, desk.nadia)
    remember(bot)
    if end == "revoked":
        revoke_key(get_key(bot), by=Actor.person(desk.alice))
    else:
        member = Membership.objects.in_workspace(desk.workspace).get(user=desk.nadia)
        remove_member(member, by=Actor.person(desk.alice))
        join(desk.workspace, desk.nadia, Role.ADMIN)
    check_approvals()


@pytest.mark.parametrize("rotator", ["nadia", "alice"])
def test_a_rotated_key_counts_for_who_rotated_it_and_for_its_first_creator(
    rotator, desk, key_for, check_approvals
):
    """Nadia rotates Alice's key and holds the new secret; or Alice rotates Nadia's."""
    creator = desk.alice if rotator == "nadia" else desk.nadia
    old = get_key(trusted_bot(key_for, desk, creator))
    by = Actor.person(desk.nadia if rotator == "nadia" else desk.alice)
    _key, secret = rotate_key(old, ends_at=old.created_at, by=by, name="Rotated")
    remember(Api(secret, Client()))
    check_approvals()


def test_the_old_key_does_not_count_for_who_rotated_it_later(desk, key_for):
    bot = trusted_bot(key_for, desk, desk.alice)
    remember(bot)
    old = get_key(bot)
    rotate_key(old, ends_at=old.created_at, by=Actor.person(desk.nadia), name="Rotated")
    release = desk.request()
    assert authors.list_authored_items(release, list(release.items.all()), desk.nadia) == []


def test_an_admin_key_counts_for_a_change_without_a_revision(desk, key_for, check_approvals):
    memory = make_memory(desk.workspace, "Old, and soon forgotten.", agent=desk.agent)
    desk.release_all()
    answer = key_for(desk.workspace, desk.nadia).delete(f"memories/{memory.pk}", "*")
    assert answer.status_code == 204
    check_approvals()


# --- names and times -----------------------------------------------------------------------------------


def test_a_changed_address_does_not_hide_the_author(desk, check_approvals):
    memory = make_memory(desk.workspace, "Old, and soon forgotten.", agent=desk.agent)
    desk.release_all()
    archive_record(memory, by=Actor.person(desk.nadia))
    User.objects.filter(pk=desk.nadia.pk).update(email="new-nadia@example.com")
    desk.nadia.refresh_from_db()
    check_approvals()


def test_a_change_that_was_overwritten_counts(desk, check_approvals):
    desk.edit(desk.nadia, "Be kind to everybody on board.")
    desk.edit(desk.alice, "Be wise.")
    check_approvals()


def test_a_text_that_was_restored_counts_for_its_author(desk, check_approvals):
    """Nadia's text was released, replaced, and is now brought back by someone else."""
    desk.edit(desk.nadia, "Be kind to everybody on board.")
    desk.release_all()
    desk.edit(desk.alice, "Be wise.")
    desk.release_all()
    desk.soul.refresh_from_db()
    restore_revision(desk.soul, 2, expected=3, by=Actor.person(desk.alice))
    assert "revision 2" in check_approvals()


def test_an_agents_text_that_was_restored_counts_for_its_author(desk, check_approvals):
    for user, text in ((desk.nadia, "Answer in the language of the guest."), (desk.alice, "Be short.")):
        desk.agent.refresh_from_db()
        by = Actor.person(user)
        edit_record(desk.agent, {"instructions": text}, expected=desk.agent.revision, by=by)
        desk.release_all()
    desk.agent.refresh_from_db()
    number = desk.agent.revision
    restore_revision(desk.agent, number - 1, expected=number, by=Actor.person(desk.alice))
    check_approvals()


def test_a_record_that_is_used_only_now_counts_for_its_author(desk, check_approvals):
    """Nadia wrote the soul before the last release; Alice links it after."""
    other = make_soul(desk.workspace, "Other", text="Be quick.")
    edit_record(other, {"text": "Be very quick, always."}, expected=1, by=Actor.person(desk.nadia))
    desk.edit(desk.alice, "Be wise.")
    desk.release_all()
    desk.agent.refresh_from_db()
    edit_record(desk.agent, {"soul": other}, expected=desk.agent.revision, by=Actor.person(desk.alice))
    check_approvals()


def test_a_change_before_a_rollback_counts(desk):
    """The release was requested while production had a version of Nadia's, which was rolled back then."""
    desk.edit(desk.nadia, "Be kind to everybody on board.")
    desk.release_all()
    desk.edit(desk.alice, "Be wise.")
    release = desk.request()
    roll_back([desk.prompt], by=Actor.person(desk.alice), note="Too soft.")
    with pytest.raises(OwnChange, match="because you changed"):
        approve_release(release, by=Actor.person(desk.nadia))


def test_a_change_that_waited_during_an_erasure_counts(desk, check_approvals):
    """The erasure builds a version for production with a higher number than Nadia's."""
    memory = make_memory(desk.workspace, "Carla lives at the pier.", agent=desk.agent)
    desk.release_all()
    archived = make_memory(desk.workspace, "Old, and soon forgotten.", agent=desk.agent)
    desk.release_all()
    archive_record(archived, by=Actor.person(desk.nadia))
    erase_record(memory, reason="Asked for.", by=Actor.person(desk.alice))
    check_approvals()


def test_an_erasure_counts_for_who_erased(desk, check_approvals):
    memory = make_memory(desk.workspace, "Carla lives at the pier.", agent=desk.agent)
    erase_record_text(memory, reason="Asked for.", by=Actor.person(desk.nadia))
    check_approvals()


def test_an_archive_whose_build_failed_counts(desk, check_approvals, monkeypatch):
    memory = make_memory(desk.workspace, "Old, and soon forgotten.", agent=desk.agent)
    desk.release_all()
    with monkeypatch.context() as fault:
        fault.setattr("prompts.publishing.builds.services.try_compile_prompt", lambda *args: None)
        archive_record(memory, by=Actor.person(desk.nadia))
    rebuild_agents(desk.workspace, [desk.agent.pk])
    check_approvals()


def test_a_new_release_policy_is_no_change_of_the_text(desk):
    by = Actor.person(desk.nadia)
    for policy in ("automatic", "reviewed"):
        desk.agent.refresh_from_db()
        values = {"release_policy": policy, "reason": "Asked for."}
        edit_record(desk.agent, values, expected=desk.agent.revision, by=by)
    desk.edit(desk.alice, "Be wise.")
    assert approve_release(desk.request(), by=by).status == "approved"


# --- pushed files --------------------------------------------------------------------------------------


@pytest.fixture
def source(desk: Desk) -> Source:
    values = {"name": "Pushed", "source_kind": "pushed", "harnesses": ["plain"]}
    source = create_named_record(Source, desk.workspace, values, by=BY)
    agent = desk.agent
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    return source


def push(source: Source, user: User, text: str, path: str = "AGENTS.md") -> None:
    bundle = bundle_files([(path, text.encode())])
    push_bundle(source, bundle, replace=False, by=Actor.person(user))


def refresh(source: Source) -> None:
    run = RefreshRun.unscoped.filter(source=source, status="queued").first()
    run = run or request_refresh(source, cause="person", by=BY)
    claimed = claim_run(source.workspace_id, run.pk)
    assert claimed
    refresh_source(claimed)


def approve_pushed(source: Source, user: User, path: str = "AGENTS.md") -> None:
    file = ContextFile.unscoped.select_related("latest", "source").get(source=source, path=path)
    assert file.latest
    approve_file(file, digest=file.latest.digest, by=Actor.person(user))


def test_a_pushed_file_counts_although_someone_else_approved_it(desk, source, check_approvals):
    """Also if it waited while another version was released."""
    push(source, desk.nadia, "Use metric units.")
    refresh(source)
    desk.edit(desk.alice, "Be wise.")
    desk.release_all()
    approve_pushed(source, desk.alice)
    assert "AGENTS.md, pushed" in check_approvals()


def test_a_push_of_the_same_text_does_not_hide_the_first_author(desk, source, check_approvals):
    push(source, desk.nadia, "Use metric units.")
    push(source, desk.alice, "Use metric units.")
    refresh(source)
    push(source, desk.alice, "Use metric units.")
    refresh(source)
    approve_pushed(source, desk.alice)
    check_approvals()


def test_a_push_into_a_queued_refresh_counts(desk, source, check_approvals):
    request_refresh(source, cause="person", by=Actor.person(desk.alice))
    push(source, desk.nadia, "Use metric units.")
    refresh(source)
    approve_pushed(source, desk.alice)
    check_approvals()


def test_a_pushed_text_that_comes_back_counts_for_its_author(desk, source, check_approvals):
    for user, text in ((desk.nadia, "Use metric units."), (desk.alice, "Use feet.")):
        push(source, user, text)
        refresh(source)
        approve_pushed(source, desk.alice)
        desk.release_all()
    push(source, desk.alice, "Use metric units.")
    refresh(source)
    approve_pushed(source, desk.alice)
    check_approvals()


def test_a_bot_key_that_pushes_counts_for_its_creator(desk, source, key_for, check_approvals):
    bot = key_for(desk.workspace, desk.nadia, BOT, verbs=["read", "write"])
    body = {"files": [{"path": "AGENTS.md", "text": "Use metric units."}]}
    assert bot.post(f"sources/{source.slug}/files:push", body).status_code in (200, 202)
    refresh(source)
    approve_pushed(source, desk.alice)
    assert f"as bot:{get_key(bot).name}" in check_approvals()


def test_who_approved_a_pushed_file_cannot_approve_its_release(desk, source, check_approvals):
    push(source, desk.alice, "Use metric units.")
    refresh(source)
    approve_pushed(source, desk.nadia)
    check_approvals()


def test_a_push_of_another_file_does_not_count(desk, source):
    push(source, desk.nadia, "Not for prompts.", path="notes/other.txt")
    push(source, desk.alice, "Use metric units.")
    refresh(source)
    approve_pushed(source, desk.alice)
    assert approve_release(desk.request(), by=Actor.person(desk.nadia)).status == "approved"


# --- planted faults ------------------------------------------------------------------------------------


@pytest.mark.promise("R21")
@pytest.mark.planted
def test_an_uncounted_push_is_found(desk, source, check_approvals, monkeypatch):
    monkeypatch.setattr(authors.AuthorSearch, "find_file", lambda search, one: "")
    with pytest.raises(AssertionError):
        test_a_pushed_file_counts_although_someone_else_approved_it(desk, source, check_approvals)


@pytest.mark.promise("R21")
@pytest.mark.planted
def test_an_uncounted_restored_text_is_found(desk, check_approvals, monkeypatch):
    monkeypatch.setattr(authors, "has_restored_text", lambda *data: False)
    with pytest.raises(AssertionError):
        test_a_text_that_was_restored_counts_for_its_author(desk, check_approvals)
