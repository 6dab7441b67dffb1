"""REST operations for IDENTITY.md, SOUL.md and USER.md: import and export of records as Markdown files.

Identities, souls and user profiles extend `NamedResource`.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

from django.urls import URLPattern

from core.db.before_commit import atomic_with_hooks
from core.text.front_matter import FrontMatterError
from personas.agents.services import create_named_record
from personas.api.etags import check_if_match, get_record_etag
from personas.api.exception_handler import validation_problem
from personas.api.operations import ApiRequest, Operation
from personas.api.problems import FieldError, Problem, ProblemError
from personas.api.record_resource import CHANGE_ERROR_CODES, RecordResource
from personas.api.record_schema import MESSAGE_SCHEMA, with_article
from personas.api.responses import ApiResponse
from personas.api.schema import (
    FILE_PATTERN,
    FRONT_MATTER_FORMAT,
    Schema,
    line_schema,
    object_schema,
    prose_schema,
    slug_schema,
    text_schema,
    to_camel_case,
)
from personas.api.views import endpoint
from personas.errors import InvalidInput
from personas.models import Named
from personas.persona_files.forms import MAX_FILE_SIZE
from personas.persona_files.services import parse_persona_file, render_persona_file
from personas.records.services import FieldValues, edit_record

MARKDOWN_TYPE = "text/markdown"
FILE_SCHEMA: Schema = text_schema(MAX_FILE_SIZE, pattern=FILE_PATTERN)
# Front matter keys without a field of their own. Identities and user profiles keep them as text.
EXTRA_SCHEMA = prose_schema(8_000, format=FRONT_MATTER_FORMAT)
FILE_EXAMPLES = {
    "IDENTITY.md": "---\nname: Mira\nemoji: 🦊\nvibe: dry\n---\n\nKnows every trail.\n",
    "SOUL.md": "Be calm. Say what you do not know.\n",
    "USER.md": "---\nname: Ada\ntimezone: Europe/Oslo\n---\n\nPrefers short answers.\n",
}


class PersonaFileOperations:
    """Operations that import and export the records of one resource as Markdown files."""

    def __init__(self, resource: RecordResource[Any], file_name: str) -> None:
        self.resource, self.file_name = resource, file_name
        self.model: type[Named] = resource.model  # type: ignore[assignment]  # these are all named

    def import_file(self, call: ApiRequest) -> ApiResponse:
        """Create a record from a file."""
        resource, body = self.resource, dict(call.body)
        text, message = body.pop("text"), body.pop("message", "")
        values = {resource.get_field_name(name): value for name, value in body.items()}
        with resource.api_error_names():
            record = resource.create(call, parse_persona_file(self.model, text) | values, message)
        return resource.record_response(
            resource.reload(record), status=201, Location=resource.get_url(record)
        )

    def export_file(self, call: ApiRequest, key: str) -> ApiResponse:
        record = self.resource.find_record(call, key)
        try:
            text = render_persona_file(record)
        except FrontMatterError as error:
            raise ProblemError(Problem(409, "not_exportable", str(error))) from error
        headers = {
            "ETag": get_record_etag(record),
            "Content-Disposition": f'attachment; filename="{self.file_name}"',
        }
        return ApiResponse(200, text.encode(), headers, content_type=f"{MARKDOWN_TYPE}; charset=utf-8")

    def replace_from_file(self, call: ApiRequest, key: str) -> ApiResponse:
        """Replace what the file has of a record; its name stays."""
        resource = self.resource
        with atomic_with_hooks():
            record = resource.find_locked(call, key)
            check_if_match(record, call.if_match)
            try:
                values = parse_persona_file(self.model, call.body)
                message = f"From {self.file_name}"
                saved = edit_record(record, values, expected=record.revision, by=call.actor, message=message)
            except InvalidInput as error:
                raise ProblemError(validation_problem(list_file_errors(error))) from error
        return resource.record_response(resource.reload(saved))

    def urls(self) -> list[URLPattern]:
        resource, name = self.resource, self.resource.name
        answer, noun = resource.response_schema(), to_camel_case(resource.singular)
        write_options: dict[str, Any] = {
            "permission": resource.write_permission,
            "touches": resource.write_touches,
            "answer": answer,
            "tag": name,
        }
        return [
            endpoint(
                f"{name}:import",
                f"{name}-import",
                post=Operation(
                    self.import_file,
                    f"Create {with_article(resource.singular)} from {self.file_name}",
                    operation_id=f"import{noun}",
                    body=object_schema(
                        {
                            "name": line_schema(
                                80, least=1, description=("Name of the record, shown in lists.")
                            ),
                            "text": FILE_SCHEMA | {"description": "The whole file."},
                            "message": MESSAGE_SCHEMA,
                        },
                        required=["name", "text"],
                        title="PersonaFileInput",
                    ),
                    body_example={"name": "Fox", "text": FILE_EXAMPLES[self.file_name]},
                    status=201,
                    is_retryable=True,
                    note="Unknown keys in the front matter are kept in `extra`."
                    if self.file_name != "SOUL.md"
                    else "",
                    **write_options,
                ),
            ),
            endpoint(
                f"{name}/<{resource.lookup_converter}:{resource.lookup_name}>/file",
                f"{name}-file",
                get=Operation(
                    self.export_file,
                    f"Get {with_article(resource.singular)} as {self.file_name}",
                    operation_id=f"get{noun}File",
                    touches=resource.read_touches,
                    extra_content={
                        MARKDOWN_TYPE: {
                            "schema": {"type": "string"},
                            "example": FILE_EXAMPLES[self.file_name],
                        }
                    },
                    refusals={409: "not_exportable"},
                    tag=name,
                ),
                put=Operation(
                    self.replace_from_file,
                    f"Replace {with_article(resource.singular)} with {self.file_name}",
                    operation_id=f"replace{noun}File",
                    body=FILE_SCHEMA,
                    body_type=MARKDOWN_TYPE,
                    body_example=FILE_EXAMPLES[self.file_name],
                    is_conditional=True,
                    refusals=CHANGE_ERROR_CODES,
                    note="The body is the file itself. Missing keys become empty. The name does not change.",
                    **write_options,
                ),
            ),
        ]


def list_file_errors(error: InvalidInput) -> Iterable[FieldError]:
    """Return the errors of a file. Its fields have no JSON pointers, so their names are part of the text."""
    for name, messages in error.errors.items():
        prefix = "" if name == "text" else f"{name}: "
        yield from (FieldError(f"{prefix}{message}") for message in messages)


class NamedResource(RecordResource[Any]):
    """Base class for records with a name and a slug.

    If a create request contains no slug, the slug is derived from the name.
    """

    create_only_fields = ("slug",)
    optional_fields = ("slug",)
    schema_overrides = {"slug": slug_schema()}
    # Name of the Markdown file that a record is imported from and exported to.
    file_name: ClassVar[str]

    def create(self, call: ApiRequest, values: FieldValues, message: str) -> Any:
        model: type[Named] = self.model  # type: ignore[assignment]  # these are all named
        return create_named_record(model, call.workspace, values, by=call.actor, message=message)

    def extra_urls(self) -> list[URLPattern]:
        return PersonaFileOperations(self, self.file_name).urls()
