"""Forms to create and rotate API keys."""

from datetime import UTC, date, datetime, time, timedelta
from typing import Any, cast

from django import forms
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.api_keys.descriptions import ACTIVATE_HELP, VERB_CHOICES, VERB_HELP
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.scopes import (
    ACTIVATE,
    DEFAULT_VERBS,
    VERBS_BY_KIND,
    WRITE,
    describe_forbidden_verb,
    get_key_verbs,
    list_scope_labels,
)
from personas.api_keys.services import DEFAULT_LIFETIME, MAX_LIFETIME
from personas.errors import InvalidInput
from personas.models import Agent, ApiKey, Channel, Workspace
from personas.records.forms import StrOrPromise, build_model_field

KIND_CHOICES = [
    (BOT, _("Bot")),
    (ADMIN, _("Admin")),
]
KIND_HELP = _(
    "A bot key belongs to the workspace. An admin key acts on your behalf: it "
    "never has more permissions than you, and it stops working when you leave "
    "the workspace."
)
AGENT_LIMIT_HELP = _(
    "The key can access only these agents and their memories, "
    "responsibilities and tasks. It cannot access shared records such as "
    "souls and tools."
)
CHANNEL_LIMIT_HELP = _(
    "The key can read only these channels and the prompts on them. It cannot "
    "write agents, memories or tasks, because they also affect other channels."
)
LABEL_LIMIT_HELP = _(
    "The key can fetch and move only these labels. It cannot write records, "
    "because a change also affects other labels. Select “latest” to let a bot fetch unreleased versions of "
    "agents with reviewed releases."
)
OVERLAP_CHOICES = [
    (0, _("No overlap")),
    (1, _("1 hour")),
    (24, _("24 hours")),
    (72, _("3 days")),
    (168, _("7 days")),
]


ACCESS_CHOICES = [("all", _("All, including ones added later")), ("selected", _("Only selected"))]
# The dimensions in which a key can be limited.
SCOPE_NAMES = ("agents", "channels", "labels")


class AccessField(forms.ChoiceField):
    """Whether a key is limited to selected agents, channels or labels. Nothing selected is never "all"."""

    # Not marked as optional: the form requires this field, but checks it together with the selection.
    is_required_later = True

    def __init__(self, label: StrOrPromise, *, initial: str = "") -> None:
        super().__init__(
            label=cast("str", label),
            choices=ACCESS_CHOICES,
            initial=initial,
            required=False,
            widget=forms.RadioSelect,
        )


class ScopeChoicesField(forms.MultipleChoiceField):
    """Checkboxes for the agents, channels or labels that a key is limited to."""

    widget = forms.CheckboxSelectMultiple

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(required=False, **kwargs)


class KeyExpiryForm(forms.Form):
    """Base form with the expiry date of a key. The key is valid until the end of that day."""

    expires_at = forms.DateField(label=_("Expires on"))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["expires_at"].initial = timezone.localdate() + DEFAULT_LIFETIME
        help_text = gettext("In your time zone, at most %(days)s days from now.") % {
            "days": MAX_LIFETIME.days
        }
        self.fields["expires_at"].help_text = help_text

    def clean_expires_at(self) -> datetime:
        day: date = self.cleaned_data["expires_at"]
        today = timezone.localdate()
        if day < today:
            raise forms.ValidationError(gettext("Choose a date in the future."))
        if day > today + MAX_LIFETIME:
            raise forms.ValidationError(
                gettext("A key can be valid for at most %(days)s days.") % {"days": MAX_LIFETIME.days}
            )
        end = datetime.combine(day, time(23, 59), tzinfo=timezone.get_current_timezone())
        # Stay one minute below the maximum lifetime, which the service checks again.
        return min(end, timezone.now() + MAX_LIFETIME - timedelta(minutes=1)).astimezone(UTC)

    def add_service_errors(self, error: InvalidInput) -> None:
        """Show the errors that a service raised, each at the form field that it refers to."""
        for name, messages in error.errors.items():
            self.add_error(name if name in self.fields else None, list(messages))


class KeyForm(KeyExpiryForm):
    """Form of a new API key. Its scopes are chosen from the agents, channels and labels of the workspace."""

    name = build_model_field(ApiKey, "name", _("Name"))
    kind = forms.ChoiceField(
        label=_("Kind"), choices=KIND_CHOICES, initial=BOT, widget=forms.RadioSelect, help_text=KIND_HELP
    )
    verbs = forms.MultipleChoiceField(
        label=_("Permissions"),
        choices=VERB_CHOICES,
        initial=list(DEFAULT_VERBS),
        help_text=VERB_HELP,
        widget=forms.CheckboxSelectMultiple,
        error_messages={"required": _("Select at least one permission.")},
    )
    can_activate = forms.BooleanField(
        label=_("Write active memories without approval"), required=False, help_text=ACTIVATE_HELP
    )
    agents_access = AccessField(_("Agents"))
    agents = ScopeChoicesField(label=_("Selected agents"), help_text=AGENT_LIMIT_HELP)
    channels_access = AccessField(_("Channels"), initial="all")
    channels = ScopeChoicesField(label=_("Selected channels"), help_text=CHANNEL_LIMIT_HELP)
    labels_access = AccessField(_("Labels"), initial="all")
    labels = ScopeChoicesField(label=_("Selected labels"), help_text=LABEL_LIMIT_HELP)

    def __init__(self, *args: Any, workspace: Workspace, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].help_text = gettext("Shown in the ledger and the audit log.")
        self._set_choices("agents", list_scope_choices(Agent, workspace))
        self._set_choices("channels", list_scope_choices(Channel, workspace))
        self._set_choices("labels", [(name, name) for name in list_scope_labels(workspace)])

    def clean(self) -> dict[str, Any]:
        values = super().clean() or {}
        for name in SCOPE_NAMES:
            self.check_access(name, values.get(f"{name}_access", ""), values.get(name, []))
        allowed = VERBS_BY_KIND.get(values.get("kind", ""), ())
        if "kind" in values and (beyond := [verb for verb in values.get("verbs", ()) if verb not in allowed]):
            self.add_error("verbs", describe_forbidden_verb(beyond[0], values["kind"]))
        if values.get("can_activate") and "kind" in values:
            if values["kind"] != BOT:
                self.add_error("can_activate", describe_forbidden_verb(ACTIVATE, values["kind"]))
            elif WRITE not in values.get("verbs", ()):
                self.add_error(
                    "can_activate", gettext("Also select “Write”. Without it, the bot cannot write memories.")
                )
        return values

    def check_access(self, name: str, access: str, selected: list[str]) -> None:
        """Add an error unless the selection agrees with the choice between all and selected ones."""
        if access == "all" and selected:
            self.add_error(
                name,
                gettext(
                    "You chose “All” but also selected items. Choose “Only selected”, or clear the selection."
                ),
            )
        elif access == "selected" and not selected:
            self.add_error(name, gettext("Select at least one item."))
        elif not access and not selected:
            self.add_error(
                f"{name}_access", gettext("Choose “All, including ones added later” or “Only selected”.")
            )

    def scopes(self) -> dict[str, list[str]]:
        """Return the scopes of the new key. A dimension in which the key is not limited is left out."""
        scopes = {name: self.cleaned_data[name] for name in ("verbs", "agents", "channels", "labels")}
        if self.cleaned_data["can_activate"]:
            scopes["verbs"] = [*scopes["verbs"], ACTIVATE]
        if set(scopes["verbs"]) == get_key_verbs({}, self.cleaned_data["kind"]):
            scopes.pop("verbs")
        return {name: values for name, values in scopes.items() if values}

    def _set_choices(self, name: str, choices: list[tuple[str, str]]) -> None:
        field = self.fields[name]
        assert isinstance(field, ScopeChoicesField)  # noqa: S101  # for the type checker
        field.choices = choices


class RotateKeyForm(KeyExpiryForm):
    """Form to rotate a key: name and expiry date of the new key, and how long the old key stays valid."""

    name = build_model_field(ApiKey, "name", _("Name"))
    hours = forms.TypedChoiceField(
        label=_("Overlap with the old key"),
        choices=OVERLAP_CHOICES,
        initial=24,
        coerce=int,
        help_text=_("Allow enough time to replace the old key in every bot."),
    )
    field_order = ("name", "hours", "expires_at")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].label = gettext("Name of the new key")


def list_scope_choices(model: type[Agent | Channel], workspace: Workspace) -> list[tuple[str, str]]:
    rows = model.objects.in_workspace(workspace).filter(archived_at=None).order_by("name", "pk")
    return [(slug, f"{name} ({slug})") for slug, name in rows.values_list("slug", "name")]
