"""Create shared records (identities, souls, user profiles) with a unique slug."""

from typing import TypeVar

from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.errors import InvalidInput
from personas.models import Named, Workspace
from personas.records.services import FieldValues, create_record
from personas.workspaces.models import RESERVED_SLUGS

# Another transaction may take the slug between the query and the insert; then the next one is tried.
MAX_SLUG_ATTEMPTS = 5
N = TypeVar("N", bound=Named)


@transaction.atomic
def create_named_record(
    model: type[N], workspace: Workspace, values: FieldValues, *, by: Actor, message: str = ""
) -> N:
    """Create a shared record. Without a slug in `values`, derive a free one from the label."""
    for _try in range(MAX_SLUG_ATTEMPTS):
        slug = values.get("slug") or find_free_slug(model, workspace, values.get("label", ""))
        try:
            return create_record(model, workspace, values | {"slug": slug}, by=by, message=message)
        except InvalidInput:
            is_taken = model.objects.in_workspace(workspace).filter(slug=slug).exists()
            if values.get("slug") or not is_taken:
                raise
    raise InvalidInput.on("label", _("Others take names like this one right now. Try again."))


def find_free_slug(model: type[Named], workspace: Workspace, label: str) -> str:
    """Find a slug that no record of the workspace uses, archived records included."""
    stem = slugify(label)[:56].strip("-") or model.kind.replace("_", "-")
    rows = model.objects.in_workspace(workspace).filter(slug__startswith=stem)
    taken = set(rows.values_list("slug", flat=True))
    taken |= RESERVED_SLUGS
    candidates = (stem if count == 1 else f"{stem}-{count}" for count in range(1, len(taken) + 2))
    return next(slug for slug in candidates if slug not in taken)
