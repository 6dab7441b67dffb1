"""Forms for workspaces, invitations, roles and user accounts."""

from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from core.timezones import list_timezone_names
from personas.models import ReleasePolicy, User, Workspace
from personas.records.forms import build_model_field, build_review_lift_field
from personas.roles import Role


class WorkspaceForm(forms.Form):
    """Name and slug of a new workspace."""

    name = build_model_field(Workspace, "name", _("Name"))
    slug = build_model_field(Workspace, "slug", _("Slug"))
    slug.help_text = _("If the slug is taken, Dramatis adds a random suffix.")


class WorkspaceSettingsForm(forms.Form):
    """Name of a workspace, defaults of new agents, and what members need to sign in."""

    name = build_model_field(Workspace, "name", _("Name"))
    default_release_policy = build_model_field(
        Workspace, "default_release_policy", _("Release policy for new agents")
    )
    default_release_policy.help_text = _("Existing agents keep their release policy.")
    reason = build_review_lift_field()
    requires_second_factor = build_model_field(
        Workspace, "requires_second_factor", _("Require two-factor authentication")
    )
    requires_second_factor.help_text = _(
        "Members without a second factor must set one up before they can open this workspace. API keys are "
        "not affected."
    )

    def __init__(self, data: Any = None, *, workspace: Workspace) -> None:
        names = ("name", "default_release_policy", "requires_second_factor")
        super().__init__(data, initial={name: getattr(workspace, name) for name in names})
        if workspace.default_release_policy != ReleasePolicy.REVIEWED:
            del self.fields["reason"]


class WorkspaceSlugForm(forms.Form):
    slug = build_model_field(Workspace, "slug", _("Slug"))
    slug.help_text = _(
        "Part of the URL of every page. Links with the old slug are redirected. API keys and bots are "
        "not affected; events and webhooks contain the new slug."
    )


class DeleteWorkspaceForm(forms.Form):
    """The name of the workspace, typed to confirm that it is deleted."""

    name = forms.CharField(label=_("Workspace name"), max_length=80)
    name.widget.attrs |= {"autocomplete": "off", "spellcheck": "false"}

    def __init__(self, *args: Any, workspace_name: str, **more: Any) -> None:
        super().__init__(*args, **more)
        self.workspace_name = workspace_name

    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        if name != self.workspace_name:
            raise forms.ValidationError(
                _("Type “%(name)s” to delete the workspace."), "name", {"name": self.workspace_name}
            )
        return name


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

    def clean_name(self) -> str:
        """Check the value as the model does: a name is one line, because emails contain it."""
        name: str = User._meta.get_field("name").clean(self.cleaned_data["name"], None)
        return name
