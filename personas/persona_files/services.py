"""Convert records to IDENTITY.md, SOUL.md and USER.md, and back."""

from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _

from core.text.front_matter import FrontMatterError
from personas.errors import InvalidInput
from personas.models import Identity, Named, Soul, UserProfile
from personas.persona_files.format import (
    IdentityFile,
    UserFile,
    parse_identity,
    parse_soul,
    parse_user,
    render_identity,
    render_soul,
    render_user,
)


def parse_persona_file(model: type[Named], text: str) -> dict[str, Any]:
    """Parse a Markdown file and return field values for the model. Raise InvalidInput with all problems."""
    try:
        if model is Identity:
            return get_field_values(parse_identity(text))
        if model is UserProfile:
            return get_field_values(parse_user(text))
        return {"text": parse_soul(text)}
    except FrontMatterError as error:
        raise InvalidInput(
            {
                "text": [
                    _("Line %(line)s: %(message)s") % {"line": problem.line, "message": problem.message}
                    for problem in error.problems
                ]
            }
        ) from error


def render_persona_file(record: Named) -> str:
    """Render an identity, soul or user profile as IDENTITY.md, SOUL.md or USER.md."""
    if isinstance(record, Identity):
        return render_identity(record.as_file())
    if isinstance(record, UserProfile):
        return render_user(record.as_file())
    if isinstance(record, Soul):
        return render_soul(record.text)
    raise TypeError(f"{record.kind} has no file form.")


def get_field_values(file: IdentityFile | UserFile) -> dict[str, Any]:
    """Return the values of a file by field. The `name` in a file is the name in prompts."""
    values = asdict(file)
    return {"display_name": values.pop("name"), **values}
