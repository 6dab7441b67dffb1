"""Form of user profiles."""

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.timezones import list_timezone_names
from personas.models import UserProfile
from personas.records.forms import RecordForm


class UserProfileForm(RecordForm):
    model = UserProfile
    model_fields = ("name", "display_name", "timezone", "location", "notes", "extra")
    editors = {"notes": "markdown", "extra": "yaml"}
    labels = {"extra": _("Other front matter")}
    help_texts = {
        "name": _("The name shown in lists."),
        "display_name": _("How the agent addresses the person."),
        "notes": _("Habits, preferences and what to be careful about, in Markdown."),
        "extra": _("Other YAML keys from USER.md, kept as written."),
    }
    fieldsets = (
        (
            _("Person"),
            _("The person that the agent works for."),
            ("name", "display_name", "timezone", "location"),
        ),
        (_("Notes"), "", ("notes",)),
        ("USER.md", "", ("extra",)),
    )

    def set_querysets(self) -> None:
        names = [("", gettext("Unknown")), *((name, name) for name in list_timezone_names())]
        self.fields["timezone"] = forms.ChoiceField(choices=names, required=False)
