"""JSON schemas for a kind of record, derived from its Django model and attributes of its resource class."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from django.db.models import ForeignKey, QuerySet

from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.problems import FieldError, ProblemError, json_pointer
from personas.api.responses import datetime_json
from personas.api.schema import (
    Schema,
    any_object_schema,
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
from personas.errors import InvalidInput
from personas.models import Record, Revision, Workspace
from personas.records.review_policy import MAX_REASON_LENGTH
from personas.roles import Permission
from personas.tenancy.models import WorkspaceOwned

MESSAGE_SCHEMA = line_schema(200, title="ChangeMessage", description="The reason, shown in the history.")

OTHERS_TEXT_NOTE = "Null for bots that did not write it."
REVIEW_LIFT_REASON_SCHEMA = line_schema(
    MAX_REASON_LENGTH,
    description="Why the review is lifted. Required if the release policy changes from reviewed to "
    "automatic, which also needs the verb `override`. It is recorded in the audit log, and not returned.",
)

Snapshot = Mapping[str, Any]
# A linked model, and the field that identifies a row of this model in JSON.
LinkTarget = tuple[type[WorkspaceOwned], str]
# For each link target: the values of the identifying field, by row id.
LinkNames = Mapping[LinkTarget, Mapping[int, Any]]


REVISION_SCHEMA = object_schema(
    {
        "revision": integer_schema(1),
        "author": {"type": "string"},
        "message": {"type": "string"},
        "created_at": datetime_schema(),
        "data": any_object_schema(description="The content of that revision, in the format of the record."),
    },
    title="Revision",
)


class RecordSchema:
    """Request and response schemas for one kind of record."""

    model: ClassVar[type[Record]]
    name: ClassVar[str]  # path segment in URLs
    singular: ClassVar[str]  # with spaces, as in "user profile"
    # Model field that identifies a record in URLs, and the Django path converter for its value.
    lookup_field: ClassVar[str] = "slug"
    lookup_converter: ClassVar[str] = "slug"
    search_fields: ClassVar[tuple[str, ...]] = ("name", "slug")
    # Names of model fields in the API, where they differ. All attributes below use the names of the API.
    api_names: ClassVar[Mapping[str, str]] = {}
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
    # Which fields go together: the JSON Schema keywords `if`, `then` and `else` for bodies of POST and PUT.
    input_condition: ClassVar[Schema] = {}
    replacement_condition: ClassVar[Schema] = {}
    # Additional fields of request bodies, which are not stored in the record.
    write_only_fields: ClassVar[Mapping[str, Schema]] = {}
    # Additional fields of responses, which cannot be written.
    read_only_fields: ClassVar[Mapping[str, Schema]] = {}
    # Read-only fields that may change while the ETag does not. PUT accepts any value for them.
    volatile_fields: ClassVar[tuple[str, ...]] = ()
    # Django lookup path from the record to the slug of its agent. It filters the records for keys that are
    # limited to some agents. If it is empty, such keys get 403.
    agent_path: ClassVar[str] = ""
    # For the limits of keys: what the operations that read, change and add records touch.
    read_touches: ClassVar[Touches] = Touches.WORKSPACE
    write_touches: ClassVar[Touches] = Touches.WORKSPACE
    add_touches: ClassVar[Touches] = Touches.WORKSPACE
    write_permission: ClassVar[Permission] = Permission.EDIT
    # Whether bot keys may list and read these records. A bot gets only text that it wrote itself: all other
    # text reaches bots with prompts, which are released and recorded in the ledger.
    bots_may_read: ClassVar[bool] = False
    bots_note: ClassVar[str] = ""
    # Fields with text. A bot gets a value only if it is still what the bot wrote when it created the record.
    text_fields: ClassVar[tuple[str, ...]] = ()
    bots_may_add: ClassVar[bool] = False
    bots_may_remove: ClassVar[bool] = False
    filters: ClassVar[Mapping[str, Schema]] = {}

    @property
    def lookup_name(self) -> str:
        """The name of the path parameter that identifies a record."""
        return "id" if self.lookup_field == "pk" else self.lookup_field

    @property
    def content_names(self) -> list[str]:
        """The names of the content fields of the model in the API."""
        return [self.get_api_name(field) for field in self.model.content]

    def get_api_name(self, field: str) -> str:
        return self.api_names.get(field, field)

    def get_field_name(self, name: str) -> str:
        """Return the model field of a name in the API."""
        return next((field for field, api_name in self.api_names.items() if api_name == name), name)

    @property
    def snapshot_links(self) -> Mapping[str, LinkTarget]:
        """The links whose ids are in snapshots, and the field that identifies a linked row in JSON."""
        return {**self.links, **self.link_lists}

    def stored_value_json(self, name: str, value: Any) -> Any:
        """Return a value of a snapshot as the record's own JSON has it."""
        if isinstance(value, str) and self.writable_fields().get(name, {}).get("format") == "date-time":
            return datetime_json(datetime.fromisoformat(value))
        return value

    def rename_error_fields(self, error: InvalidInput) -> InvalidInput:
        """Return the error of a service with the names of the API. A name may be a path: `steps.0.title`."""
        errors = {}
        for field, messages in error.errors.items():
            first, dot, rest = field.partition(".")
            errors[f"{self.get_api_name(first)}{dot}{rest}"] = messages
        return InvalidInput(errors)

    def writable_fields(self) -> dict[str, Schema]:
        """Return the schemas of the fields that a request body may contain, by field name."""
        fields: dict[str, Schema] = {}
        for name in (*self.create_only_fields, *self.content_names):
            if name not in self.derived_fields and name not in fields:
                fields[name] = self.schema_overrides.get(name) or self.column_schema(name)
        return (
            fields
            | {name: self.link_list_schema(name) for name in self.link_lists}
            | dict(self.extra_fields())
        )

    def extra_fields(self) -> Mapping[str, Schema]:
        return {
            name: schema for name, schema in self.schema_overrides.items() if name not in self.content_names
        }

    def column_schema(self, name: str) -> Schema:
        field = self.model._meta.get_field(self.get_field_name(name))
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
        columns = {self.get_api_name(column.name): column for column in self.model._meta.concrete_fields}
        for name in self.writable_fields():
            field = columns.get(name)
            is_needed = field is not None and not field.blank and not field.has_default()
            if is_needed and name not in self.optional_fields:
                names.append(name)
        return names

    def body_schema(self, *, is_new: bool, is_complete: bool) -> Schema:
        """Return the schema of a request body: of POST (`is_new`), PUT (`is_complete`) or PATCH.

        Only that of POST has defaults. Generated clients send a default in place of an absent field, and a
        PATCH of one field would then change others.
        """
        fields = self.writable_fields() | {**self.write_only_fields, "message": MESSAGE_SCHEMA}
        required = [name for name in self.required_fields() if is_new or name not in self.create_only_fields]
        if is_new:
            return object_schema(fields, required, title=f"{self.schema_title}Input", **self.input_condition)
        changeable = {
            name: remove_defaults(schema)
            for name, schema in fields.items()
            if name not in self.create_only_fields
        }
        patch = object_schema(changeable, (), title=f"{self.schema_title}Patch")
        if not is_complete:
            return patch
        title = f"{self.schema_title}Replacement"
        return {"allOf": [patch], "required": required, "title": title, **self.replacement_condition}

    @property
    def schema_title(self) -> str:
        return to_camel_case(self.singular)

    @cached_property
    def read_only_names(self) -> frozenset[str]:
        """Return the fields that PUT accepts only unchanged: a client may send back what GET returns."""
        writable = set(self.writable_fields()) - set(self.create_only_fields)
        return frozenset(self.response_schema()["properties"]) - writable

    def response_schema(self) -> Schema:
        writable = {name: self.response_field_schema(name) for name in self.writable_fields()}
        if self.bots_may_read:
            writable |= {name: optional_text_schema(writable[name]) for name in self.text_fields}
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


def optional_text_schema(schema: Schema) -> Schema:
    """Return the response schema of text that bots get only if they wrote it. Steps keep their states."""
    if "items" not in schema:
        return nullable_schema(schema) | {"description": OTHERS_TEXT_NOTE}
    item = schema["items"]
    properties = item["properties"] | {"title": optional_text_schema(item["properties"]["title"])}
    return schema | {"items": item | {"properties": properties}}


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


def remove_unchanged_values(
    body: Mapping[str, Any], current: Mapping[str, Any], names: Iterable[str]
) -> dict[str, Any]:
    """Return the body without its read-only values. Raise 422 for those that differ from the current ones."""
    read_only = set(names)
    errors = [
        FieldError(f"{name} is read-only. Omit it, or send the current value.", json_pointer([name]))
        for name, value in body.items()
        if name in read_only and value != current[name]
    ]
    if errors:
        raise ProblemError(validation_problem(errors))
    return {name: value for name, value in body.items() if name not in read_only}


# The resource of each kind of record. Resources register themselves when their URLs are built.
RESOURCES_BY_KIND: dict[str, RecordSchema] = {}


def serialize_snapshots(
    resource: RecordSchema,
    workspace: Workspace,
    snapshots: Sequence[Snapshot | None],
    *,
    can_access_agent: Callable[[str], bool] = lambda _: True,
    list_readable: Callable[[type[Record]], "QuerySet[Any]"] | None = None,
) -> list[dict[str, Any] | None]:
    """Return snapshots with the field names of the API, and slugs or names instead of the ids of links.

    The links of all snapshots are loaded with one query per kind of linked record. A link to an agent that
    the client may not access becomes null, and so does one to a record that is not in `list_readable`.
    """
    names = load_link_names(resource, workspace, [data for data in snapshots if data])
    for (model, _), by_id in names.items():
        if getattr(model, "kind", "") == "agent":
            by_id |= {pk: None for pk, name in by_id.items() if not can_access_agent(name)}
        elif list_readable is not None and issubclass(model, Record):
            readable = set(list_readable(model).filter(pk__in=by_id).values_list("pk", flat=True))
            by_id |= {pk: None for pk in by_id if pk not in readable}
    return [None if data is None else serialize_snapshot(resource, data, names) for data in snapshots]


def load_link_names(
    resource: RecordSchema, workspace: Workspace, snapshots: Iterable[Snapshot]
) -> dict[LinkTarget, dict[int, Any]]:
    ids: dict[LinkTarget, set[int]] = defaultdict(set)
    for data in snapshots:
        for field, value in data.items():
            link = resource.snapshot_links.get(resource.get_api_name(field))
            if link is not None:
                ids[link] |= set(value) if isinstance(value, list) else {value} - {None}
    return {
        (model, attribute): dict(
            model.objects.in_workspace(workspace).filter(pk__in=pks).values_list("pk", attribute)
        )
        for (model, attribute), pks in ids.items()
    }


def serialize_snapshot(resource: RecordSchema, data: Snapshot, names: LinkNames) -> dict[str, Any]:
    result = {}
    for field, value in data.items():
        name = resource.get_api_name(field)
        link = resource.snapshot_links.get(name)
        result[name] = (
            resource.stored_value_json(name, value) if link is None else name_links(value, names[link])
        )
    if "archived" in result:
        # Audit events about archiving and restoring contain only this value.
        result["is_archived"] = result.pop("archived")
    return result


def name_links(value: Any, names_by_id: Mapping[int, Any]) -> Any:
    """Return the names of linked records. Records that are not found are left out of a list."""
    if isinstance(value, list):
        return [names_by_id[pk] for pk in value if names_by_id.get(pk) is not None]
    return None if value is None else names_by_id.get(value)


def revision_json(row: Revision, data: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "revision": row.number,
        "author": row.author_label,
        "message": row.message,
        "created_at": datetime_json(row.at),
        "data": data,
    }
