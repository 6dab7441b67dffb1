"""Plain data as short text."""

import json
from typing import TYPE_CHECKING, Any

from django.db import models

if TYPE_CHECKING:
    Text = models.TextField[Any, Any]
else:
    Text = models.TextField


class CompactJSON(Text):
    """JSON that no question looks into: as text it takes half the room of PostgreSQL's own kind."""

    # For the type checker: any plain value goes in and comes out.
    _pyi_private_set_type: Any
    _pyi_private_get_type: Any

    def get_prep_value(self, value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    def from_db_value(self, value: str, expression: Any, connection: Any) -> Any:
        """What is no JSON any more is given as it stands: its hash will tell."""
        try:
            return json.loads(value)
        except (ValueError, TypeError):
            return value

    def get_placeholder(self, value: Any, compiler: Any, connection: Any) -> str:
        """Many rows are then written as rows: in arrays every quotation mark is escaped, which is slow."""
        return "%s"

    def to_python(self, value: Any) -> Any:
        return json.loads(value) if isinstance(value, str) else value

    def value_to_string(self, obj: models.Model) -> str:
        return self.get_prep_value(self.value_from_object(obj))
