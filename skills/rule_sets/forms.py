"""Form for the rules of a harness: a checkbox per kind of file, and the rules as JSON.

Errors in the rules give their position as a JSON pointer.
"""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from core.text.strict_json import DuplicateKeyError, parse_strict_json
from skills.discovery.harness_json import InvalidHarness, harness_to_json, parse_harness
from skills.rule_sets.descriptions import KIND_LABELS
from skills.rule_sets.selectors import HarnessRules

MAX_RULES_LENGTH = 60_000
# Keys that the JSON text must not contain: `name` comes from the URL, `off` from the checkboxes.
EXCLUDED_KEYS = ("name", "off")


class RuleSetForm(forms.Form):
    """Edit the rules of one harness. `values()` returns them as `RuleSet.rules` stores them."""

    revision = forms.IntegerField(widget=forms.HiddenInput, required=False, min_value=0)
    kinds = forms.MultipleChoiceField(
        label=gettext_lazy("Kinds of files to read"),
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=gettext_lazy("Kinds that are not selected are skipped."),
    )
    rules = forms.CharField(
        label=gettext_lazy("Rules"),
        max_length=MAX_RULES_LENGTH,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "spellcheck": "false", "data-editor": "yaml"}),
        help_text=gettext_lazy(
            "JSON. Each rule has a kind, its paths in order, “at” (each: in every "
            "folder from the root down to the working directory; project: only in the "
            "working directory) and “take” (all: all files; first: the first that "
            "exists). ~/ is the global folder. Limits can be lowered but not raised; "
            "file_bytes and total_bytes are in bytes."
        ),
    )

    def __init__(self, data: Any = None, *, harness_rules: HarnessRules) -> None:
        self.harness_rules = harness_rules
        initial = {
            "revision": harness_rules.rule_set.revision if harness_rules.rule_set else 0,
            "kinds": [kind for kind in harness_rules.kinds if kind not in harness_rules.harness.off],
            "rules": format_editable_rules(harness_to_json(harness_rules.harness)),
        }
        super().__init__(data, initial=initial)
        kinds_field: Any = self.fields["kinds"]
        kinds_field.choices = [(kind, KIND_LABELS[kind]) for kind in harness_rules.kinds]

    def clean_rules(self) -> dict[str, Any]:
        data = parse_rules_json(self.cleaned_data["rules"])
        if not isinstance(data, dict):
            raise forms.ValidationError("/: " + _("Expected an object."))
        problems = [f"/{key}: " + _("Unknown field.") for key in EXCLUDED_KEYS if key in data]
        rules = {key: value for key, value in data.items() if key not in EXCLUDED_KEYS}
        try:
            parse_harness({"name": self.harness_rules.name} | rules)
        except InvalidHarness as error:
            problems += [f"{pointer or '/'}: {message}" for pointer, message in error.problems]
        if problems:
            raise forms.ValidationError(problems)
        return rules

    def values(self) -> dict[str, Any]:
        """Return the rules with all defaults filled in, so that equivalent rules give the same JSON."""
        off = [kind for kind in self.harness_rules.kinds if kind not in self.cleaned_data["kinds"]]
        data = {"name": self.harness_rules.name, "off": off} | self.cleaned_data["rules"]
        return harness_to_json(parse_harness(data))


def format_editable_rules(data: dict[str, Any]) -> str:
    """Format the rules for the text area: indented JSON, without the keys in EXCLUDED_KEYS."""
    editable = {key: value for key, value in data.items() if key not in EXCLUDED_KEYS}
    return json.dumps(editable, indent=2, ensure_ascii=False)


def parse_rules_json(text: str) -> Any:
    try:
        return parse_strict_json(text)
    except json.JSONDecodeError as error:
        raise forms.ValidationError(
            _("Line %(line)s, column %(column)s: invalid JSON. %(problem)s.")
            % {"line": error.lineno, "column": error.colno, "problem": error.msg}
        ) from error
    except DuplicateKeyError as error:
        raise forms.ValidationError(
            _("The key “%(key)s” appears more than once in the same object. Remove the duplicates.")
            % {"key": error.key}
        ) from error
    except (RecursionError, ValueError) as error:
        raise forms.ValidationError(
            _("This JSON is nested too deeply or contains an invalid number, such as NaN or Infinity.")
        ) from error
