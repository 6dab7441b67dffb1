"""Forms for workspaces, invitations, roles and user accounts."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.timezones import list_timezone_names
from personas.models import User, Workspace
from personas.records.forms import build_model_field
from personas.roles import Role


class WorkspaceForm(forms.Form):
    """Name and slug of a new workspace."""

    name = build_model_field(Workspace, "name", _("Name"))
    slug = build_model_field(Workspace, "slug", _("Slug"))
    slug.help_text = _("If the slug is taken, a few letters are added.")


class RenameWorkspaceForm(forms.Form):
    name = build_model_field(Workspace, "name", _("Name"))


class InviteForm(forms.Form):
    email = forms.EmailField(label=_("Email address"), max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)


class AccountForm(forms.Form):
    """Display name and timezone of a user."""

    name = build_model_field(User, "name", _("Name"))
    timezone = forms.ChoiceField(
        label=_("Time zone"), choices=lambda: [(name, name) for name in list_timezone_names()]
    )
