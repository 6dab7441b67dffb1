"""REST resource for the comments on a release."""

from typing import Any

from django.urls import URLPattern

from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, page_response, paginate_rows
from personas.api.responses import ApiResponse, datetime_json, json_response
from personas.api.schema import (
    boolean_schema,
    datetime_schema,
    integer_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.roles import Permission
from prompts.models import ReleaseComment
from prompts.publishing.comments.api import COMMENT_INPUT_SCHEMA
from prompts.publishing.releases.api import get_visible_release
from prompts.publishing.releases.comments import comment_on_release
from prompts.publishing.releases.selectors import list_comments
from prompts.publishing.versions.serializers import TEXT_SCHEMA

COMMENT_SCHEMA = object_schema(
    {
        "id": integer_schema(1),
        "author": TEXT_SCHEMA,
        "text": TEXT_SCHEMA,
        "is_change_request": boolean_schema(),
        "created_at": datetime_schema(),
    },
    title="ReleaseComment",
)


def index_comments(call: ApiRequest, number: int) -> ApiResponse:
    rows = list_comments(get_visible_release(call, number))
    page = paginate_rows(rows, limit=call.query["limit"], cursor=call.query.get("cursor", ""))
    return page_response(call, page, [comment_json(row) for row in page.rows])


def create_comment(call: ApiRequest, number: int) -> ApiResponse:
    release = get_visible_release(call, number)
    comment = comment_on_release(release, text=call.body["text"], by=call.actor)
    return json_response(comment_json(comment), 201)


def comment_json(comment: ReleaseComment) -> dict[str, Any]:
    return {
        "id": comment.pk,
        "author": comment.author_label,
        "text": comment.text,
        "is_change_request": comment.is_change_request,
        "created_at": datetime_json(comment.at),
    }


urlpatterns: list[URLPattern] = [
    endpoint(
        "releases/<int:number>/comments",
        "releases-comments",
        get=Operation(
            index_comments,
            "List the comments on a release",
            operation_id="listReleaseComments",
            touches=Touches.LABEL,
            answer=page_schema(COMMENT_SCHEMA),
            query=PAGINATION_PARAMS,
            tag="releases",
        ),
        post=Operation(
            create_comment,
            "Comment on a release",
            operation_id="createReleaseComment",
            permission=Permission.EDIT,
            touches=Touches.LABEL,
            body=COMMENT_INPUT_SCHEMA,
            answer=COMMENT_SCHEMA,
            status=201,
            is_addressable=False,
            is_retryable=True,
            tag="releases",
        ),
    ),
]
