"""What a person hears while typing a skill: what is wrong, what is missing, what a model would see."""

from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.forms import BoundField

from skills.library.forms import SkillForm
from skills.models import Skill
from skills.record_scan import Flag, flags_in
from skills.scanning import visible


@dataclass(frozen=True)
class FieldCheck:
    """One field with what saving would say of it now."""

    name: str
    label: str
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """A draft, looked at but not kept."""

    # With hidden characters spelt out.
    name: str
    description: str
    is_for_people_only: bool
    flags: tuple[Flag, ...]
    fields: tuple[FieldCheck, ...] = ()
    # Not wrong, only not there yet.
    missing: tuple[str, ...] = ()
    general: tuple[str, ...] = ()

    @property
    def wrong(self) -> list[FieldCheck]:
        return [one for one in self.fields if one.messages]

    @property
    def is_sound(self) -> bool:
        return not self.wrong and not self.missing and not self.general


def look_at(skill: Skill) -> Check:
    """What is to be seen of a skill, whether or not it could be saved."""
    return Check(
        visible(skill.name),
        visible(skill.description),
        skill.disable_model_invocation,
        tuple(flags_in(skill)),
    )


def check_of(form: SkillForm) -> Check:
    """What is to be said of a draft: by the rules of saving, since those very rules are asked."""
    skill = form.check()
    said = form.errors.as_data()
    fields = [bound for group in form.groups() for bound in group["fields"]]
    wanting = {bound.name for bound in fields if is_wanting(said.get(bound.name, []))}
    return replace(
        look_at(skill),
        fields=tuple([checked(bound, is_told=bound.name not in wanting) for bound in fields]),
        missing=tuple([str(bound.label) for bound in fields if bound.name in wanting]),
        general=tuple(map(str, form.non_field_errors())),
    )


def checked(bound: BoundField, *, is_told: bool) -> FieldCheck:
    messages = tuple(map(str, bound.errors)) if is_told else ()
    return FieldCheck(bound.name, str(bound.label), messages)


def is_wanting(errors: list[ValidationError]) -> bool:
    return any(error.code == "required" for error in errors)
