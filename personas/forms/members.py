"""Workspaces, invitations and roles."""

from django import forms
from django.forms.models import fields_for_model

from personas.forms.base import in_our_words
from personas.models import User, Workspace
from personas.roles import Role
from personas.timezones import timezone_names


class WorkspaceForm(forms.Form):
    """Name and address of a new workspace."""

    name = fields_for_model(Workspace, fields=["name"])["name"]
    slug = in_our_words(fields_for_model(Workspace, fields=["slug"], labels={"slug": "Address"})["slug"])


class RenameForm(forms.Form):
    name = fields_for_model(Workspace, fields=["name"])["name"]


class InviteForm(forms.Form):
    email = forms.EmailField(label="E-mail address", max_length=254)
    role = forms.ChoiceField(choices=Role.choices, initial=Role.VIEWER)


class RoleForm(forms.Form):
    role = forms.ChoiceField(choices=Role.choices)


class PersonForm(forms.Form):
    """How a person is shown, and in which timezone they read."""

    name = fields_for_model(User, fields=["name"])["name"]
    timezone = forms.ChoiceField(choices=lambda: [(name, name) for name in timezone_names()])
