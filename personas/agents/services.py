"""Create shared records (identities, souls, user profiles) with a unique slug."""

import re
from typing import TypeVar

from django.db import transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.errors import InvalidInput
from personas.models import Agent, Named, Workspace
from personas.records.services import FieldValues, create_record
from personas.workspaces.models import RESERVED_SLUGS

# A concurrent transaction may use the same slug between our query for a free slug and our insert. Creation
# is then repeated with another slug.
MAX_SLUG_ATTEMPTS = 5
N = TypeVar("N", bound=Named)


@transaction.atomic
def create_named_record(
    model: type[N], workspace: Workspace, values: FieldValues, *, by: Actor, message: str = ""
) -> N:
    """Create a shared record. If `values` contains no slug, derive an unused slug from the name."""
    for _try in range(MAX_SLUG_ATTEMPTS):
        slug = values.get("slug") or find_free_slug(model, workspace, values.get("name", ""))
        try:
            return create_record(model, workspace, values | {"slug": slug}, by=by, message=message)
        except InvalidInput:
            is_taken = model.objects.in_workspace(workspace).filter(slug=slug).exists()
            if values.get("slug") or not is_taken:
                raise
    raise InvalidInput.on("name", _("That name was just taken. Try again."))


def find_free_slug(model: type[Named] | type[Agent], workspace: Workspace, name: str) -> str:
    """Derive a slug from the name that no record of this model in the workspace uses.

    The slugs of archived records count as used. A number is appended if necessary: `fox`, `fox-2`, `fox-3`.
    """
    # Django's slugify keeps underscores, and hyphens next to them. Our slugs have single hyphens only.
    stem = re.sub("[-_]+", "-", slugify(name))[:56].strip("-") or model.kind.replace("_", "-")
    rows = model.objects.in_workspace(workspace).filter(slug__startswith=stem)
    taken = set(rows.values_list("slug", flat=True))
    taken |= RESERVED_SLUGS
    candidates = (stem if count == 1 else f"{stem}-{count}" for count in range(1, len(taken) + 2))
    return next(slug for slug in candidates if slug not in taken)
