"""What a kind of record looks like from outside: said by its model, and by its theme where that is silent."""

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
    """The bodies and answers of one kind."""

    model: ClassVar[type[Record]]
    name: ClassVar[str]  # the word in addresses
    one: ClassVar[str]
    # What stands in addresses for a row, and of which kind it is.
    key: ClassVar[str] = "slug"
    converter: ClassVar[str] = "slug"
    searched: ClassVar[tuple[str, ...]] = ("label", "slug")
    # Fields that are set when a row is made and never changed.
    fixed: ClassVar[tuple[str, ...]] = ()
    # Fields that are given a value when the body has none.
    optional: ClassVar[tuple[str, ...]] = ()
    # Fields nobody sets by hand.
    derived: ClassVar[tuple[str, ...]] = ()
    # Links by the field of the other side that names it; lists of links stand in `lists`.
    links: ClassVar[Mapping[str, tuple[type[Record], str]]] = {}
    lists: ClassVar[Mapping[str, tuple[type[Record], str]]] = {}
    # Shapes that the model does not say by itself.
    more: ClassVar[Mapping[str, Schema]] = {}
    # Fields of the answer that nobody sends.
    shown: ClassVar[Mapping[str, Schema]] = {}
    # How a row belongs to an agent, for keys that are limited to some; empty: such keys see none.
    agent_path: ClassVar[str] = ""
    write: ClassVar[Permission] = Permission.EDIT
    bots_may_add: ClassVar[bool] = False
    bots_may_remove: ClassVar[bool] = False
    filters: ClassVar[Mapping[str, Schema]] = {}

    def written(self) -> dict[str, Schema]:
        """What a body may hold, from the model."""
        fields: dict[str, Schema] = {}
        for name in (*self.fixed, *self.model.content):
            if name not in self.derived and name not in fields:
                fields[name] = self.more.get(name) or self.of_column(name)
        return fields | {name: self.of_list(name) for name in self.lists} | dict(self.own_lists())

    def own_lists(self) -> Mapping[str, Schema]:
        return {name: said for name, said in self.more.items() if name not in self.model.content}

    def of_column(self, name: str) -> Schema:
        field = self.model._meta.get_field(name)
        if isinstance(field, ForeignKey):
            return (
                nullable_schema(self.of_link(*self.links[name]))
                if field.null
                else self.of_link(*self.links[name])
            )
        return model_field_schema(field)  # type: ignore[arg-type]  # a column, for it is in `content`

    def of_list(self, name: str) -> Schema:
        return array_schema(self.of_link(*self.lists[name]), uniqueItems=True)

    @staticmethod
    def of_link(model: type[Record], attribute: str) -> Schema:
        if attribute == "pk":
            return integer_schema(1, description=f"The id of a {model.kind}.")
        if attribute == "slug":
            return slug_schema(description=f"The slug of a {model.kind.replace('_', ' ')}.")
        return line_schema(64, least=1, description=f"The name of a {model.kind}.")

    def needed(self) -> list[str]:
        """Fields without which a row cannot be made."""
        names = []
        for name in self.written():
            field = next((one for one in self.model._meta.concrete_fields if one.name == name), None)
            is_needed = field is not None and not field.blank and not field.has_default()
            if is_needed and name not in self.optional:
                names.append(name)
        return names

    def body(self, *, is_new: bool, is_whole: bool) -> Schema:
        fields = self.written()
        if not is_new:
            fields = {name: said for name, said in fields.items() if name not in self.fixed}
        required = [name for name in self.needed() if name in fields] if is_whole else []
        return object_schema(fields | {"message": MESSAGE_SCHEMA}, required)

    def answer(self) -> Schema:
        plain = {name: relax_schema(said) for name, said in self.written().items()}
        own = {
            "id": integer_schema(1),
            **({self.key: {"type": "string"}} if self.key == "slug" else {}),
            **({self.key: integer_schema(1)} if self.key == "number" else {}),
            **plain,
            **self.shown,
            "revision": integer_schema(1),
            "is_archived": boolean_schema(),
            "created_at": datetime_schema(),
            "updated_at": datetime_schema(),
            "etag": {"type": "string"},
        }
        return object_schema(own, required=())


def relax_schema(said: Schema) -> Schema:
    """What is given is not held to the limits of what is taken: rules may have been laxer once."""
    kept = {name: value for name, value in said.items() if name in {"type", "items", "anyOf", "description"}}
    if "items" in kept:
        kept["items"] = relax_schema(kept["items"])
    if "anyOf" in kept:
        kept["anyOf"] = [relax_schema(one) for one in kept["anyOf"]]
    return kept


def get_default_value(said: Schema) -> Any:
    """What a field is when nobody says: the emptiest value that fits."""
    if "default" in said:
        return said["default"]
    kind = said.get("type", [])
    if "anyOf" in said or (isinstance(kind, list) and "null" in kind):
        return None
    if "enum" in said:
        return said["enum"][0]
    return {"string": "", "array": [], "boolean": False, "object": {}, "integer": 0}[kind]
