"""Pages of notifications: the list, the unread count, marking as read, and preferences."""

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import path
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from personas.models import Notification
from personas.notifications.descriptions import build_target_url, describe_notifications
from personas.notifications.forms import PreferencesForm
from personas.notifications.selectors import get_notification_page, list_preferences
from personas.notifications.services import mark_as_read, save_preferences
from personas.roles import Permission
from personas.tenancy.middleware import WorkspaceRequest, require_permission
from personas.ui.review import NotReviewed

NOT_REVIEWED = NotReviewed("notifications of the member")


def index(request: WorkspaceRequest) -> HttpResponse:
    return render(request, "personas/notifications/list.html", get_list_context(request))


def live_notifications(request: WorkspaceRequest) -> HttpResponse:
    """Return the list if it has changed, and 204 otherwise, so that the page is not replaced."""
    context = get_list_context(request)
    if request.GET.get("seen") == context["mark"]:
        return HttpResponse(status=204)
    return render(request, "personas/notifications/_live.html", context)


def live_bell(request: WorkspaceRequest) -> HttpResponse:
    """Return the number of unread notifications, or 204 if the page shows it already."""
    count = request.membership.unread_count
    if request.GET.get("seen") == str(count):
        return HttpResponse(status=204)
    text = ngettext("%(count)s unread notification", "%(count)s unread notifications", count)
    return JsonResponse({"count": count, "text": text % {"count": count}})


def get_list_context(request: WorkspaceRequest) -> dict[str, object]:
    is_all, before = request.GET.get("show") == "all", request.GET.get("before", "")
    is_further = before.isascii() and before.isdecimal() and len(before) < 19
    page = get_notification_page(
        request.membership, is_unread=not is_all, before=int(before) if is_further else None
    )
    filters = {"show": "all"} if is_all else {}
    # `mark` changes when a notification is added, counted or read.
    newest = page.rows[0].at.isoformat() if page.rows else ""
    mark = f"{request.membership.unread_count}.{len(page.rows)}.{newest}"
    return {
        "notifications": describe_notifications(request.workspace, page.rows),
        "unread": request.membership.unread_count,
        "is_all": is_all,
        "is_further": is_further,
        "older": urlencode({**filters, "before": str(page.next_cursor)}) if page.next_cursor else "",
        "newest_query": urlencode(filters),
        "mark": mark,
        "poll": urlencode({**filters, "seen": mark}),
    }


@require_permission(Permission.READ, NOT_REVIEWED)
@require_POST
def open_notification_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    """Mark a notification as read, and continue with the page that it is about."""
    notification = get_own_notification(request, key)
    mark_as_read(request.membership, pk=notification.pk)
    return redirect(build_target_url(notification, request.workspace))


@require_permission(Permission.READ, NOT_REVIEWED)
@require_POST
def read_notification_view(request: WorkspaceRequest, key: int) -> HttpResponse:
    mark_as_read(request.membership, pk=get_own_notification(request, key).pk)
    return redirect("notifications:list", request.workspace.slug)


@require_permission(Permission.READ, NOT_REVIEWED)
@require_POST
def read_all_view(request: WorkspaceRequest) -> HttpResponse:
    count = mark_as_read(request.membership)
    text = ngettext(
        "%(count)s notification marked as read.", "%(count)s notifications marked as read.", count
    )
    messages.success(request, text % {"count": count})
    return redirect("notifications:list", request.workspace.slug)


@require_permission(Permission.READ, NOT_REVIEWED)
def edit_preferences(request: WorkspaceRequest) -> HttpResponse:
    """Choose how the signed-in member gets each kind of notification."""
    preferences = list_preferences(request.membership)
    form = PreferencesForm(request.POST if request.method == "POST" else None, preferences=preferences)
    if request.method == "POST" and form.is_valid():
        save_preferences(request.membership, form.cleaned_data)
        messages.success(request, _("Preferences saved."))
        return redirect("notifications:preferences", request.workspace.slug)
    status = 422 if form.errors else 200
    return render(request, "personas/notifications/preferences.html", {"form": form}, status=status)


def get_own_notification(request: WorkspaceRequest, key: int) -> Notification:
    """Return a notification of the signed-in member. Those of other members get 404."""
    rows = Notification.objects.in_workspace(request.workspace).filter(member=request.membership)
    return get_object_or_404(rows.select_related("event"), pk=key)


urls = (
    [
        path("", index, name="list"),
        path("live/", live_notifications, name="live"),
        path("bell/", live_bell, name="bell"),
        path("read/", read_all_view, name="read-all"),
        path("preferences/", edit_preferences, name="preferences"),
        path("<int:key>/open/", open_notification_view, name="open"),
        path("<int:key>/read/", read_notification_view, name="read"),
    ],
    "notifications",
)
