"""JSON schemas for a kind of record, derived from its Django model and attributes of its resource class."""

from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import ForeignKey

from personas.api.key_limits import Touches
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
    to_camel_case,
)
from personas.models import Record
from personas.roles import Permission

MESSAGE_SCHEMA = line_schema(200, description="Why; it stands in the history.")


class RecordSchema:
    """Request and response schemas for one kind of record."""

    model: ClassVar[type[Record]]
    name: ClassVar[str]  # path segment in URLs
    singular: ClassVar[str]  # with spaces, as in "user profile"
    # Model field that identifies a record in URLs, and the Django path converter for its value.
    lookup_field: ClassVar[str] = "slug"
    lookup_converter: ClassVar[str] = "slug"
    search_fields: ClassVar[tuple[str, ...]] = ("label", "slug")
    # Fields that can be set only when a record is created.
    create_only_fields: ClassVar[tuple[str, ...]] = ()
    # Fields that the model requires, but a request may omit when it creates a record: a service sets them.
    optional_fields: ClassVar[tuple[str, ...]] = ()
    # Fields that only services set; a request body must not contain them.
    derived_fields: ClassVar[tuple[str, ...]] = ()
    # Links to other records, by field name: the linked model, and the field that identifies a linked record
    # in JSON. `links` are foreign keys; `link_lists` are lists of linked records.
    links: ClassVar[Mapping[str, tuple[type[Record], str]]] = {}
    link_lists: ClassVar[Mapping[str, tuple[type[Record], str]]] = {}
    # Schemas of fields that cannot be derived from the model.
    schema_overrides: ClassVar[Mapping[str, Schema]] = {}
    # Additional fields of responses, which cannot be written.
    read_only_fields: ClassVar[Mapping[str, Schema]] = {}
    # Django lookup path from the record to the slug of its agent. It filters the records for keys that are
    # limited to some agents. If it is empty, such keys get 403.
    agent_path: ClassVar[str] = ""
    # What the operations touch, for the limits of keys: those that read, change and add records.
    read_touches: ClassVar[Touches] = Touches.WORKSPACE
    write_touches: ClassVar[Touches] = Touches.WORKSPACE
    add_touches: ClassVar[Touches] = Touches.WORKSPACE
    write_permission: ClassVar[Permission] = Permission.EDIT
    bots_may_add: ClassVar[bool] = False
    bots_may_remove: ClassVar[bool] = False
    filters: ClassVar[Mapping[str, Schema]] = {}

    def writable_fields(self) -> dict[str, Schema]:
        """Return the schemas of the fields that a request body may contain, by field name."""
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
            return integer_schema(1, description=f"The id of {with_article(model.kind)}.")
        if attribute == "slug":
            return slug_schema(description=f"The slug of {with_article(model.kind)}.")
        return line_schema(64, least=1, description=f"The name of {with_article(model.kind)}.")

    def required_fields(self) -> list[str]:
        """Return the names of the fields that are required to create a record."""
        names = []
        for name in self.writable_fields():
            field = next((column for column in self.model._meta.concrete_fields if column.name == name), None)
            is_needed = field is not None and not field.blank and not field.has_default()
            if is_needed and name not in self.optional_fields:
                names.append(name)
        return names

    def body_schema(self, *, is_new: bool, is_complete: bool) -> Schema:
        """Return the schema of a request body: of POST (`is_new`), PUT (`is_complete`) or PATCH.

        Only that of POST has defaults. Generated clients send a default in place of an absent field, and a
        PATCH of one field would then change others.
        """
        fields = self.writable_fields() | {"message": MESSAGE_SCHEMA}
        required = [name for name in self.required_fields() if is_new or name not in self.create_only_fields]
        if is_new:
            return object_schema(fields, required, title=f"{self.schema_title}Input")
        changeable = {
            name: remove_defaults(schema)
            for name, schema in fields.items()
            if name not in self.create_only_fields
        }
        patch = object_schema(changeable, (), title=f"{self.schema_title}Patch")
        if not is_complete:
            return patch
        return {"allOf": [patch], "required": required, "title": f"{self.schema_title}Replacement"}

    @property
    def schema_title(self) -> str:
        return to_camel_case(self.singular)

    def response_schema(self) -> Schema:
        writable = {name: self.response_field_schema(name) for name in self.writable_fields()}
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
        return object_schema(fields, title=self.schema_title)

    def response_field_schema(self, name: str) -> Schema:
        """Return the schema of a field in responses: the model's choices, or the request's without limits."""
        field = next((column for column in self.model._meta.concrete_fields if column.name == name), None)
        if field is not None and field.choices:
            return model_field_schema(field)
        return relax_schema(self.writable_fields()[name])


def with_article(noun: str) -> str:
    """Return a noun with "a" or "an". The only noun with "u", user profile, takes "a"."""
    return f"{'an' if noun[0] in 'aeio' else 'a'} {noun.replace('_', ' ')}"


def relax_schema(schema: Schema) -> Schema:
    """Return a request schema without its limits, for use in responses.

    Stored values may be older than a limit and exceed it. Objects have all their fields; one with the title
    `TaskStepInput` becomes a `TaskStep`.
    """
    kept = {"type", "properties", "additionalProperties", "items", "anyOf", "description"}
    relaxed = {name: value for name, value in schema.items() if name in kept}
    if schema.get("title", "").endswith("Input"):
        relaxed |= {"title": schema["title"].removesuffix("Input")}
    if "properties" in relaxed:
        relaxed["properties"] = {name: relax_schema(value) for name, value in relaxed["properties"].items()}
        relaxed["required"] = list(relaxed["properties"])
    if isinstance(relaxed.get("additionalProperties"), dict):
        relaxed["additionalProperties"] = relax_schema(relaxed["additionalProperties"])
    if "items" in relaxed:
        relaxed["items"] = relax_schema(relaxed["items"])
    if "anyOf" in relaxed:
        relaxed["anyOf"] = [relax_schema(option) for option in relaxed["anyOf"]]
    return relaxed


def remove_defaults(schema: Schema) -> Schema:
    """Return a schema without its default, and without those of the fields of its items."""
    reduced = {name: value for name, value in schema.items() if name != "default"}
    if "items" in reduced:
        reduced["items"] = remove_defaults(reduced["items"])
    if "properties" in reduced:
        reduced["properties"] = {
            name: remove_defaults(value) for name, value in reduced["properties"].items()
        }
    return reduced


def get_default_value(schema: Schema) -> Any:
    """Return the value that PUT gives to a field missing in the body.

    This is the schema's default; without one, null if allowed, else the first enum value or an empty value.
    """
    if "default" in schema:
        return schema["default"]
    kind = schema.get("type", [])
    if "anyOf" in schema or (isinstance(kind, list) and "null" in kind):
        return None
    if "enum" in schema:
        return schema["enum"][0]
    return {"string": "", "array": [], "boolean": False, "object": {}, "integer": 0}[kind]
