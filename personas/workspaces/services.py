"""Create and rename workspaces."""

from django.db import transaction
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _

from core.db.workspace_scope import all_workspaces
from personas.actors import Actor
from personas.audit.services import build_audit_event, write_audit_event
from personas.channels.models import BUILT_IN_FORMATTING
from personas.errors import InvalidInput
from personas.models import BUILT_IN_CHANNELS, AuditEvent, Channel, Membership, Revision, User, Workspace
from personas.records.revisions import build_revision
from personas.records.services import convert_save_errors
from personas.roles import Role
from personas.tenancy.middleware import list_memberships
from personas.workspaces.models import RESERVED_SLUGS

# Length of the random suffix of a slug that is in use.
SUFFIX_LENGTH = 4


# Runs without a workspace scope: the new workspace has no id yet, and its slug must be unique among all.
@all_workspaces()
@transaction.atomic
def create_workspace(name: str, slug: str, *, owner: User) -> Workspace:
    """Create a workspace with its first owner and the built-in channels.

    If the slug is in use, the workspace gets another one that starts with it.
    """
    check_workspace_slug(slug, owner)
    slug = find_free_workspace_slug(slug)
    workspace, by = Workspace(name=name, slug=slug), Actor.person(owner)
    with convert_save_errors():
        workspace.full_clean()
        workspace.save()
    Membership(workspace=workspace, user=owner, role=Role.OWNER).save()
    write_audit_event(
        workspace,
        "created",
        "workspace",
        workspace.pk,
        workspace.name,
        by=by,
        after={"name": name, "slug": slug},
    )
    create_built_in_channels(workspace, by=by)
    return workspace


def check_workspace_slug(slug: str, owner: User) -> None:
    """Raise InvalidInput if the slug is reserved, or belongs to a workspace that the owner knows."""
    if slug in RESERVED_SLUGS:
        raise InvalidInput.on("slug", _("“%(slug)s” is reserved. Choose another slug.") % {"slug": slug})
    if slug in {membership.workspace.slug for membership in list_memberships(owner)}:
        message = _("You already have a workspace with the slug “%(slug)s”. Choose another slug.")
        raise InvalidInput.on("slug", message % {"slug": slug})


def find_free_workspace_slug(slug: str) -> str:
    """Return the slug, or the slug with a random suffix if a workspace has it.

    An error message would tell everyone which workspaces exist.
    """
    if not Workspace.objects.filter(slug=slug).exists():
        return slug
    suffix = get_random_string(SUFFIX_LENGTH, "abcdefghjkmnpqrstuvwxyz23456789")
    max_length = Workspace._meta.get_field("slug").max_length or 0
    return f"{slug[: max_length - SUFFIX_LENGTH - 1].rstrip('-')}-{suffix}"


def create_built_in_channels(workspace: Workspace, *, by: Actor) -> None:
    """Create the built-in channels of a workspace, with revisions and audit events, in three bulk inserts."""
    channels = [
        Channel(
            workspace=workspace,
            slug=slug,
            name=title,
            formatting=BUILT_IN_FORMATTING.get(slug, ""),
            revision=1,
        )
        for slug, title in BUILT_IN_CHANNELS.items()
    ]
    Channel.objects.in_workspace(workspace).bulk_create(channels)
    revisions = [build_revision(channel, by=by, message="Built in") for channel in channels]
    Revision.objects.in_workspace(workspace).bulk_create(revisions)
    events = [
        build_audit_event(
            workspace, "created", channel.kind, channel.pk, str(channel), by=by, after=channel.snapshot()
        )
        for channel in channels
    ]
    AuditEvent.objects.in_workspace(workspace).bulk_create(events)


@transaction.atomic
def rename_workspace(workspace: Workspace, name: str, *, by: Actor) -> Workspace:
    """Change the name of a workspace. Its slug, and therefore its URL, stays the same."""
    workspace = Workspace.objects.select_for_update().get(pk=workspace.pk)
    before, workspace.name = {"name": workspace.name}, name
    with convert_save_errors():
        workspace.full_clean()
        workspace.save(update_fields=["name"])
    write_audit_event(
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
