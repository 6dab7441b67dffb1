"""Forms for a source and for the upload of a zip archive."""

from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core.text.lists import format_short_list
from core.text.sizes import format_size
from personas.records.forms import RecordForm
from skills.discovery.harnesses import HARNESSES, DiscoveryCaps
from skills.models import AllowedFolder, Source, SourceKind
from skills.rule_sets.descriptions import describe_harness_files
from skills.sources.models import get_default_approval
from skills.sources.selectors import list_allowed_folders, list_lost_readers

MAX_ZIP_BYTES = DiscoveryCaps().total_bytes
FOLDER_FIELDS = ("allowed_folder", "folder", "refresh_minutes", "allow_hard_links")


class AllowedFolderField(forms.ModelChoiceField):  # type: ignore[type-arg]  # generic only in the stubs
    """A choice between the folders that operators granted to this workspace."""

    def label_from_instance(self, obj: AllowedFolder) -> str:
        return f"{obj.path} ({obj.note})" if obj.note else obj.path


def get_harness_choices() -> list[tuple[str, str]]:
    """Return the choices of rule sets. Called for each form, because the labels depend on the language."""
    return [(name, f"{name}: {describe_harness_files(harness)}") for name, harness in HARNESSES.items()]


class SourceForm(RecordForm):
    model = Source
    model_fields = ("name", "folder", "location", "approval", "allow_hard_links")
    fixed = ("source_kind",)
    widgets = {"approval": forms.RadioSelect}
    labels = {
        "folder": _("Subfolder"),
        "location": _("Location for bots"),
        "approval": _("New revisions"),
        "allow_hard_links": _("Read files with several hard links"),
    }
    help_texts = {
        "name": _("The name shown in lists."),
        "folder": _("A path such as teams/support. Defaults to the whole allowed folder."),
        "location": _(
            "The absolute path of the source's root on the bots' machine, for example "
            "/home/user/project. File paths in prompts start with it. If empty, they "
            "are relative to the root."
        ),
        "approval": _(
            "With automatic approval, changes reach prompts before anyone has "
            "reviewed them. The inbox shows them as “Live, not reviewed”. Files with "
            "findings always go to quarantine."
        ),
        "allow_hard_links": _(
            "A file with several hard links can also exist outside the folder. Leave this off unless "
            "you know who creates the links."
        ),
    }
    fieldsets = (
        (_("Source"), "", ("name", "source_kind")),
        (
            _("Folder"),
            _("What Dramatis reads, and how often. It never reads files outside this folder."),
            FOLDER_FIELDS,
        ),
        (_("Bots"), _("Where bots find this source's files."), ("location",)),
        (
            _("Discovery rules"),
            _("Which files are context files or skills, and how changes are approved."),
            ("harnesses", "approval"),
        ),
    )

    source_kind = forms.ChoiceField(
        label=_("Kind"), choices=SourceKind.choices, widget=forms.RadioSelect, initial=SourceKind.FOLDER
    )
    allowed_folder = AllowedFolderField(
        queryset=None,
        label=_("Allowed folder"),
        empty_label=_("Choose a folder"),
        error_messages={"required": _("Choose an allowed folder.")},
    )
    refresh_minutes = forms.IntegerField(
        label=_("Refresh interval (minutes)"),
        required=False,
        min_value=1,
        max_value=7 * 24 * 60,
        initial=15,
        help_text=_("Leave empty to refresh only on request."),
    )
    harnesses = forms.MultipleChoiceField(
        label=_("Discovery rules"),
        choices=get_harness_choices,
        widget=forms.CheckboxSelectMultiple,
        initial=list(HARNESSES),
        error_messages={"required": _("Select at least one set of discovery rules.")},
        help_text=_("Each agent that reads this source uses one of these sets."),
    )

    record: Source | None

    def set_querysets(self) -> None:
        allowed_folders = list(list_allowed_folders(self.workspace))
        self.has_allowed_folders = bool(allowed_folders)
        folder_field: Any = self.fields["allowed_folder"]
        folder_field.queryset = list_allowed_folders(self.workspace)
        folder_field.required = self.data.get("source_kind") != SourceKind.PUSHED
        if self.record is None:
            approval: Any = self.fields["approval"]
            approval.required, approval.initial = False, get_default_approval()
        if self.record is None and len(allowed_folders) == 1:
            self.initial.setdefault("allowed_folder", allowed_folders[0])
        if self.record is None and not allowed_folders:
            self.initial.setdefault("source_kind", SourceKind.PUSHED)
        if self.record is not None and self.record.source_kind == SourceKind.PUSHED:
            for name in FOLDER_FIELDS:
                del self.fields[name]

    def clean_harnesses(self) -> list[str]:
        """Reject a selection that leaves out a rule set that an agent uses with this source.

        The files that only this rule set matches would no longer be discovered.
        """
        harnesses: list[str] = self.cleaned_data["harnesses"]
        lost_readers = list_lost_readers(self.record, harnesses) if self.record else []
        if lost_readers:
            names = format_short_list([f"{reader.agent} ({reader.harness})" for reader in lost_readers])
            raise forms.ValidationError(
                gettext(
                    "Agents still use the rules that you removed: %(agents)s. Choose other "
                    "rules for these agents first."
                )
                % {"agents": names}
            )
        return harnesses

    def values(self) -> dict[str, Any]:
        """Return the values to save. For pushed files, the folder fields are empty whatever was submitted."""
        values = super().values()
        if values.get("source_kind") == SourceKind.PUSHED:
            values |= {
                "allowed_folder": None,
                "folder": "",
                "refresh_minutes": None,
                "allow_hard_links": False,
            }
        if not values.get("approval"):
            values.pop("approval", None)
        return values


class UploadForm(forms.Form):
    """Upload of a zip archive. Only its size is checked here; `read_zip` checks everything else."""

    archive = forms.FileField(
        label=_("Zip archive"),
        max_length=200,
        error_messages={"required": _("Choose a zip archive."), "empty": _("This file is empty.")},
        widget=forms.FileInput(attrs={"accept": ".zip,application/zip"}),
    )
    replace = forms.BooleanField(
        required=False,
        label=_("Delete files that are not in this upload"),
        help_text=_("Otherwise, these files are kept. Earlier revisions are always kept."),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        help_text = gettext("At most %(size)s. Paths are relative to the source's root.")
        self.fields["archive"].help_text = help_text % {"size": format_size(MAX_ZIP_BYTES)}

    def clean_archive(self) -> bytes:
        upload: Any = self.cleaned_data["archive"]
        if upload.size > MAX_ZIP_BYTES:
            raise forms.ValidationError(
                gettext("The file is larger than %(limit)s. Choose a smaller one.")
                % {"limit": format_size(MAX_ZIP_BYTES)}
            )
        content: bytes = upload.read()
        return content
