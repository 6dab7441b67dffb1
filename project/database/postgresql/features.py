"""Features of the PostgreSQL backend."""

from typing import Any

from django.db.backends.postgresql import features

# Any, because the type stubs of Django do not declare all attributes.
DjangoFeatures: Any = features.DatabaseFeatures


class DatabaseFeatures(DjangoFeatures):  # type: ignore[misc]  # see above
    # Grouping by `id` alone is enough for PostgreSQL only if `id` is the whole primary key. After `manage.py
    # distribute` the key is (workspace_id, id), so all columns are listed.
    allows_group_by_selected_pks = False
