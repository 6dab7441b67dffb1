"""JSON schemas of a kind of record, derived from its model and completed by its resource class."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import ForeignKey

from personas.api.schema import (
    Schema,
    array_schema,
    boolean_schema,
    datetime_schema,
    integer_schema,
    line_schema,
    model_field_schema,
    nullable_schema,
    object_schema,
    slug_schema,
)
from personas.models import Record
from personas.roles import Permission

MESSAGE_SCHEMA = line_schema(200, description="Why; it stands in the history.")


class RecordSchema:
    """Request and response schemas of one kind of record."""

    model: ClassVar[type[Record]]
    name: ClassVar[str]  # path segment in URLs
    singular: ClassVar[str]
    # Field that identifies a row in URLs, and its path converter.
    lookup_field: ClassVar[str] = "slug"
    lookup_converter: ClassVar[str] = "slug"
    search_fields: ClassVar[tuple[str, ...]] = ("label", "slug")
    # Fields that can be set only when a row is created.
    create_only_fields: ClassVar[tuple[str, ...]] = ()
    # Fields that get a value when the body has none.
    optional_fields: ClassVar[tuple[str, ...]] = ()
    # Fields that only services set.
    derived_fields: ClassVar[tuple[str, ...]] = ()
    # Foreign keys, with the linked model and the field that identifies its rows; `link_lists` for lists.
    links: ClassVar[Mapping[str, tuple[type[Record], str]]] = {}
    link_lists: ClassVar[Mapping[str, tuple[type[Record], str]]] = {}
    # Schemas that cannot be derived from the model.
    schema_overrides: ClassVar[Mapping[str, Schema]] = {}
    # Fields that only responses have.
    read_only_fields: ClassVar[Mapping[str, Schema]] = {}
    # Query path to the agent's slug, for keys that are limited to some agents; if empty, such keys get 403.
    agent_path: ClassVar[str] = ""
    write_permission: ClassVar[Permission] = Permission.EDIT
    bots_may_add: ClassVar[bool] = False
    bots_may_remove: ClassVar[bool] = False
    filters: ClassVar[Mapping[str, Schema]] = {}

    def writable_fields(self) -> dict[str, Schema]:
        """Return the schemas of the fields that a body may contain."""
        fields: dict[str, Schema] = {}
        for name in (*self.create_only_fields, *self.model.content):
            if name not in self.derived_fields and name not in fields:
                fields[name] = self.schema_overrides.get(name) or self.column_schema(name)
        return (
            fields
            | {name: self.link_list_schema(name) for name in self.link_lists}
            | dict(self.extra_fields())
        )

    def extra_fields(self) -> Mapping[str, Schema]:
        return {
            name: schema for name, schema in self.schema_overrides.items() if name not in self.model.content
        }

    def column_schema(self, name: str) -> Schema:
        field = self.model._meta.get_field(name)
        if isinstance(field, ForeignKey):
            return (
                nullable_schema(self.link_schema(*self.links[name]))
                if field.null
                else self.link_schema(*self.links[name])
            )
        return model_field_schema(field)  # type: ignore[arg-type]  # a column, for it is in `content`

    def link_list_schema(self, name: str) -> Schema:
        return array_schema(self.link_schema(*self.link_lists[name]), uniqueItems=True)

    @staticmethod
    def link_schema(model: type[Record], attribute: str) -> Schema:
        if attribute == "pk":
            return integer_schema(1, description=f"The id of a {model.kind}.")
        if attribute == "slug":
            return slug_schema(description=f"The slug of a {model.kind.replace('_', ' ')}.")
        return line_schema(64, least=1, description=f"The name of a {model.kind}.")

    def required_fields(self) -> list[str]:
        """Return the fields that a new row needs."""
        names = []
        for name in self.writable_fields():
            field = next((column for column in self.model._meta.concrete_fields if column.name == name), None)
            is_needed = field is not None and not field.blank and not field.has_default()
            if is_needed and name not in self.optional_fields:
                names.append(name)
        return names

    def body_schema(self, *, is_new: bool, is_complete: bool) -> Schema:
        fields = self.writable_fields()
        if not is_new:
            fields = {name: schema for name, schema in fields.items() if name not in self.create_only_fields}
        required = [name for name in self.required_fields() if name in fields] if is_complete else []
        return object_schema(fields | {"message": MESSAGE_SCHEMA}, required)

    def response_schema(self) -> Schema:
        writable = {name: relax_schema(schema) for name, schema in self.writable_fields().items()}
        fields = {
            "id": integer_schema(1),
            **({self.lookup_field: {"type": "string"}} if self.lookup_field == "slug" else {}),
            **({self.lookup_field: integer_schema(1)} if self.lookup_field == "number" else {}),
            **writable,
            **self.read_only_fields,
            "revision": integer_schema(1),
            "is_archived": boolean_schema(),
            "created_at": datetime_schema(),
            "updated_at": datetime_schema(),
            "etag": {"type": "string"},
        }
        return object_schema(fields, required=())


def relax_schema(schema: Schema) -> Schema:
    """Remove the limits of a request schema for use in responses: stored values may predate a limit."""
    relaxed = {
        name: value for name, value in schema.items() if name in {"type", "items", "anyOf", "description"}
    }
    if "items" in relaxed:
        relaxed["items"] = relax_schema(relaxed["items"])
    if "anyOf" in relaxed:
        relaxed["anyOf"] = [relax_schema(option) for option in relaxed["anyOf"]]
    return relaxed


def get_default_value(schema: Schema) -> Any:
    """Return the value of a field that PUT leaves out: its default, else the empty value of its type."""
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", [])
    if "anyOf" in schema or (isinstance(kind, list) and "null" in kind):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "", "array": [], "boolean": False, "object": {}, "integer": 0}[kind]
