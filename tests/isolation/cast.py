"""Test data of the isolation matrix.

Two workspaces with the same kinds of rows, each with its own canaries, and ten requesters.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.db import models, transaction
from django.test import Client
from django.utils import timezone

from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.limits.storage_quota import PERSON_BYTES
from personas.members.services import remove_member
from personas.memories.services import create_memory, revoke_memory
from personas.models import (
    Agent,
    AuditEvent,
    Channel,
    DailyUsage,
    Identity,
    Invitation,
    Membership,
    Memory,
    Record,
    Responsibility,
    SecurityEvent,
    Soul,
    Task,
    Tool,
    User,
    UserProfile,
    Workspace,
)
from personas.records.services import archive_record, create_record, edit_record
from personas.roles import Role
from personas.work.services import add_responsibility, create_task
from personas.workspaces.services import create_workspace
from skills.models import Skill, Source
from tests.factories import join, make_user, signed_in, signed_in_operator
from tests.isolation.canaries import Canaries
from tests.isolation.seeds import Seeder

HARBOUR, ELSEWHERE = "harbour", "elsewhere"
# The kinds of record by URL segment, with the field that identifies them in a URL.
# Order matters: linked kinds come first.
KINDS: dict[str, tuple[type[Record], str]] = {
    "identities": (Identity, "slug"),
    "souls": (Soul, "slug"),
    "user-profiles": (UserProfile, "slug"),
    "tools": (Tool, "name"),
    "channels": (Channel, "slug"),
    "agents": (Agent, "slug"),
    "sources": (Source, "slug"),
    "skills": (Skill, "name"),
    "memories": (Memory, "pk"),
    "responsibilities": (Responsibility, "pk"),
    "tasks": (Task, "number"),
}
VARIANTS = ("plain", "spare", "archived")


@dataclass
class Requester:
    """A user with a browser; an empty `home` means that they are a member of no workspace."""

    name: str
    client: Client
    user: User | None = None
    home: str = ""
    role: str = ""

    @property
    def away(self) -> str:
        """The workspace that they must not see."""
        return HARBOUR if self.home == ELSEWHERE else ELSEWHERE

    @property
    def own_text(self) -> str:
        return f"{self.user.email} {self.user.name}" if self.user else ""


@dataclass
class Stage:
    """The seeded data."""

    canaries: Canaries = field(default_factory=Canaries)
    workspaces: dict[str, Workspace] = field(default_factory=dict)
    rows: dict[tuple[str, str, str], models.Model] = field(default_factory=dict)
    requesters: dict[str, Requester] = field(default_factory=dict)
    # Digests of all rows by workspace and table; every test starts from this state.
    before: dict[str, dict[str, str]] = field(default_factory=dict)

    @cached_property
    def seeded_at(self) -> str:
        """A timestamp after seeding; the same in all URLs, so that responses can be compared."""
        return f"{timezone.now():%Y-%m-%dT%H:%M:%S.%fZ}"

    def row(self, home: str, kind: str, variant: str = "plain") -> Any:
        return self.rows[home, kind, variant]

    def key(self, home: str, kind: str, variant: str = "plain") -> str:
        """The URL value of a row."""
        attribute = KINDS[kind][1] if kind in KINDS else "pk"
        return str(getattr(self.row(home, kind, variant), attribute))


def set_stage() -> Stage:
    stage = Stage()
    for home in (HARBOUR, ELSEWHERE):
        seed_workspace(stage, home)
        seed_records(stage, home)
        seed_rest(stage, home)
        seeder(stage, home).files()
        seeder(stage, home).prompts()
    add_requesters(stage)
    return stage


def seeder(stage: Stage, home: str) -> Seeder:
    return Seeder(
        stage.canaries,
        home,
        stage.workspaces[home],
        owner_of(stage, home),
        lambda kind, variant: stage.row(home, kind, variant),
        lambda kind, variant, row: stage.rows.__setitem__((home, kind, variant), row),
    )


def make_person(stage: Stage, home: str) -> User:
    values = stage.canaries.values(home, User)
    return make_user(values["name"], email=values["email"])


def seed_workspace(stage: Stage, home: str) -> None:
    values = stage.canaries.values(home, Workspace)
    owner = make_person(stage, home)
    workspace = create_workspace(values["name"], values["slug"], owner=owner)
    workspace.former_slugs = [values["former_slugs"]]
    workspace.save(update_fields=["former_slugs"])
    if home == ELSEWHERE:
        # Task numbers are per workspace; a foreign number must not exist at home.
        workspace.last_task_number = 100
        workspace.save(update_fields=["last_task_number"])
    stage.workspaces[home] = workspace
    stage.rows[home, "members", "owner"] = Membership.unscoped.get(workspace=workspace)
    stage.rows[home, "members", "plain"] = join(workspace, make_person(stage, home), Role.VIEWER)
    stage.rows[home, "reviewers", "plain"] = join(workspace, make_person(stage, home), Role.REVIEWER)


def seed_records(stage: Stage, home: str) -> None:
    """Create three records of each kind: linked and edited, unlinked, and archived."""
    seeder(stage, home).allowed_folder()
    for kind in KINDS:
        for variant in VARIANTS:
            stage.rows[home, kind, variant] = create(stage, home, kind, variant)
    proposed = {"status": "proposed"}
    pushed = {"source_kind": "pushed", "allowed_folder": None, "folder": ""}
    stage.rows[home, "sources", "pushed"] = create(stage, home, "sources", "pushed", **pushed)
    stage.rows[home, "memories", "proposed"] = create(stage, home, "memories", "proposed", **proposed)


def create(stage: Stage, home: str, kind: str, variant: str, **more: Any) -> Record:
    model, workspace = KINDS[kind][0], stage.workspaces[home]
    by = Actor(stage.canaries.word(home, "Actor.label"), owner_of(stage, home))
    message = stage.canaries.word(home, "Revision.message")
    values = stage.canaries.values(home, model) | links(stage, home, kind, variant) | more
    record = make(model, workspace, values, by=by, message=message)
    if variant == "plain":
        again = stage.canaries.values(home, model)
        changed = {name: value for name, value in again.items() if name in model.content}
        record = edit_record(record, changed, expected=record.revision, by=by, message=message)
    if variant == "archived":
        record = revoke_memory(record, by=by) if isinstance(record, Memory) else archive_record(record, by=by)
    return record


def make(model: type[Record], workspace: Workspace, values: dict[str, Any], **more: Any) -> Record:
    if model is Task:
        return create_task(workspace, values, **more)
    if model is Memory:
        return create_memory(workspace, values, **more)
    if model is Responsibility:
        return add_responsibility(workspace, values, **more)
    if model in {Identity, Soul, UserProfile, Source}:
        return create_named_record(model, workspace, values, **more)
    return create_record(model, workspace, values, **more)


def links(stage: Stage, home: str, kind: str, variant: str) -> dict[str, Any]:
    """Link plain records to every kind they can reference.

    Responsibilities and sources always need a link.
    """
    if kind == "responsibilities":
        return {"agent": stage.row(home, "agents")}
    if kind == "sources":
        return {"allowed_folder": stage.row(home, "grants")}
    return plain_links(stage, home).get(kind, dict)() if variant == "plain" else {}


def plain_links(stage: Stage, home: str) -> dict[str, Callable[[], dict[str, Any]]]:
    return {
        "agents": lambda: {
            "identity": stage.row(home, "identities"),
            "soul": stage.row(home, "souls"),
            "user_profile": stage.row(home, "user-profiles"),
            "parent": create(stage, home, "agents", "parent"),
            "tools": [stage.row(home, "tools")],
            "channels": [stage.row(home, "channels")],
        },
        "skills": lambda: {"agents": [stage.row(home, "agents")]},
        "tasks": lambda: {
            "agent": stage.row(home, "agents"),
            "steps": [{"title": stage.canaries.word(home, "TaskStep.title"), "is_done": False}],
        },
        "memories": lambda: {"agent": stage.row(home, "agents")},
    }


def owner_of(stage: Stage, home: str) -> User:
    owner: User = stage.row(home, "members", "owner").user
    return owner


def seed_rest(stage: Stage, home: str) -> None:
    """Create rows that no form writes completely.

    An open invitation, and an audit event with a canary in every field.
    """
    workspace, owner = stage.workspaces[home], owner_of(stage, home)
    values = stage.canaries.values(home, Invitation)
    expires_at = timezone.now() + timedelta(days=1)
    invitation = Invitation(
        workspace=workspace, role=Role.VIEWER, invited_by=owner, expires_at=expires_at, **values
    )
    invitation.save()
    stage.rows[home, "invitations", "plain"] = invitation
    event = AuditEvent(
        workspace=workspace, object_id=1, actor=owner, **stage.canaries.values(home, AuditEvent)
    )
    event.save()
    stage.rows[home, "audit", "plain"] = event
    SecurityEvent.objects.create(user=owner, **stage.canaries.values(home, SecurityEvent))
    yesterday = timezone.now().date() - timedelta(days=1)
    DailyUsage.objects.create(kind=PERSON_BYTES, subject=str(owner.pk), day=yesterday, amount=5)


def add_requesters(stage: Stage) -> None:
    harbour = stage.workspaces[HARBOUR]
    add(stage, "owner", owner_of(stage, HARBOUR), HARBOUR, Role.OWNER)
    for role in (Role.ADMIN, Role.EDITOR, Role.REVIEWER, Role.VIEWER):
        user = make_person(stage, HARBOUR)
        join(harbour, user, role)
        add(stage, role.value, user, HARBOUR, role)
    removed = make_person(stage, HARBOUR)
    remove_member(join(harbour, removed, Role.ADMIN), by=Actor.person(owner_of(stage, HARBOUR)))
    add(stage, "removed member", removed)
    add(stage, "stranger with a workspace", owner_of(stage, ELSEWHERE), ELSEWHERE, Role.OWNER)
    add(stage, "stranger without one", make_person(stage, "nowhere"))
    operator = make_person(stage, "nowhere")
    operator.is_staff = operator.is_superuser = True
    operator.save()
    TOTP.activate(operator, generate_totp_secret())
    add(stage, "superuser", operator, client=signed_in_operator(operator))
    stage.requesters["anonymous"] = Requester("anonymous", Client(raise_request_exception=False))


def add(
    stage: Stage, name: str, user: User, home: str = "", role: str = "", *, client: Client | None = None
) -> None:
    client = client or signed_in(user)
    # A server error is a finding; it does not end the test.
    client.raise_request_exception = False
    # The first request sets the session's timestamps; later ones write nothing.
    client.get("/profile/")
    stage.requesters[name] = Requester(name, client, user, home, role)


@contextmanager
def rolled_back() -> Iterator[None]:
    """Roll back everything written inside."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


@contextmanager
def frozen_gc() -> Iterator[None]:
    """Exclude loaded objects from garbage collection, which takes a third of a short request."""
    gc.collect()
    gc.freeze()
    yield
    # Restore the state set at the start of the run.
    gc.unfreeze()
    gc.collect()
    gc.freeze()
