"""Model of user profiles: the person an agent serves."""

from collections.abc import Callable
from typing import Any

from django.core.exceptions import ValidationError
from django.db import models
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.db.fields import LineField, ProseField
from core.text.front_matter import FrontMatterError
from core.timezones import validate_timezone
from personas.persona_files.format import USER_KEYS, UserFile, find_extra_problems, render_user
from personas.records.models import Named


class UserProfile(Named):
    """The person an agent serves, who needs no account here; imported from and exported to USER.md."""

    kind = "user_profile"
    content = ("name", "display_name", "timezone", "location", "notes", "extra")
    usage_fields = frozenset()

    display_name = LineField(max_length=80, blank=True)
    timezone = LineField(max_length=64, blank=True, validators=[validate_timezone])
    location = LineField(max_length=120, blank=True)
    notes = ProseField(max_length=20_000, blank=True)
    extra = ProseField(gettext_lazy("other front matter"), max_length=8_000, blank=True)

    def clean(self) -> None:
        super().clean()
        validate_extra_front_matter(self.extra, USER_KEYS, lambda: render_user(self.as_file()))

    def as_file(self) -> UserFile:
        return UserFile(self.display_name, self.timezone, self.location, self.notes, self.extra)

    def query_agent_ids(self) -> "models.QuerySet[Any, int]":
        return self.agents.filter(archived_at=None).values_list("pk", flat=True)


def validate_extra_front_matter(extra: str, known: tuple[str, ...], write: Callable[[], str]) -> None:
    """Raise ValidationError unless `extra` is valid front matter without the `known` keys.

    `write` renders the complete file. It raises FrontMatterError if the file could not be parsed again.
    """
    problems = find_extra_problems(extra, known)
    if not problems:
        try:
            write()
        except FrontMatterError as error:
            problems = error.problems
    if problems:
        raise ValidationError(
            {
                "extra": [
                    _("Line %(line)s: %(message)s") % {"line": problem.line, "message": problem.message}
                    for problem in problems
                ]
            }
        )
