"""Live validation of a skill draft: errors, missing fields, scanner findings, and what a model sees."""

from dataclasses import dataclass, replace

from django.core.exceptions import ValidationError
from django.forms import BoundField

from skills.library.forms import SkillForm
from skills.models import Skill
from skills.record_scan import FieldFinding, scan_record
from skills.scanning import mark_hidden_characters


@dataclass(frozen=True)
class FieldCheck:
    """One form field with the validation errors that saving would raise."""

    name: str
    label: str
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class SkillCheck:
    """The validation result of an unsaved skill."""

    # Name and description with hidden characters made visible.
    name: str
    description: str
    is_hidden_from_models: bool
    findings: tuple[FieldFinding, ...]
    fields: tuple[FieldCheck, ...] = ()
    # Labels of required fields that are still empty. These fields have no messages in `fields`.
    missing_fields: tuple[str, ...] = ()
    form_errors: tuple[str, ...] = ()

    @property
    def invalid_fields(self) -> list[FieldCheck]:
        return [field for field in self.fields if field.messages]

    @property
    def is_sound(self) -> bool:
        return not self.invalid_fields and not self.missing_fields and not self.form_errors


def build_skill_check(skill: Skill) -> SkillCheck:
    """Scan a skill for findings, without form validation."""
    return SkillCheck(
        mark_hidden_characters(skill.name),
        mark_hidden_characters(skill.description),
        skill.disable_model_invocation,
        tuple(scan_record(skill)),
    )


def build_form_check(form: SkillForm) -> SkillCheck:
    """Check the submitted form with the same validation that saving uses. Nothing is saved."""
    skill = form.validate_draft()
    errors = form.errors.as_data()
    fields = [bound for group in form.groups() for bound in group["fields"]]
    missing = {bound.name for bound in fields if has_required_error(errors.get(bound.name, []))}
    return replace(
        build_skill_check(skill),
        fields=tuple([build_field_check(bound, has_messages=bound.name not in missing) for bound in fields]),
        missing_fields=tuple([str(bound.label) for bound in fields if bound.name in missing]),
        form_errors=tuple(map(str, form.non_field_errors())),
    )


def build_field_check(bound: BoundField, *, has_messages: bool) -> FieldCheck:
    messages = tuple(map(str, bound.errors)) if has_messages else ()
    return FieldCheck(bound.name, str(bound.label), messages)


def has_required_error(errors: list[ValidationError]) -> bool:
    return any(error.code == "required" for error in errors)
