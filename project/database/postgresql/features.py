"""Features of the PostgreSQL backend."""

from typing import Any

from django.db.backends.postgresql import features

# Any, because the type stubs of Django do not declare all attributes.
DjangoFeatures: Any = features.DatabaseFeatures


class DatabaseFeatures(DjangoFeatures):  # type: ignore[misc]  # see above
    # PostgreSQL lets GROUP BY name the primary key alone only if that is the `id` column. In a database whose
    # tables are distributed by workspace, it is the workspace and the id. All columns are listed therefore.
    allows_group_by_selected_pks = False
