"""Deprecated operations say so: headers of every response, and the OpenAPI document."""

from datetime import date

import pytest
from django.urls import include, path

from personas.api.operations import Operation
from personas.api.pagination import PAGINATION_PARAMS, CursorPage, page_response
from personas.api.responses import json_response
from personas.api.schema import object_schema
from personas.api.views import ApiView, endpoint, get_api_view
from personas.roles import Permission
from project.api.openapi import build_openapi_document
from project.urls import urlpatterns as product_urls
from tests.isolation.api_walk import all_endpoints

pytestmark = pytest.mark.django_db
WARNING = {"deprecated_at": date(2026, 11, 1), "sunset_at": date(2027, 5, 1)}


def read(call, name):
    return json_response({})


def list_page(call):
    return page_response(call, CursorPage([], "cDE"), [])


def operation(run, name, **options):
    return Operation(run, "Old", operation_id=name, answer=object_schema({}), tag="agents", **options)


OLD_URLS = [
    endpoint("old/<slug:name>", "old", get=operation(read, "getOld", successor="new/{name}/now", **WARNING)),
    endpoint("old", "olds", get=operation(list_page, "listOlds", query=PAGINATION_PARAMS, **WARNING)),
    endpoint("present/<slug:name>", "present", get=operation(read, "getPresent")),
    endpoint(
        "managed/<slug:name>",
        "managed",
        get=operation(read, "getManaged", permission=Permission.MANAGE_MEMBERS, **WARNING),
    ),
]
urlpatterns = [path("api/v1/", include((OLD_URLS, "old"))), *product_urls]


def list_silent_operations(endpoints):
    """Deprecated operations with a view of their own, which sends no headers."""
    return [
        str(one) for one in endpoints if one.operation.deprecated_at and get_api_view(one.pattern) is None
    ]


@pytest.mark.urls(__name__)
def test_a_deprecated_operation_names_its_dates_and_its_successor(admin):
    answer = admin.get("old/mira")
    assert answer.status_code == 200
    assert answer["Deprecation"] == "@1793491200"
    assert answer["Sunset"] == "Sat, 01 May 2027 00:00:00 GMT"
    assert '</api/v1/docs/#getOld>; rel="deprecation"; type="text/html"' in answer["Link"]
    assert '</api/v1/new/mira/now>; rel="successor-version"' in answer["Link"]


@pytest.mark.urls(__name__)
def test_the_link_to_the_next_page_stays(admin):
    link = admin.get("old")["Link"]
    assert 'rel="next"' in link
    assert 'rel="deprecation"' in link
    assert "successor-version" not in link


@pytest.mark.urls(__name__)
def test_error_responses_carry_the_warning_too(admin, bot, client):
    for answer in (admin.get("old/mira?unknown=1"), bot.get("managed/mira"), client.get("/api/v1/old/mira")):
        assert answer.status_code >= 400
        assert answer["Deprecation"] == "@1793491200"


@pytest.mark.urls(__name__)
def test_other_operations_carry_no_warning(admin):
    answer = admin.get("present/mira")
    assert not {"Deprecation", "Sunset", "Link"} & set(answer.headers)
    assert "Deprecation" not in admin.get("agents").headers


def test_the_document_marks_deprecated_operations():
    paths = build_openapi_document(OLD_URLS, "http://localhost")["paths"]
    old, present = paths["/api/v1/old/{name}"]["get"], paths["/api/v1/present/{name}"]["get"]
    assert old["deprecated"] is True
    assert "Deprecated since 2026-11-01 and may be removed on 2027-05-01" in old["description"]
    assert "/api/v1/new/{name}/now" in old["description"]
    assert set(old["responses"]["200"]["headers"]) == {"Deprecation", "Sunset"}
    assert "deprecated" not in present


@pytest.mark.parametrize(
    "dates",
    [
        {"sunset_at": date(2027, 5, 1)},
        {"deprecated_at": date(2026, 11, 1), "sunset_at": date(2027, 4, 1)},
    ],
)
def test_a_warning_lasts_at_least_180_days(dates):
    with pytest.raises(ValueError, match="at least 180 days"):
        operation(read, "getOld", **dates)


def test_every_deprecated_operation_sends_its_headers():
    assert list_silent_operations(all_endpoints()) == []


@pytest.mark.planted
def test_a_deprecated_operation_with_a_view_of_its_own_is_found(monkeypatch):
    """Planted fault: an operation with a view of its own is deprecated."""
    silent = [one for one in all_endpoints() if get_api_view(one.pattern) is None]
    assert silent
    object.__setattr__(silent[0].operation, "deprecated_at", date(2026, 11, 1))
    try:
        assert list_silent_operations(all_endpoints()) == [str(silent[0])]
    finally:
        object.__setattr__(silent[0].operation, "deprecated_at", None)


@pytest.mark.planted
@pytest.mark.urls(__name__)
def test_a_view_without_the_headers_is_found(admin, monkeypatch):
    """Planted fault: the headers are not set."""
    monkeypatch.delattr(ApiView, "finalize_response")
    with pytest.raises(KeyError):
        assert admin.get("old/mira")["Deprecation"]
