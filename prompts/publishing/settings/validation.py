"""Validate the signature, the sample data and the section limits of prompt settings."""

import json
from typing import Any, NoReturn

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from prompts.assembly.errors import AssemblyError
from prompts.assembly.inputs import Data
from prompts.assembly.json_codec import parse_dataclass
from prompts.assembly.layouts import LAYOUTS
from prompts.assembly.tool_signatures import parse_context_signature

SECTION_NAMES = frozenset(part.name for layout in LAYOUTS.values() for part in layout.parts)
MAX_SECTION_LIMIT = 2**31 - 1


def validate_signature(text: str) -> None:
    if not text.strip():
        return
    try:
        parse_context_signature(text, "signature")
    except AssemblyError as error:
        example = "(user_id :int) -> {count :int}"
        message = _("This signature %(reason)s. Use a format like %(example)s.")
        raise ValidationError(
            {"signature": message % {"reason": error.message, "example": example}}
        ) from error


def validate_sample_data(text: str) -> None:
    """Require a JSON object that the assembly accepts: no deep nesting, no half surrogate pairs."""
    if not text.strip():
        return
    try:
        values = json.loads(text, parse_constant=refuse_constant)
    except RecursionError:
        raise ValidationError({"sample_data": _("This JSON is nested too deeply.")}) from None
    except ValueError as error:
        raise ValidationError(
            {"sample_data": _("This is not valid JSON: %(error)s.") % {"error": error}}
        ) from None
    if not isinstance(values, dict):
        raise ValidationError({"sample_data": _("Sample data must be a JSON object: { … }.")})
    try:
        parse_dataclass(Data, {"values": values})
    except AssemblyError as error:
        raise ValidationError({"sample_data": f"{error}."}) from None


def refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python reads although JSON does not have them."""
    raise ValueError(_("%(name)s is not a JSON value") % {"name": name})


def validate_section_limits(limits: Any, layout: str = "") -> None:
    """Require an object of section names that the layout has, each with a number of characters.

    Without a layout, any layout may have them: the settings of a channel or a workspace apply to agents of
    different layouts.
    """
    if limits is None:
        return
    if not isinstance(limits, dict):
        raise ValidationError({"section_limits": _("Must be an object that maps sections to numbers.")})
    if unknown := sorted(set(limits) - SECTION_NAMES):
        message = _("No layout has a section “%(name)s”. Known sections: %(known)s.")
        params = {"name": unknown[0], "known": ", ".join(sorted(SECTION_NAMES))}
        raise ValidationError({"section_limits": message % params})
    known = [part.name for part in LAYOUTS[layout].parts] if layout in LAYOUTS else list(SECTION_NAMES)
    if unknown := sorted(set(limits) - set(known)):
        message = _("The layout %(layout)s has no section “%(name)s”. Its sections: %(known)s.")
        params = {"layout": layout, "name": unknown[0], "known": ", ".join(known)}
        raise ValidationError({"section_limits": message % params})
    for name, limit in limits.items():
        is_number = isinstance(limit, int) and not isinstance(limit, bool)
        if not is_number or not 1 <= limit <= MAX_SECTION_LIMIT:
            message = _("The limit for “%(name)s” must be a whole number of at least 1.")
            raise ValidationError({"section_limits": message % {"name": name}})
