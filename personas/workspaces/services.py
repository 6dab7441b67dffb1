"""Create workspaces and change their settings."""

from collections.abc import Mapping
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from django.db import transaction
from django.utils.crypto import get_random_string
from django.utils.translation import gettext as _

from core.db.workspace_scope import all_workspaces
from personas.actors import Actor
from personas.audit.services import build_audit_event, write_audit_event
from personas.channels.models import BUILT_IN_FORMATTING
from personas.errors import DomainError, InvalidInput
from personas.events.services import record_event
from personas.limits.persons import check_workspace_limit, count_workspace_for
from personas.models import BUILT_IN_CHANNELS, AuditEvent, Channel, Membership, Revision, User, Workspace
from personas.records.review_policy import check_review_lift
from personas.records.revisions import build_revision
from personas.records.services import convert_save_errors
from personas.roles import Role
from personas.tenancy.lost_nodes import lock_workspace
from personas.tenancy.middleware import list_memberships
from personas.workspaces.models import MAX_FORMER_SLUGS, RESERVED_SLUGS

# Length of the random suffix that is added to a slug if it is in use.
SUFFIX_LENGTH = 4
# Authenticators that count as a second factor. Recovery codes alone do not.
FACTOR_TYPES = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)


# Runs without a workspace scope: the new workspace has no id yet, and its slug must be unique among all.
@all_workspaces()
@transaction.atomic
def create_workspace(name: str, slug: str, *, owner: User) -> Workspace:
    """Create a workspace with its first owner and the built-in channels. It counts for the owner.

    If the slug is in use, the workspace gets another one that starts with it. Raise WorkspaceLimitReached if
    too many workspaces count for the owner.
    """
    check_workspace_slug(slug, owner)
    check_workspace_limit(owner)
    slug = find_free_workspace_slug(slug)
    workspace, by = Workspace(name=name, slug=slug, counted_for=owner), Actor.person(owner)
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


@transaction.atomic
def take_over_workspace(workspace: Workspace, *, by: Actor) -> Workspace:
    """Let the workspace count for the owner who does this, from now on.

    Nobody else can decide it: the user's other workspaces have less then. Raise WorkspaceLimitReached if too
    many workspaces count for the user.
    """
    workspace = lock_workspace(workspace.pk)
    owners = Membership.objects.in_workspace(workspace).filter(role=Role.OWNER)
    if by.user is None or not owners.filter(user=by.user).exists():
        raise DomainError(_("Only an owner can take over the workspace."))
    if workspace.counted_for_id == by.user.pk:
        return workspace
    before = count_workspace_for(workspace, by.user)
    write_audit_event(
        workspace,
        "took over",
        "workspace",
        workspace.pk,
        workspace.name,
        by=by,
        before={"counted_for": before.email if before else ""},
        after={"counted_for": by.user.email},
    )
    return workspace


def check_workspace_slug(slug: str, owner: User | None) -> None:
    """Raise InvalidInput if the slug is reserved, or belongs to a workspace that the owner knows."""
    if slug in RESERVED_SLUGS:
        raise InvalidInput.on("slug", _("“%(slug)s” is reserved. Choose another slug.") % {"slug": slug})
    memberships = list_memberships(owner) if owner else []
    if slug in {membership.workspace.slug for membership in memberships}:
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
def edit_workspace(workspace: Workspace, values: Mapping[str, Any], *, by: Actor) -> Workspace:
    """Change the name or other settings of a workspace, and write an audit event if a value changed.

    If new agents would no longer be reviewed, this is an override: `values` must contain the `reason`.
    """
    workspace = lock_workspace(workspace.pk)
    policy = workspace.default_release_policy
    reason = check_review_lift(workspace, "default_release_policy", policy, values, by=by)
    values = {name: value for name, value in values.items() if name != "reason"}
    before = {name: getattr(workspace, name) for name in values}
    after = {name: value for name, value in values.items() if value != before[name]}
    if not after:
        return workspace
    if after.get("requires_second_factor"):
        check_own_second_factor(by)
    for name, value in after.items():
        setattr(workspace, name, value)
    with convert_save_errors():
        workspace.full_clean()
        workspace.save(update_fields=list(after))
    write_audit_event(
        workspace,
        "renamed" if list(after) == ["name"] else "changed settings",
        "workspace",
        workspace.pk,
        workspace.name,
        by=by,
        before={name: before[name] for name in after},
        after=after | ({"reason": reason} if reason else {}),
    )
    if reason:
        data = {"default_release_policy": workspace.default_release_policy}
        record_event(workspace, "workspace.review_lifted", data, by=by)
    return workspace


# Runs without a workspace scope: the slug must be unique among all workspaces.
@all_workspaces()
@transaction.atomic
def change_workspace_slug(workspace: Workspace, slug: str, *, by: Actor) -> Workspace:
    """Change the slug of a workspace, which is part of the URLs of its pages.

    If the slug is in use, the workspace gets another one that starts with it. URLs with the old slug
    are redirected, until another workspace of the member has it. API keys are not affected.
    """
    workspace = lock_workspace(workspace.pk)
    if slug == workspace.slug:
        return workspace
    check_workspace_slug(slug, by.user)
    before, workspace.slug = workspace.slug, find_free_workspace_slug(slug)
    former = [before, *(one for one in workspace.former_slugs if one not in {before, workspace.slug})]
    workspace.former_slugs = former[:MAX_FORMER_SLUGS]
    with convert_save_errors():
        workspace.full_clean()
        workspace.save(update_fields=["slug", "former_slugs"])
    write_audit_event(
        workspace,
        "changed settings",
        "workspace",
        workspace.pk,
        workspace.name,
        by=by,
        before={"slug": before},
        after={"slug": workspace.slug},
    )
    return workspace


def check_own_second_factor(by: Actor) -> None:
    """Raise InvalidInput if the user has no second factor, and would be the first one to be redirected."""
    if by.user is None or not is_mfa_enabled(by.user):
        raise InvalidInput.on(
            "requires_second_factor",
            _(
                "Set up a second factor for your own account first. Otherwise, you would "
                "lose access to this workspace."
            ),
        )


def count_second_factors(workspace: Workspace) -> tuple[int, int]:
    """Return how many members have a second factor, and how many members there are."""
    user_ids = list(Membership.objects.in_workspace(workspace).values_list("user", flat=True))
    factors = Authenticator.objects.filter(user__in=user_ids, type__in=FACTOR_TYPES)
    return factors.values("user").distinct().count(), len(user_ids)
