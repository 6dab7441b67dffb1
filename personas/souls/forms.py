"""Form of souls."""

from django.utils.translation import gettext_lazy as _

from personas.models import Soul
from personas.records.forms import RecordForm


class SoulForm(RecordForm):
    model = Soul
    model_fields = ("name", "text")
    editors = {"text": "markdown"}
    help_texts = {
        "name": _("The name your team sees in lists."),
        "text": _("Markdown. If empty, agents use the built-in default soul."),
    }
    fieldsets = ((_("Soul"), _("A personality that agents can share."), ("name", "text")),)
