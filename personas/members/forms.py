"""Workspaces, invitations and roles."""

from django import forms
from django.utils.translation import gettext_lazy as _

from core.timezones import timezone_names
from personas.models import User, Workspace
from personas.records.forms import model_field
from personas.roles import Role


class WorkspaceForm(forms.Form):
    """Name and address of a new workspace."""

    name = model_field(Workspace, "name", _("Name"))
    slug = model_field(Workspace, "slug", _("Address"))


class RenameForm(forms.Form):
    name = model_field(Workspace, "name", _("Name"))


class InviteForm(forms.Form):
    email = forms.EmailField(label=_("E-mail address"), max_length=254)
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(label=_("Role"), choices=Role.choices)


class PersonForm(forms.Form):
    """How a person is shown, and in which timezone they read."""

    name = model_field(User, "name", _("Name"))
    timezone = forms.ChoiceField(
        label=_("Timezone"), choices=lambda: [(name, name) for name in timezone_names()]
    )
