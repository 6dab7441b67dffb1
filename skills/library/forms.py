"""Forms to edit a skill and to import a SKILL.md."""

from copy import copy
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from personas.errors import InvalidInput
from personas.records.forms import RecordForm, RecordMultipleChoiceField
from personas.selectors import list_agents
from skills.library import metadata as skill_format_metadata
from skills.models import Skill
from skills.skill_format.decode import MAX_FILE_BYTES


class SkillForm(RecordForm):
    model = Skill
    model_fields = (
        "name",
        "description",
        "body",
        "license",
        "compatibility",
        "allowed_tools",
        "disable_model_invocation",
        "for_all_agents",
    )
    editors = {"body": "markdown"}
    labels = {
        "body": _("Instructions"),
        "disable_model_invocation": _("Only people can start this skill"),
        "for_all_agents": _("All agents"),
    }
    help_texts = {
        "name": _("Lowercase letters, digits and hyphens, for example release-notes."),
        "description": _(
            "What the skill does and when to use it. This is all a model sees before it loads the skill."
        ),
        "body": _("Markdown, loaded only when the skill is used."),
        "allowed_tools": _("Tool names separated by spaces."),
        "disable_model_invocation": _("Hides the skill from the list that models choose from."),
    }
    fieldsets = (
        (_("Skill"), "", ("name", "description", "body")),
        (_("Agents"), "", ("for_all_agents", "agents")),
        (
            _("License and usage"),
            "",
            ("license", "compatibility", "allowed_tools", "metadata", "disable_model_invocation"),
        ),
    )

    agents = RecordMultipleChoiceField(label=_("Selected agents"))
    metadata = forms.CharField(
        required=False,
        max_length=skill_format_metadata.MAX_METADATA_LENGTH,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=_("One “key: value” pair per line."),
    )

    record: Skill | None

    def initial_values(self) -> dict[str, Any]:
        if self.record is None:
            return {}
        metadata = skill_format_metadata.format_metadata(self.record.metadata)
        agents = self.record.snapshot()["agents"]
        return super().initial_values() | {"metadata": metadata, "agents": agents}

    def set_querysets(self) -> None:
        self.set_choices(
            "agents", list_agents(self.workspace).prefetch_related(None), self.initial.get("agents")
        )

    def clean_metadata(self) -> dict[str, str]:
        try:
            return skill_format_metadata.parse_metadata(self.cleaned_data["metadata"])
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error

    # --- live validation --------------------------------------------------------------------------------

    def build_draft(self) -> Skill:
        """Return an unsaved skill with the submitted values, including those that fail validation."""
        skill = copy(self.record) if self.record else Skill(workspace=self.workspace)
        fields = [(name, self.fields[name]) for name in self.model_fields]
        typed = {
            name: str(self[name].value() or "")[: field.max_length]
            for name, field in fields
            if isinstance(field, forms.CharField)
        }
        skill.set_values(typed | self.values())
        return skill

    def validate_draft(self) -> Skill:
        """Run form and model validation, add all errors to the form, and return the unsaved skill."""
        invalid_fields = set(self.errors)
        skill = self.build_draft()
        try:
            skill.full_clean()
        except ValidationError as error:
            errors = InvalidInput.from_validation(error).errors
            # Leave out fields that already have an error from form validation.
            self.add_service_errors(
                InvalidInput(
                    {name: messages for name, messages in errors.items() if name not in invalid_fields}
                )
            )
        return skill


class SkillImportForm(forms.Form):
    """A SKILL.md as an upload or as pasted text."""

    file = forms.FileField(
        label=_("File"), required=False, max_length=200, help_text=_("At most 256 KiB of UTF-8 text.")
    )
    text = forms.CharField(
        required=False, strip=False, widget=forms.Textarea(attrs={"rows": 18}), label=_("Or paste the text")
    )

    def clean_file(self) -> Any:
        upload = self.cleaned_data["file"]
        if upload and upload.size > MAX_FILE_BYTES:
            raise forms.ValidationError(gettext("This file is larger than 256 KiB. Choose a smaller file."))
        return upload

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if not cleaned.get("file") and not cleaned.get("text", "").strip() and not self.errors:
            self.add_error("file", gettext("Choose a file or paste its text."))
        return cleaned

    def get_source(self) -> bytes | str:
        upload = self.cleaned_data.get("file")
        return upload.read() if upload else str(self.cleaned_data["text"])

    def set_text(self, text: str) -> None:
        """Put the text of the uploaded file into the text box, so that the user can correct it there.

        The file input itself is empty when the form is shown again, because browsers do not refill it.
        """
        self.data = {**self.data, "text": text}
