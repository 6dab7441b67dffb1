"""Django admin for operators: allowed folders can be created and withdrawn, everything else is read-only."""

from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from personas.admin import ChangeOnlyAdmin, ReadOnlyAdmin, RecordAdmin, get_operator
from personas.errors import DomainError
from skills.models import (
    AgentContext,
    AgentSource,
    AllowedFolder,
    ContextFile,
    FileAgent,
    FileRevision,
    PushedFile,
    RefreshRun,
    RuleSet,
    Skill,
    Source,
    Waiver,
)
from skills.sources.allowed_folders import (
    allow_folder,
    strip_trailing_slash,
    update_folder_note,
    withdraw_folder,
)


class AllowedFolderForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """Form for an allowed folder, which allows a workspace to read a folder on the server.

    The help text of the path lists the folders that DRAMATIS_SOURCE_ROOTS allows.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "path" in self.fields:
            roots = ", ".join(str(root) for root in settings.DRAMATIS_SOURCE_ROOTS)
            help_text = (
                f"Allowed folders: {roots} and everything below them."
                if roots
                else ("DRAMATIS_SOURCE_ROOTS is not set.")
            )
            self.fields["path"].help_text = help_text

    def clean_path(self) -> str:
        return strip_trailing_slash(self.cleaned_data["path"])


@admin.register(AllowedFolder)
class AllowedFolderAdmin(ChangeOnlyAdmin):
    """Create and withdraw allowed folders.

    The workspace and folder of an existing row cannot be changed, because sources depend on them.
    """

    form = AllowedFolderForm
    list_display = ("path", "workspace", "note", "source_count", "created_at")
    list_filter = ("workspace",)
    search_fields = ("path", "note")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).prefetch_related("sources")

    def has_add_permission(self, request: HttpRequest) -> bool:
        return True

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return True

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return ("workspace", "path", "created_at") if obj else ("created_at",)

    @admin.display(description="sources")
    def source_count(self, folder: AllowedFolder) -> int:
        return len(folder.sources.all())

    def save_model(self, request: HttpRequest, obj: AllowedFolder, form: Any, change: bool) -> None:
        if change:
            update_folder_note(obj, form.cleaned_data["note"], by=get_operator(request))
        else:
            folder = allow_folder(obj.workspace, obj.path, note=obj.note, by=get_operator(request))
            obj.pk, obj.created_at = folder.pk, folder.created_at

    def get_deleted_objects(
        self, objs: Any, request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Report sources that use the folders as protected objects, so Django offers no delete button."""
        used = [f"{source}, which reads {folder}" for folder in objs for source in folder.sources.all()]
        return [str(folder) for folder in objs], {"allowed folders": len(objs)}, set(), used

    def delete_model(self, request: HttpRequest, obj: AllowedFolder) -> None:
        withdraw_folder(obj, by=get_operator(request))

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for folder in queryset:
            try:
                withdraw_folder(folder, by=get_operator(request))
            except DomainError as error:
                messages.error(request, error.message)


class WorkspaceRowAdmin(ReadOnlyAdmin):
    """Read-only admin of a model whose rows belong to workspaces, with a workspace column and filter."""

    list_display: tuple[str, ...] = ("__str__", "workspace")
    list_filter: ClassVar[tuple[str, ...]] = ("workspace",)


@admin.register(Source)
class SourceAdmin(WorkspaceRowAdmin):
    list_display = (
        "name",
        "workspace",
        "source_kind",
        "allowed_folder",
        "folder",
        "refresh_minutes",
        "archived_at",
    )
    list_select_related = ("workspace", "allowed_folder")


@admin.register(ContextFile)
class ContextFileAdmin(WorkspaceRowAdmin):
    list_display = ("path", "source", "workspace", "file_kind", "status", "changed_at")
    list_filter = ("workspace", "status")
    list_select_related = ("workspace", "source")
    raw_id_fields = ("latest", "approved", "active")


@admin.register(RefreshRun)
class RefreshRunAdmin(WorkspaceRowAdmin):
    list_display = (
        "pk",
        "source",
        "workspace",
        "status",
        "cause",
        "actor_label",
        "requested_at",
        "finished_at",
    )
    list_filter = ("workspace", "status")
    list_select_related = ("workspace", "source")


admin.site.register(Skill, RecordAdmin)
admin.site.register(
    [AgentContext, AgentSource, FileAgent, FileRevision, PushedFile, RuleSet, Waiver], WorkspaceRowAdmin
)
