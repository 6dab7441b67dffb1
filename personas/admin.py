"""Django admin for operators. It shows all workspaces, and changes records only through the services.

Whatever an operator looks at or changes is written to the audit log of the workspace it belongs to.
"""

from http import HTTPStatus
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.db import transaction
from django.db.models import ForeignKey, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from personas.accounts.operator_audit import (
    audit_account_change,
    audit_viewed_list,
    audit_viewed_row,
    record_viewed_account,
)
from personas.accounts.operator_services import remove_second_factors, send_password_reset
from personas.actors import Actor
from personas.errors import DomainError
from personas.members.services import change_role
from personas.memories.services import reinstate_memory, revoke_memory
from personas.models import (
    Agent,
    AuditEvent,
    Channel,
    Identity,
    Invitation,
    Membership,
    Memory,
    Record,
    Responsibility,
    Revision,
    Soul,
    Task,
    Tool,
    User,
    UserProfile,
    Workspace,
)
from personas.records.services import archive_record, edit_record, restore_record
from personas.workspaces.services import edit_workspace


def get_operator(request: HttpRequest) -> Actor:
    """Return the signed-in operator as the author of a change."""
    assert isinstance(request.user, User)  # noqa: S101  # the admin site requires a signed-in user
    return Actor.operator(request.user)


class ChangeOnlyAdmin(admin.ModelAdmin[Any]):
    """Admin without add and delete: members create records, and revisions and audit events refer to them.

    Every page that shows rows writes audit events. Django's own log of changes is not used: tenants do not
    see it, and an erasure does not reach the texts in it.
    """

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().changelist_view(request, extra_context)
        context = getattr(response, "context_data", None) or {}
        # The confirmation page of "delete selected" has a queryset instead of a list.
        rows = context["cl"].result_list if "cl" in context else context.get("queryset", ())
        audit_viewed_list(self.model, rows, by=get_operator(request))
        return response

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        response = super().change_view(request, object_id, form_url, extra_context)
        return self.audit_shown_row(request, object_id, response)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().delete_view(request, object_id, extra_context)
        return self.audit_shown_row(request, object_id, response)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        response = super().history_view(request, object_id, extra_context)
        return self.audit_shown_row(request, object_id, response)

    def audit_shown_row(self, request: HttpRequest, object_id: str, response: HttpResponse) -> HttpResponse:
        """Write that the row was viewed, unless the response is a redirect; services audit changes."""
        row = self.get_object(request, unquote(object_id)) if response.status_code == HTTPStatus.OK else None
        if row is not None:
            audit_viewed_row(row, by=get_operator(request))
        return response

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        """Do nothing: the services write audit events."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> None:  # type: ignore[override]
        """Do nothing: the services write audit events."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> None:  # type: ignore[override]
        """Do nothing: the services write audit events."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.model._base_manager.all()
        return rows.select_related("workspace") if hasattr(self.model, "workspace") else rows

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(ChangeOnlyAdmin):
    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class RecordAdminForm(forms.ModelForm):  # type: ignore[type-arg]  # generic only in the stubs
    """Form with optimistic locking: a hidden field holds the revision that the form displays."""

    expected = forms.IntegerField(widget=forms.HiddenInput)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.initial["expected"] = self.instance.revision

    def clean(self) -> dict[str, Any] | None:
        cleaned = super().clean()
        if self.cleaned_data.get("expected") != self.instance.revision:
            raise forms.ValidationError("Someone changed this after you opened it. Reload the page.")
        return cleaned


class RecordAdmin(ChangeOnlyAdmin):
    """Admin that edits the fields of a record through the services. Foreign keys and states are read-only."""

    form = RecordAdminForm
    actions = ("archive", "restore")
    list_filter = ("workspace",)

    def get_list_display(self, request: HttpRequest) -> tuple[str, ...]:
        return ("__str__", "workspace", "revision", "updated_at", "archived_at")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        other_fields = [
            field.name for field in self.model._meta.concrete_fields if field.name not in self.model.content
        ]
        links = [
            name for name in self.model.content if isinstance(self.model._meta.get_field(name), ForeignKey)
        ]
        return [*other_fields, *links, *({"status"} & set(self.model.content))]

    def save_model(self, request: HttpRequest, obj: Record, form: Any, change: bool) -> None:
        values = {name: form.cleaned_data[name] for name in form.changed_data if name in obj.content}
        record = type(obj).objects.in_workspace(obj.workspace_id).get(pk=obj.pk)
        expected = form.cleaned_data["expected"]
        edit_record(record, values, expected=expected, by=get_operator(request), message="By an operator")

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """If a service rejects the change, roll it back completely and show the error as a message."""
        try:
            with transaction.atomic():
                return super().changeform_view(request, object_id, form_url, extra_context)
        except DomainError as error:
            messages.error(request, error.message)
            return redirect(request.path)

    @admin.action(description="Archive")
    def archive(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self.apply_to_each(request, rows, lambda row: archive_record(row, by=get_operator(request)))

    @admin.action(description="Restore")
    def restore(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self.apply_to_each(request, rows, lambda row: restore_record(row, by=get_operator(request)))

    def apply_to_each(self, request: HttpRequest, rows: QuerySet[Any], action: Any) -> None:
        for row in rows:
            try:
                action(row)
            except DomainError as error:
                messages.error(request, f"{row}: {error.message}")


@admin.register(Memory)
class MemoryAdmin(RecordAdmin):
    """Admin of memories. Archive and restore revoke and reinstate the memory."""

    def archive(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self.apply_to_each(request, rows, lambda row: revoke_memory(row, by=get_operator(request)))

    def restore(self, request: HttpRequest, rows: QuerySet[Any]) -> None:
        self.apply_to_each(request, rows, lambda row: reinstate_memory(row, by=get_operator(request)))


@admin.register(Workspace)
class WorkspaceAdmin(ChangeOnlyAdmin):
    list_display = ("name", "slug", "created_at")
    readonly_fields = (
        *("slug", "last_task_number", "default_release_policy", "requires_second_factor"),
        "created_at",
    )

    def save_model(self, request: HttpRequest, obj: Workspace, form: Any, change: bool) -> None:
        edit_workspace(obj, {"name": form.cleaned_data["name"]}, by=get_operator(request))


@admin.register(Membership)
class MembershipAdmin(ChangeOnlyAdmin):
    list_display = ("user", "workspace", "role", "joined_at")
    readonly_fields = ("user", "workspace", "joined_at")

    def save_model(self, request: HttpRequest, obj: Membership, form: Any, change: bool) -> None:
        member = Membership.objects.in_workspace(obj.workspace_id).get(pk=obj.pk)
        try:
            change_role(member, form.cleaned_data["role"], by=get_operator(request))
        except DomainError as error:
            messages.error(request, error.message)


@admin.register(User)
class UserAdmin(admin.ModelAdmin[User]):
    """Admin to create and deactivate user accounts. They cannot be deleted: audit events refer to them.

    Operators can neither set a password nor change an email address: either would let them sign in as the
    user. They can send a reset email to the user's own address.
    """

    ordering = ("email",)
    list_display = ("email", "name", "is_active", "is_superuser", "last_login")
    list_filter = ("is_active", "is_superuser")
    search_fields = ("email", "name")
    fields = (
        "email",
        "name",
        "timezone",
        "workspace_limit",
        "is_active",
        "is_staff",
        "is_superuser",
        "last_login",
        "date_joined",
    )
    actions = ("send_reset_email", "remove_factors")

    def get_readonly_fields(self, request: HttpRequest, obj: User | None = None) -> tuple[str, ...]:
        return ("last_login", "date_joined", *(("email",) if obj else ()))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        response = super().change_view(request, object_id, form_url, extra_context)
        user = self.get_object(request, unquote(object_id)) if response.status_code == HTTPStatus.OK else None
        if user is not None:
            record_viewed_account(user, by=get_operator(request))
        return response

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        with transaction.atomic():
            if not change:
                obj.email = obj.email.strip().lower()
                obj.set_unusable_password()
            super().save_model(request, obj, form, change)
            if form.changed_data:
                fields = ", ".join(form.changed_data) if change else "created"
                audit_account_change(obj, fields, by=get_operator(request))

    @admin.action(description="Send password reset email")
    def send_reset_email(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            send_password_reset(user, request, by=get_operator(request))
        messages.success(request, f"Reset emails sent: {len(users)}.")

    @admin.action(description="Remove second factors")
    def remove_factors(self, request: HttpRequest, users: QuerySet[User]) -> None:
        for user in users:
            remove_second_factors(user, by=get_operator(request))
        messages.success(request, f"Second factors removed: {len(users)} accounts.")


admin.site.register([Agent, Identity, Soul, UserProfile, Responsibility, Task, Tool, Channel], RecordAdmin)
admin.site.register([Revision, AuditEvent, Invitation], ReadOnlyAdmin)
