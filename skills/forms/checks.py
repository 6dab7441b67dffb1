"""What a person hears while typing a skill: what is wrong, what is missing, what a model would see."""

from dataclasses import dataclass, field

from skills.forms.skills import SkillForm
from skills.scanning import visible
from skills.typed_text import Flag, flags_in


@dataclass(frozen=True)
class FieldCheck:
    """One field with what saving would say of it now."""

    name: str
    label: str
    messages: tuple[str, ...] = ()


@dataclass(frozen=True)
class Check:
    """A draft, looked at but not kept."""

    fields: tuple[FieldCheck, ...]
    # Not wrong, only not there yet.
    missing: tuple[str, ...]
    general: tuple[str, ...]
    # With hidden characters spelt out.
    name: str
    description: str
    is_for_people_only: bool
    flags: tuple[Flag, ...] = field(default=())

    @property
    def wrong(self) -> list[FieldCheck]:
        return [one for one in self.fields if one.messages]

    @property
    def is_sound(self) -> bool:
        return not self.wrong and not self.missing and not self.general


def check_of(form: SkillForm) -> Check:
    """By the rules of saving, since those very rules are asked."""
    skill = form.check()
    said = form.errors.as_data()
    fields = [bound for group in form.groups() for bound in group["fields"]]
    wanting = {bound.name for bound in fields if is_wanting(said.get(bound.name, []))}
    return Check(
        fields=tuple(
            FieldCheck(
                bound.name, str(bound.label), () if bound.name in wanting else tuple(map(str, bound.errors))
            )
            for bound in fields
        ),
        missing=tuple(str(bound.label) for bound in fields if bound.name in wanting),
        general=tuple(map(str, form.non_field_errors())),
        name=visible(skill.name),
        description=visible(skill.description),
        is_for_people_only=skill.disable_model_invocation,
        flags=tuple(flags_in(skill)),
    )


def is_wanting(errors: list[object]) -> bool:
    return any(getattr(error, "code", "") == "required" for error in errors)
