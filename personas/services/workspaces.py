"""Workspaces and what they start with."""

from django.db import transaction

from personas.actors import Actor
from personas.formatting import BUILT_IN_FORMATTING
from personas.models import BUILT_IN, Channel, Membership, User, Workspace
from personas.roles import Role
from personas.services.history import note_event
from personas.services.records import create_record, readable_errors


@transaction.atomic
def create_workspace(name: str, slug: str, *, owner: User) -> Workspace:
    """Open a workspace with its first owner and the built-in channels."""
    workspace, by = Workspace(name=name, slug=slug), Actor.person(owner)
    with readable_errors():
        workspace.full_clean()
        workspace.save()
    Membership(workspace=workspace, user=owner, role=Role.OWNER).save()
    note_event(
        workspace,
        "created",
        "workspace",
        workspace.pk,
        workspace.name,
        by=by,
        after={"name": name, "slug": slug},
    )
    for channel, title in BUILT_IN.items():
        values = {"slug": channel, "name": title, "formatting": BUILT_IN_FORMATTING.get(channel, "")}
        create_record(Channel, workspace, values, by=by, message="Built in")
    return workspace


@transaction.atomic
def rename_workspace(workspace: Workspace, name: str, *, by: Actor) -> Workspace:
    """Change what people read; the address stays."""
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    before, workspace.name = {"name": workspace.name}, name
    with readable_errors():
        workspace.full_clean()
        workspace.save(update_fields=["name"])
    note_event(
        workspace,
        "renamed",
        "workspace",
        workspace.pk,
        name,
        by=by,
        before=before,
        after={"name": workspace.name},
    )
    return workspace
