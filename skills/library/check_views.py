"""What a person hears while typing a skill: what is wrong, what is missing, what a model would see."""

from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.forms import BoundField

from skills.library.forms import SkillForm
from skills.models import Skill
from skills.record_scan import FieldFinding, scan_record
from skills.scanning import mark_hidden_characters


@dataclass(frozen=True)
class FieldCheck:
    """One field with what saving would say of it now."""

    name: str
    label: str
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class SkillCheck:
    """A draft, looked at but not kept."""

    # With hidden characters spelt out.
    name: str
    description: str
    is_for_people_only: bool
    flags: tuple[FieldFinding, ...]
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


def build_skill_check(skill: Skill) -> SkillCheck:
    """What is to be seen of a skill, whether or not it could be saved."""
    return SkillCheck(
        mark_hidden_characters(skill.name),
        mark_hidden_characters(skill.description),
        skill.disable_model_invocation,
        tuple(scan_record(skill)),
    )


def build_form_check(form: SkillForm) -> SkillCheck:
    """What is to be said of a draft: by the rules of saving, since those very rules are asked."""
    skill = form.check()
    said = form.errors.as_data()
    fields = [bound for group in form.groups() for bound in group["fields"]]
    wanting = {bound.name for bound in fields if has_required_error(said.get(bound.name, []))}
    return replace(
        build_skill_check(skill),
        fields=tuple([build_field_check(bound, is_told=bound.name not in wanting) for bound in fields]),
        missing=tuple([str(bound.label) for bound in fields if bound.name in wanting]),
        general=tuple(map(str, form.non_field_errors())),
    )


def build_field_check(bound: BoundField, *, is_told: bool) -> FieldCheck:
    messages = tuple(map(str, bound.errors)) if is_told else ()
    return FieldCheck(bound.name, str(bound.label), messages)


def has_required_error(errors: list[ValidationError]) -> bool:
    return any(error.code == "required" for error in errors)
