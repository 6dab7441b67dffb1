"""Factories for users, workspaces and records, built on the product's own services."""

import time
from itertools import count
from pathlib import Path
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from personas.actors import Actor
from personas.agents.services import create_named_record
from personas.memories.services import create_memory
from personas.models import (
    Agent,
    Channel,
    Identity,
    Membership,
    Memory,
    Responsibility,
    Soul,
    Task,
    Tool,
    User,
    UserProfile,
    Workspace,
)
from personas.records.services import create_record
from personas.roles import Role
from personas.ui.responses import REVIEWED_FIELD
from personas.work.services import add_responsibility, create_task
from personas.workspaces.services import create_workspace
from project.middleware.sessions import SEEN_AT_KEY, STARTED_AT_KEY
from skills.models import AllowedFolder, RefreshRun, Skill, Source
from skills.refresh.runs import claim_run, request_refresh
from skills.refresh.services import refresh_source

PASSWORD = "quiet-lantern-forty-two"
BY = Actor(label="test")
# All of the same length, so that names sort by number: “agent-10” would come before “agent-9”.
_numbers = count(10_001)


def make_user(name: str, *, email: str = "") -> User:
    """Create a user with a verified email address and no password."""
    user = User.objects.create_user(email or f"{name.lower()}@example.com", None, name=name)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def make_workspace(name: str, *, owner: User) -> Workspace:
    return create_workspace(name, name.lower().replace(" ", "-"), owner=owner)


def join(workspace: Workspace, user: User, role: str = Role.EDITOR) -> Membership:
    member = Membership(workspace=workspace, user=user, role=role)
    member.save()
    return member


def make_agent(workspace: Workspace, slug: str = "", **values: Any) -> Agent:
    slug = slug or f"agent-{next(_numbers)}"
    return create_record(Agent, workspace, {"slug": slug, "name": slug.title()} | values, by=BY)


def make_identity(workspace: Workspace, name: str = "Fox", **values: Any) -> Identity:
    return create_named_record(Identity, workspace, {"name": name} | values, by=BY)


def make_soul(workspace: Workspace, name: str = "Calm", **values: Any) -> Soul:
    return create_named_record(Soul, workspace, {"name": name, "text": "Be calm."} | values, by=BY)


def make_profile(workspace: Workspace, name: str = "Guest", **values: Any) -> UserProfile:
    return create_named_record(UserProfile, workspace, {"name": name} | values, by=BY)


def make_tool(workspace: Workspace, name: str = "", **values: Any) -> Tool:
    return create_record(Tool, workspace, {"name": name or f"tool_{next(_numbers)}"} | values, by=BY)


def make_channel(workspace: Workspace, slug: str = "", **values: Any) -> Channel:
    slug = slug or f"channel-{next(_numbers)}"
    return create_record(Channel, workspace, {"slug": slug, "name": slug.title()} | values, by=BY)


def make_skill(workspace: Workspace, name: str = "", **values: Any) -> Skill:
    defaults = {
        "name": name or f"skill-{next(_numbers)}",
        "description": "Does a thing.",
        "body": "Do the thing.",
    }
    return create_record(Skill, workspace, defaults | values, by=BY)


def make_memory(workspace: Workspace, text: str = "Likes tea.", **values: Any) -> Memory:
    return create_memory(workspace, {"text": text} | values, by=values.pop("by", BY))


def make_responsibility(agent: Agent, title: str = "", **values: Any) -> Responsibility:
    defaults = {"agent": agent, "title": title or f"Duty {next(_numbers)}", "text": "Do it well."}
    return add_responsibility(agent.workspace, defaults | values, by=BY)


def make_task(workspace: Workspace, title: str = "Sort the shed", **values: Any) -> Task:
    return create_task(workspace, {"title": title} | values, by=BY)


class ReviewingClient(Client):
    """A test client that confirms the review step of an action, as a user who presses its button."""

    def post(self, path: Any, data: Any = None, *args: Any, **extra: Any) -> Any:
        response = super().post(path, data, *args, **extra)
        if response.headers.get("Dramatis-Review") != "required" or not isinstance(data, dict | None):
            return response
        for value in (data or {}).values():
            if hasattr(value, "seek"):
                value.seek(0)
        token = response.headers["Dramatis-Review-Token"]
        return super().post(path, {**(data or {}), REVIEWED_FIELD: token}, *args, **extra)


def signed_in(user: User) -> Client:
    """Return a test client with a session of this user; without a password there is no reauthentication.

    The session has the state after a login and the next page, written once; `force_login` and the page
    would write it four times.
    """
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    entry = {"method": "password", "at": time.time(), "email": user.email}
    session["account_authentication_methods"] = [entry]
    session[STARTED_AT_KEY] = int(time.time())
    # In the future, so that no test that shares the session writes its last-used timestamp.
    session[SEEN_AT_KEY] = session[STARTED_AT_KEY] + 900
    session.create()
    client = ReviewingClient()
    client.cookies[settings.SESSION_COOKIE_NAME] = str(session.session_key)
    return client


def make_operator(name: str = "Otto") -> User:
    """Create a superuser with a second factor."""
    user = make_user(name)
    user.is_staff = user.is_superuser = True
    user.save()
    TOTP.activate(user, generate_totp_secret())
    return user


def signed_in_operator(user: User) -> Client:
    """Return a test client of a superuser who has just confirmed the second factor."""
    client = signed_in(user)
    session = client.session
    entry = {"method": "mfa", "at": time.time(), "type": "totp"}
    session["account_authentication_methods"] = [entry]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()
    return client


def make_source(workspace: Workspace, folder: Path, name: str = "House files", **values: Any) -> Source:
    """Create a source on a folder; the test must allow the root in DRAMATIS_SOURCE_ROOTS.

    Files are approved automatically unless `approval` says otherwise.
    """
    allowed_folder = AllowedFolder.objects.in_workspace(workspace).filter(path=str(folder)).first()
    if allowed_folder is None:
        allowed_folder = AllowedFolder(workspace=workspace, path=str(folder))
        allowed_folder.save()
    return create_named_record(
        Source,
        workspace,
        {"name": name, "allowed_folder": allowed_folder, "approval": "automatic"} | values,
        by=BY,
    )


def refreshed(source: Source) -> RefreshRun:
    """Run one complete refresh of the source, without a worker."""
    run = claim_run(source.workspace_id, request_refresh(source, cause="person", by=BY).pk)
    assert run is not None
    return refresh_source(run)
