"""Import an agent of nova from its JSON configuration."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.core.exceptions import NON_FIELD_ERRORS
from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.agents.services import create_named_record, find_free_slug
from personas.errors import InvalidInput
from personas.models import Agent, Identity, Responsibility, Workspace
from personas.records.services import create_record

LAYOUT = "nova"
# Keys of a responsibility that can hold its text; the first one that is present is used.
RESPONSIBILITY_TEXT_KEYS = ("content", "text")
MAX_RESPONSIBILITIES = 100
MAX_REPORTED_KEYS = 50
MESSAGE = "Imported from a nova configuration"


@dataclass(frozen=True)
class AgentImport:
    """Result of an import. `not_imported` are the keys of the configuration that nothing was created from."""

    agent: Agent
    responsibilities: list[Responsibility]
    not_imported: list[str]


@dataclass(frozen=True)
class AgentConfig:
    """The known keys of a configuration. `identity_key` is the key that the identity's text comes from."""

    name: str
    slug: str
    description: str
    identity: str
    identity_key: str
    instructions: str
    directories: list[Any]
    responsibilities: list[tuple[str, str]]
    not_imported: list[str]


@transaction.atomic
def import_agent(workspace: Workspace, data: Any, *, by: Actor) -> AgentImport:
    """Create an agent with the nova layout, its identity and its responsibilities from a configuration.

    The text of `identity`, or of the legacy key `role`, becomes an identity record.
    """
    config = parse_agent_config(data)
    identity = None
    if config.identity:
        values = {"name": config.name, "text": config.identity}
        with _errors_under({"text": config.identity_key}):
            identity = create_named_record(Identity, workspace, values, by=by, message=MESSAGE)
    agent_values = {
        "name": config.name,
        "slug": config.slug or find_free_slug(Agent, workspace, config.name),
        "description": config.description,
        "instructions": config.instructions,
        "directories": config.directories,
        "identity": identity,
        "layout": LAYOUT,
    }
    with _errors_under({}):
        agent = create_record(Agent, workspace, agent_values, by=by, message=MESSAGE)
    responsibilities = []
    for position, (title, text) in enumerate(config.responsibilities):
        row = {"agent": agent, "title": title, "text": text, "position": position}
        with _errors_under({}, f"responsibilities.{position}"):
            responsibilities.append(create_record(Responsibility, workspace, row, by=by, message=MESSAGE))
    return AgentImport(agent, responsibilities, config.not_imported)


def parse_agent_config(data: Any) -> AgentConfig:
    """Return the known values of a configuration. Raise InvalidInput with the path of each invalid value.

    In the current format an agent has `identity` and `instructions`. A legacy agent has `role` instead: its
    text becomes the identity, and the agent gets no instructions, as in nova.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput.on(NON_FIELD_ERRORS, _("Expected an object with the agent's configuration."))
    texts = {
        key: _get_text(data, key)
        for key in ("name", "slug", "description", "identity", "role", "instructions")
    }
    if not texts["name"].strip():
        raise InvalidInput.on("name", _("This field is required."))
    identity_key = "role" if texts["role"].strip() and not texts["identity"].strip() else "identity"
    used = {"name", "slug", "description", "directories", "responsibilities", identity_key}
    if identity_key == "identity":
        used.add("instructions")
    return AgentConfig(
        name=texts["name"],
        slug=texts["slug"],
        description=texts["description"],
        identity=texts[identity_key].strip(),
        identity_key=identity_key,
        instructions=texts["instructions"] if "instructions" in used else "",
        directories=_get_list(data, "directories"),
        responsibilities=_parse_responsibilities(_get_list(data, "responsibilities")),
        not_imported=sorted(str(key)[:80] for key, value in data.items() if key not in used and value)[
            :MAX_REPORTED_KEYS
        ],
    )


def _get_text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise InvalidInput.on(key, _("Must be text."))
    return value


def _get_list(data: Mapping[str, Any], key: str) -> list[Any]:
    value = data.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise InvalidInput.on(key, _("Expected a list."))
    return value


def _parse_responsibilities(rows: list[Any]) -> list[tuple[str, str]]:
    if len(rows) > MAX_RESPONSIBILITIES:
        message = _("At most %(limit)s responsibilities can be imported.") % {"limit": MAX_RESPONSIBILITIES}
        raise InvalidInput.on("responsibilities", message)
    return [_parse_responsibility(index, row) for index, row in enumerate(rows)]


def _parse_responsibility(index: int, row: Any) -> tuple[str, str]:
    path = f"responsibilities.{index}"
    if not isinstance(row, Mapping):
        raise InvalidInput.on(path, _("Expected an object with “title” and “content”."))
    with _errors_under({}, path):
        text_key = next((key for key in RESPONSIBILITY_TEXT_KEYS if key in row), "content")
        return _get_text(row, "title"), _get_text(row, text_key)


@contextmanager
def _errors_under(names: Mapping[str, str], prefix: str = "") -> Iterator[None]:
    """Rename the fields of an InvalidInput by `names`, and put them below the path `prefix`."""
    try:
        yield
    except InvalidInput as error:
        renamed = {names.get(name, name): messages for name, messages in error.errors.items()}
        if not prefix:
            raise InvalidInput(renamed) from error
        paths = {
            prefix if name == NON_FIELD_ERRORS else f"{prefix}.{name}": messages
            for name, messages in renamed.items()
        }
        raise InvalidInput(paths) from error
