"""Registry of the pages of all record kinds that are used in prompts, by URL namespace (“family”)."""

from typing import Any

from django.http import Http404

from personas.models import Record
from personas.records.views import RecordPages
from personas.tenancy.middleware import WorkspaceRequest
from personas.urls import RECORD_PAGES
from prompts.publishing.settings.views import PromptSettingsPages
from skills.library.views import SkillPages

PAGES_BY_FAMILY: dict[str, RecordPages[Any]] = {
    pages.name: pages for pages in (*RECORD_PAGES, SkillPages(), PromptSettingsPages()) if pages.feeds_prompts
}


def get_record_pages(family: str) -> RecordPages[Any]:
    pages = PAGES_BY_FAMILY.get(family)
    if pages is None:
        raise Http404("Kind of record not found.")
    return pages


def get_page_record(request: WorkspaceRequest, pages: RecordPages[Any], key: str) -> Record:
    """Find a record by its URL key.

    The key is validated here: it comes from a query parameter, so no URL converter has checked it.
    """
    is_number = key.isascii() and key.isdecimal() and len(key) < 19
    if "\x00" in key or (pages.converter == "int" and not is_number):
        raise Http404("Record not found.")
    record: Record = pages.find(request, key)
    return record
