"""Forms to import a file: an upload or pasted text."""

from typing import Any

from django import forms
from django.core.exceptions import NON_FIELD_ERRORS
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.api.request_body import BadJson, parse_json
from personas.errors import InvalidInput

MAX_FILE_SIZE = 256 * 1024


class FileImportForm(forms.Form):
    """Base form with an uploaded file or pasted text; the text of either is in `cleaned_data["text"]`."""

    file = forms.FileField(
        label=gettext_lazy("File"),
        required=False,
        max_length=200,
        help_text=gettext_lazy("At most 256 KiB of UTF-8 text."),
    )
    text = forms.CharField(
        required=False,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 14}),
        label=gettext_lazy("Or paste the text"),
    )

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean() or self.cleaned_data
        if upload := cleaned.get("file"):
            cleaned["text"] = self._decode_upload(upload)
        if not cleaned.get("text", "").strip() and not self.errors:
            self.add_error("file", _("Choose a file or paste its text."))
        return cleaned

    def _decode_upload(self, upload: Any) -> str:
        if upload.size > MAX_FILE_SIZE:
            self.add_error("file", _("This file is larger than 256 KiB. Choose a smaller file."))
            return ""
        try:
            text: str = upload.read().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            self.add_error(
                "file",
                _("This file is not valid UTF-8 (byte %(place)s). Save it as UTF-8.")
                % {"place": error.start + 1},
            )
            return ""
        return text


class PersonaFileImportForm(FileImportForm):
    """Form to import IDENTITY.md, SOUL.md or USER.md, with the label of the new record."""

    label = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=80,
        help_text=gettext_lazy("The name shown in lists."),
    )
    field_order = ("name", "file", "text")


class JsonImportForm(FileImportForm):
    """Form to import a JSON file; the parsed value is in `cleaned_data["data"]`."""

    def clean(self) -> dict[str, Any]:
        cleaned = super().clean()
        if not self.errors:
            try:
                cleaned["data"] = parse_json(cleaned["text"].encode("utf-8", "surrogatepass"))
            except BadJson as error:
                self.add_error("text", _("This JSON cannot be imported. %(reason)s") % {"reason": error})
        return cleaned

    def add_service_errors(self, error: InvalidInput) -> None:
        """Show the errors of the import, each with its path in the file, such as `memories[3].text`."""
        for name, messages in error.errors.items():
            prefix = "" if name == NON_FIELD_ERRORS else f"{format_json_path(name)}: "
            for message in messages:
                self.add_error("text", f"{prefix}{message}")


def format_json_path(name: str) -> str:
    """Return a dotted path such as `memories.3.text` with its indexes in brackets: `memories[3].text`."""
    path = ""
    for part in name.split("."):
        path += f"[{part}]" if part.isdecimal() else f".{part}"
    return path.removeprefix(".")
