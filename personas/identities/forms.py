"""Form of identities."""

from django.utils.translation import gettext_lazy as _

from personas.models import Identity
from personas.records.forms import RecordForm


class IdentityForm(RecordForm):
    model = Identity
    model_fields = ("name", "display_name", "emoji", "creature", "vibe", "text", "extra")
    editors = {"text": "markdown", "extra": "yaml"}
    labels = {"text": _("Free text"), "creature": _("Creature"), "extra": _("Other front matter")}
    help_texts = {
        "name": _("The name your team sees in lists."),
        "display_name": _("What the agent calls itself."),
        "emoji": _("Follows the display name: “Your name is Mira 🦊.”"),
        "creature": _("Completes “You are a …”."),
        "vibe": _("Completes “Your vibe: …”."),
        "text": _("Markdown, for everything that does not fit in the fields above."),
        "extra": _("Other YAML keys from IDENTITY.md, kept as written."),
    }
    fieldsets = (
        (
            _("Identity"),
            _("Who the agent is, in a few words."),
            ("name", "display_name", "emoji", "creature", "vibe"),
        ),
        (_("Description"), "", ("text",)),
        ("IDENTITY.md", "", ("extra",)),
    )
