"""REST resources for the comments on a memory and on the lines of a version."""

from typing import Any

from django.db.models import QuerySet
from django.urls import URLPattern

from personas.api.exception_handler import RecordNotFound
from personas.api.key_limits import Touches, out_of_scope_error
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse, datetime_json, json_response, no_content_response
from personas.api.schema import (
    datetime_schema,
    integer_schema,
    nullable_schema,
    object_schema,
    page_schema,
    prose_schema,
)
from personas.api.views import endpoint
from personas.memories.api import MemoryResource
from personas.models import Memory
from personas.roles import Permission
from prompts.api_lookup import MAX_ID, check_number_bounds, get_visible_prompt, list_prompt_versions
from prompts.models import Comment, PromptVersion
from prompts.publishing.comments.selectors import list_comments_on
from prompts.publishing.comments.services import comment_on_line, comment_on_memory, delete_comment
from prompts.publishing.versions.api import VERSIONS_PATH, can_read_text
from prompts.publishing.versions.serializers import TEXT_SCHEMA

MEMORIES = MemoryResource()
INPUT_FIELDS = {"text": prose_schema(4_000, least=1)}
COMMENT_INPUT_SCHEMA = object_schema(INPUT_FIELDS, title="CommentInput")
LINE_COMMENT_INPUT_SCHEMA = object_schema(
    {"line": integer_schema(1, 2**31 - 1, description="The line of the text, from 1."), **INPUT_FIELDS},
    title="LineCommentInput",
)
COMMENT_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "author": TEXT_SCHEMA,
        "text": TEXT_SCHEMA,
        "line": nullable_schema(integer_schema(1, description="Null for a memory.")),
        "created_at": datetime_schema(),
    },
    title="Comment",
)


# --- memories --------------------------------------------------------------------------------------------


def index_memory_comments(call: ApiRequest, key: int) -> ApiResponse:
    return list_response(call, MEMORIES.find_record(call, key))


def create_memory_comment(call: ApiRequest, key: int) -> ApiResponse:
    memory = MEMORIES.find_writable(call, key)
    comment = comment_on_memory(memory, text=call.body["text"], by=call.actor)
    return json_response(written_comment_json(comment), 201)


def remove_memory_comment(call: ApiRequest, key: int, comment: int) -> ApiResponse:
    return delete_response(call, list_comments_on(MEMORIES.find_writable(call, key)), comment)


# --- lines of versions -----------------------------------------------------------------------------------


def index_version_comments(call: ApiRequest, agent: str, channel: str, number: int) -> ApiResponse:
    return list_response(call, get_readable_version(call, agent, channel, number))


def create_version_comment(call: ApiRequest, agent: str, channel: str, number: int) -> ApiResponse:
    version = get_readable_version(call, agent, channel, number)
    comment = comment_on_line(version, int(call.body["line"]), text=call.body["text"], by=call.actor)
    return json_response(written_comment_json(comment), 201)


def remove_version_comment(
    call: ApiRequest, agent: str, channel: str, number: int, comment: int
) -> ApiResponse:
    version = get_readable_version(call, agent, channel, number)
    return delete_response(call, list_comments_on(version), comment)


def get_readable_version(call: ApiRequest, agent: str, channel: str, number: int) -> PromptVersion:
    """Return the version, for keys that can read its text: comments can quote it."""
    prompt = get_visible_prompt(call, agent, channel)
    version = list_prompt_versions(prompt).filter(number=check_number_bounds(number)).first()
    if version is None:
        raise RecordNotFound(f"This prompt has no version {number}.")
    if not can_read_text(call):
        raise out_of_scope_error("labels")
    version.prompt = prompt
    return version


# --- responses -------------------------------------------------------------------------------------------


def list_response(call: ApiRequest, subject: Memory | PromptVersion) -> ApiResponse:
    rows = list_comments_on(subject)
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [written_comment_json(row) for row in page.rows])


def delete_response(call: ApiRequest, comments: QuerySet[Comment], key: int) -> ApiResponse:
    row = comments.filter(pk=check_number_bounds(key, MAX_ID)).first()
    if row is None:
        raise RecordNotFound(f"No comment {key} here.")
    delete_comment(row, by=call.actor)
    return no_content_response()


def written_comment_json(comment: Comment) -> dict[str, Any]:
    return {
        "id": comment.pk,
        "author": comment.author_label,
        "text": comment.text,
        "line": comment.line,
        "created_at": datetime_json(comment.at),
    }


LIST_OPTIONS: dict[str, Any] = {"answer": page_schema(COMMENT_SCHEMA), "query": PAGINATION_PARAMS}
WRITE_OPTIONS: dict[str, Any] = {"permission": Permission.EDIT}
CREATE_OPTIONS: dict[str, Any] = {
    **WRITE_OPTIONS,
    "answer": COMMENT_SCHEMA,
    "status": 201,
    "is_addressable": False,
    "is_retryable": True,
}
MEMORY_OPTIONS: dict[str, Any] = {"touches": Touches.AGENT, "tag": "memories"}
VERSION_OPTIONS: dict[str, Any] = {"touches": Touches.PROMPT, "tag": "prompt-versions"}
COMMENTS_PATH = f"{VERSIONS_PATH}/<int:version>/comments"
urlpatterns: list[URLPattern] = [
    endpoint(
        "memories/<int:id>/comments",
        "memories-comments",
        get=Operation(
            index_memory_comments,
            "List the comments on a memory",
            operation_id="listMemoryComments",
            **LIST_OPTIONS,
            **MEMORY_OPTIONS,
        ),
        post=Operation(
            create_memory_comment,
            "Comment on a memory",
            operation_id="createMemoryComment",
            body=COMMENT_INPUT_SCHEMA,
            **CREATE_OPTIONS,
            **MEMORY_OPTIONS,
        ),
    ),
    endpoint(
        "memories/<int:id>/comments/<int:comment>",
        "memories-comment",
        delete=Operation(
            remove_memory_comment,
            "Delete a comment on a memory",
            operation_id="deleteMemoryComment",
            status=204,
            **WRITE_OPTIONS,
            **MEMORY_OPTIONS,
        ),
    ),
    endpoint(
        COMMENTS_PATH,
        "versions-comments",
        get=Operation(
            index_version_comments,
            "List the comments on a version",
            operation_id="listPromptVersionComments",
            **LIST_OPTIONS,
            **VERSION_OPTIONS,
        ),
        post=Operation(
            create_version_comment,
            "Comment on a line of a version",
            operation_id="createPromptVersionComment",
            body=LINE_COMMENT_INPUT_SCHEMA,
            **CREATE_OPTIONS,
            **VERSION_OPTIONS,
        ),
    ),
    endpoint(
        f"{COMMENTS_PATH}/<int:comment>",
        "versions-comment",
        delete=Operation(
            remove_version_comment,
            "Delete a comment on a version",
            operation_id="deletePromptVersionComment",
            status=204,
            **WRITE_OPTIONS,
            **VERSION_OPTIONS,
        ),
    ),
]
