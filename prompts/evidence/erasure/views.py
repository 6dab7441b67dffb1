"""Pages to erase personal data permanently, and to list past erasures."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.core.paginator import Paginator
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.erasure.services import list_all_texts
from personas.errors import DomainError, InvalidInput
from personas.models import Erasure, Record
from personas.roles import Permission
from personas.selectors import list_memories, list_user_profiles
from personas.tenancy.middleware import WorkspaceRequest, require_permission, require_reauthentication
from personas.ui.review import Reviewed
from prompts.evidence.erasure.same_text import ERASABLE_MODELS, SameText, find_same_text
from prompts.evidence.erasure.services import erase_records, iterate_versions_with_record
from prompts.models import PromptVersion
from prompts.publishing.provenance.usage import get_record_usage
from prompts.tasks import enqueue_erasure

PAGE_SIZE = 50


class ErasureForm(forms.Form):
    reason = forms.CharField(
        label=_("Reason"),
        max_length=500,
        help_text=_("Kept in the erasure record. Do not enter personal data."),
    )
    # The values are kind and id of each record, such as memory:12.
    also = forms.MultipleChoiceField(
        label=_("Erase these records too"), required=False, widget=forms.CheckboxSelectMultiple
    )
    sure = forms.BooleanField(label=_("Yes, erase this text everywhere. This cannot be undone."))

    def __init__(self, data: Any, same_text: Sequence[SameText]) -> None:
        super().__init__(data)
        choices = [(f"{one.kind}:{one.id}", describe_choice(one)) for one in same_text if one.is_erasable]
        cast("forms.MultipleChoiceField", self.fields["also"]).choices = choices
        if not choices:
            del self.fields["also"]


def describe_choice(match: SameText) -> str:
    name = f"{match.kind_label}: {match.name}"
    return name if match.is_current else f"{name} ({gettext('in an earlier revision')})"


def index(request: WorkspaceRequest) -> HttpResponse:
    rows = Erasure.objects.in_workspace(request.workspace).order_by("-pk")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "prompts/erasure/list.html", {"page": page})


def detail(request: WorkspaceRequest, key: int) -> HttpResponse:
    """Show an erasure and list every version that contained the erased text."""
    erasure = get_object_or_404(Erasure.objects.in_workspace(request.workspace), pk=key)
    rows = PromptVersion.objects.in_workspace(request.workspace).filter(pk__in=erasure.versions)
    rows = rows.select_related("prompt__agent", "prompt__channel").order_by("prompt_id", "number")
    columns = rows.only("number", "created_at", "hash", "workspace", "prompt__agent", "prompt__channel")
    page = Paginator(columns, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "prompts/erasure/detail.html", {"erasure": erasure, "page": page})


@require_permission(Permission.MANAGE_KEYS, Reviewed(_("Erase")))
@require_reauthentication
def erase_record_view(request: WorkspaceRequest, family: str, key: str) -> HttpResponse:
    record = get_erasable_record(request, family, key)
    same_text = find_same_text(record)
    form = ErasureForm(request.POST if request.method == "POST" else None, same_text)
    if request.method == "POST" and form.is_valid():
        records = [record, *get_chosen_records(request, form.cleaned_data.get("also", ()))]
        try:
            erasures = erase_records(records, reason=form.cleaned_data["reason"], by=request.actor)
        except InvalidInput as error:
            form.add_error("reason", error.errors.get("reason", [error.message]))
        except DomainError as error:
            form.add_error(None, error.message)
        else:
            for erasure in erasures:
                enqueue_erasure(erasure)
            message = gettext("Text erased. Versions that contained it: %(count)s.")
            count = len({version for erasure in erasures for version in erasure.versions})
            messages.success(request, message % {"count": count})
            return redirect("erasures:detail", request.workspace.slug, erasures[0].pk)
    context: dict[str, Any] = {
        "form": form,
        "record": record,
        "family": family,
        "texts": list_all_texts(record),
        "not_erasable": [one for one in same_text if not one.is_erasable],
        "usage": get_record_usage(request.workspace, record.kind, record.pk, limit=50),
        "versions": sum(
            1 for _version in iterate_versions_with_record(request.workspace, record.kind, record.pk)
        ),
    }
    return render(request, "prompts/erasure/erase.html", context, status=422 if form.errors else 200)


def get_chosen_records(request: WorkspaceRequest, choices: Iterable[str]) -> list[Record]:
    """Return the records that the member chose from the list of those with the same text."""
    keys = [choice.partition(":") for choice in choices]
    rows = [
        ERASABLE_MODELS[kind].objects.in_workspace(request.workspace).filter(pk=int(key)).first()
        for kind, _colon, key in keys
    ]
    return [row for row in rows if row is not None]


def get_erasable_record(request: WorkspaceRequest, family: str, key: str) -> Record:
    if family == "memories" and key.isdecimal() and len(key) < 19:
        return get_object_or_404(list_memories(request.workspace), pk=int(key))
    if family == "user-profiles":
        return get_object_or_404(list_user_profiles(request.workspace), slug=key)
    raise Http404("Records of this kind cannot be erased.")


urls = (
    [
        path("", index, name="list"),
        path("<int:key>/", detail, name="detail"),
        path("<slug:family>/<str:key>/", erase_record_view, name="erase"),
    ],
    "erasures",
)
