"""The labels of a workspace: which there are, and who may move them."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import URLPattern, path
from django.views.decorators.http import require_POST

from personas.errors import DomainError, Invalid
from personas.roles import Permission
from personas.tenancy import WorkspaceRequest, needs
from prompts.forms.releases import ProtectForm
from prompts.releases import labels_in_use
from prompts.services.labelling import protect_label


def index(request: WorkspaceRequest) -> HttpResponse:
    context = {"labels": labels_in_use(request.workspace), "form": ProtectForm()}
    return render(request, "prompts/labels/list.html", context)


@needs(Permission.MANAGE_MEMBERS)
@require_POST
def protect(request: WorkspaceRequest) -> HttpResponse:
    form = ProtectForm(request.POST)
    if not form.is_valid():
        messages.error(request, "A label has a name of at most 40 characters.")
        return redirect("labels:list", request.workspace.slug)
    label, is_protected = form.cleaned_data["label"], form.cleaned_data["protected"]
    try:
        protect_label(request.workspace, label, is_protected, by=request.actor)
    except Invalid as error:
        messages.error(request, " ".join(said for words in error.errors.values() for said in words))
    except DomainError as error:
        messages.error(request, error.message)
    else:
        who = "only owners move it" if is_protected else "everybody who edits may move it again"
        messages.success(request, f"“{label}”: {who}.")
    return redirect("labels:list", request.workspace.slug)


urlpatterns: list[URLPattern] = [
    path("", index, name="list"),
    path("protect/", protect, name="protect"),
]
urls = (urlpatterns, "labels")
