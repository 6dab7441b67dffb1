"""Whom an agent speaks to."""

from django.core.exceptions import ValidationError

from personas.models.fields import LineField, ProseField
from personas.models.named import Named
from personas.persona_files import check_extra
from personas.timezones import refuse_unknown_timezone


class UserProfile(Named):
    """The person an agent serves; not an account. USER.md in and out."""

    kind = "user_profile"
    content = ("label", "name", "timezone", "location", "notes", "extra")

    name = LineField(max_length=80, blank=True)
    timezone = LineField(max_length=64, blank=True, validators=[refuse_unknown_timezone])
    location = LineField(max_length=120, blank=True)
    notes = ProseField(max_length=20_000, blank=True)
    extra = ProseField("other front matter", max_length=8_000, blank=True)

    def clean(self) -> None:
        super().clean()
        refuse_bad_extra(self.extra)

    def agent_ids(self) -> list[int]:
        return list(self.agents.filter(archived_at=None).order_by("pk").values_list("pk", flat=True))


def refuse_bad_extra(extra: str) -> None:
    """Hold what a person typed as further front matter to the same rules as a file."""
    if problems := check_extra(extra):
        raise ValidationError({"extra": [f"Line {problem.line}: {problem.message}" for problem in problems]})
