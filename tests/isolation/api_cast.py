"""API callers of the isolation matrix.

Valid, limited, expired and revoked keys, and keys of the other workspace.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from django.test import Client
from django.utils import timezone

from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import get_key_verbs
from personas.api_keys.services import create_key, revoke_key
from personas.members.services import remove_member
from personas.models import ApiKey, User
from personas.roles import Role
from prompts.models import LedgerEntry, PromptLabel, Release
from tests.factories import join, signed_in
from tests.isolation.cast import (
    ELSEWHERE,
    HARBOUR,
    VARIANTS,
    Requester,
    Stage,
    make_person,
    owner_of,
    rolled_back,
)
from tests.isolation.matrix import Digests, digests

# Callers that cannot be authenticated: every request gets 401.
UNKNOWN = (
    "no key",
    "malformed key",
    "cookie only",
    "expired bot",
    "expired owner",
    "revoked bot",
    "revoked owner",
    "removed member",
    "lost member",
)
KNOWN = (
    "bot",
    "narrow bot",
    "reading bot",
    "fetching bot",
    "owner",
    "admin",
    "editor",
    "reviewer",
    "viewer",
    "narrow owner",
    "owner on channels",
    "owner of labels",
    "bot on channels",
    "bot of labels",
    "reading owner",
    "overriding owner",
    "bot of elsewhere",
    "owner of elsewhere",
)
CALLERS = (*UNKNOWN, *KNOWN)


@dataclass
class Caller(Requester):
    """An API client with a key; an empty `home` means that the key is not valid in any workspace."""

    secret: str = ""
    kind: str = ""
    verbs: frozenset[str] = frozenset()
    is_narrow: bool = False
    # The dimensions other than agents in which the key is limited. Its scopes contain all seeded rows, so
    # that only the operations differ; tests/isolation/scope_matrix.py asks for rows outside of them.
    limits: frozenset[str] = frozenset()

    @property
    def is_bot(self) -> bool:
        return self.kind == BOT


@dataclass
class KeyFactory:
    """Creates the callers and their keys."""

    stage: Stage
    callers: dict[str, Caller]

    def add(self, name: str, home: str, user: User, role: str, kind: str = ADMIN, **scopes: Any) -> ApiKey:
        """Create a key whose name is a canary, so that a leak of the name is detected."""
        workspace, label = self.stage.workspaces[home], self.stage.canaries.word(home, "ApiKey.name")
        key, secret = create_key(workspace, label, scopes, by=Actor.person(user), kind=kind)
        self.callers[name] = Caller(
            name,
            Client(raise_request_exception=False),
            user if kind == ADMIN else None,
            home,
            role if kind == ADMIN else "",
            secret,
            kind,
            get_key_verbs(scopes, kind),
            "agents" in scopes,
            frozenset(scopes) & {"channels", "labels"},
        )
        return key

    def invalidate(self, name: str) -> None:
        """Mark the caller as unauthenticated: its key no longer grants anything."""
        self.callers[name].home = self.callers[name].role = ""

    # --- keys --------------------------------------------------------------------------------------------

    def add_harbour_keys(self) -> None:
        owner, one_agent = owner_of(self.stage, HARBOUR), [self.stage.key(HARBOUR, "agents")]
        self.add("bot", HARBOUR, owner, "", BOT)
        self.add("narrow bot", HARBOUR, owner, "", BOT, agents=one_agent)
        self.add("reading bot", HARBOUR, owner, "", BOT, verbs=["read"])
        self.add("fetching bot", HARBOUR, owner, "", BOT, verbs=["fetch"])
        self.add("owner", HARBOUR, owner, Role.OWNER)
        for role in (Role.ADMIN, Role.EDITOR, Role.REVIEWER, Role.VIEWER):
            user = self.stage.requesters[role.value].user
            assert user is not None
            self.add(role.value, HARBOUR, user, role)
        self.add("narrow owner", HARBOUR, owner, Role.OWNER, agents=one_agent)
        self.add("reading owner", HARBOUR, owner, Role.OWNER, verbs=["read"])
        self.add("overriding owner", HARBOUR, owner, Role.OWNER, verbs=["override"])
        channels = [self.stage.key(HARBOUR, "channels", variant) for variant in VARIANTS]
        workspace, names = self.stage.workspaces[HARBOUR], {"latest", "production", "fresh"}
        names |= set(PromptLabel.objects.in_workspace(workspace).values_list("name", flat=True))
        names |= set(Release.objects.in_workspace(workspace).values_list("label", flat=True))
        names |= set(LedgerEntry.objects.in_workspace(workspace).values_list("label", flat=True))
        for dimension, values in (("channels", channels), ("labels", sorted(names))):
            where = "on channels" if dimension == "channels" else "of labels"
            limit: dict[str, Any] = {dimension: values}
            self.add(f"bot {where}", HARBOUR, owner, "", BOT, **limit)
            self.add(f"owner {where}", HARBOUR, owner, Role.OWNER, **limit)

    def add_elsewhere_keys(self) -> None:
        owner = owner_of(self.stage, ELSEWHERE)
        self.add("bot of elsewhere", ELSEWHERE, owner, "", BOT)
        self.add("owner of elsewhere", ELSEWHERE, owner, Role.OWNER)

    def add_invalid_keys(self) -> None:
        owner = owner_of(self.stage, HARBOUR)
        by, now = Actor.person(owner), timezone.now()
        for kind, label in ((BOT, "bot"), (ADMIN, "owner")):
            expired = self.add(f"expired {label}", HARBOUR, owner, Role.OWNER, kind)
            ApiKey.unscoped.filter(pk=expired.pk).update(expires_at=now - timedelta(seconds=1))
            revoke_key(self.add(f"revoked {label}", HARBOUR, owner, Role.OWNER, kind), by=by)
        for name in ("removed member", "lost member"):
            user = make_person(self.stage, HARBOUR)
            member = join(self.stage.workspaces[HARBOUR], user, Role.ADMIN)
            self.add(name, HARBOUR, user, Role.ADMIN)
            if name == "removed member":
                remove_member(member, by=by)
            else:
                # The key was not revoked: the missing membership alone must make it invalid.
                member.delete()
        for name in UNKNOWN[3:]:
            self.invalidate(name)

    def add_without_key(self) -> None:
        """Add callers without a valid key.

        The session cookie of an owner must not authenticate an API request.
        """
        owner = owner_of(self.stage, HARBOUR)
        browser = signed_in(owner)
        browser.raise_request_exception = False
        browser.get("/profile/")
        plain = Client(raise_request_exception=False)
        self.callers["no key"] = Caller("no key", plain)
        self.callers["malformed key"] = Caller("malformed key", plain, secret="drm_admin_" + "x" * 36)
        self.callers["cookie only"] = Caller("cookie only", browser, owner)


def set_callers(stage: Stage) -> dict[str, Caller]:
    keys = KeyFactory(stage, {})
    keys.add_without_key()
    keys.add_harbour_keys()
    keys.add_elsewhere_keys()
    keys.add_invalid_keys()
    return {name: keys.callers[name] for name in CALLERS}


@contextmanager
def rolled_back_as_test() -> Iterator[None]:
    """Roll back at the end, and mark the transaction as a test's own, so that the product ignores it."""
    around = transaction.atomic()
    around._from_testcase = True  # type: ignore[attr-defined]
    with around:
        yield
        transaction.set_rollback(True)


@pytest.fixture(scope="module")
def known_callers(seeded: Stage, django_db_blocker: Any) -> Iterator[dict[str, Caller]]:
    with django_db_blocker.unblock(), rolled_back():
        yield set_callers(seeded)


@pytest.fixture(scope="module")
def before(seeded: Stage, known_callers: dict[str, Caller], django_db_blocker: Any) -> Digests:
    """Digests of the rows of both workspaces before the first request."""
    with django_db_blocker.unblock():
        return digests(seeded)


@pytest.fixture
def callers(known_callers: dict[str, Caller], stage: Stage) -> dict[str, Caller]:
    """All callers; the database is rolled back after the test."""
    return known_callers
