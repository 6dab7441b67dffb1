"""Describe why a part is not in a prompt, for pages and for the REST API."""

from collections.abc import Mapping
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from prompts.assembly.report import OmissionReason


class OmissionText(NamedTuple):
    """The texts of an omission reason: on pages, and in responses of the API, which are not translated."""

    label: str | Promise
    api: str


OMISSION_TEXTS: Mapping[str, OmissionText] = {
    OmissionReason.BASE_REPLACED: OmissionText(
        _("SYSTEM.md replaces the base prompt"), "the base is replaced"
    ),
    OmissionReason.EMPTY: OmissionText(_("empty"), "nothing to say"),
    OmissionReason.NATIVE_TOOLS: OmissionText(
        _("no tools, or tools are sent as definitions"), "native tools"
    ),
    OmissionReason.NO_CONTEXT_FILES: OmissionText(_("no context files"), "no context files"),
    OmissionReason.NO_DIRECTORY: OmissionText(
        _("no directory that the agent can access"), "no directory that the agent can reach"
    ),
    OmissionReason.NO_DOCUMENTATION: OmissionText(
        _("no documentation, or SYSTEM.md replaces the base prompt"),
        "no documentation is named, or the base is replaced",
    ),
    OmissionReason.NO_FORMATTING_RULES: OmissionText(
        _("the channel has no formatting rules"), "the channel has no formatting rules"
    ),
    OmissionReason.NO_IDENTITY: OmissionText(_("no identity"), "no identity"),
    OmissionReason.NO_IDENTITY_OR_SIMPLE: OmissionText(
        _("no identity, or the entry point is set to Simple"), "no identity, or the simple entry point"
    ),
    OmissionReason.NO_IDENTITY_SENTENCE: OmissionText(
        _("no identity, or the entry point is set to Simple"),
        "no identity with a sentence to say, or the simple entry point",
    ),
    OmissionReason.NO_INSTRUCTIONS: OmissionText(
        _("no instructions, or no identity"), "no instructions, or no identity beside them"
    ),
    OmissionReason.NO_MEMORIES: OmissionText(_("no memories"), "no memories"),
    OmissionReason.NO_MEMORY_TOOLS: OmissionText(_("no memory tools"), "no memory tools"),
    OmissionReason.NO_MODEL_SKILLS: OmissionText(
        _("no skills that models can start"), "no skill that the model may call"
    ),
    OmissionReason.NO_OFFERED_SKILLS: OmissionText(_("no available skills"), "no skill that may be offered"),
    OmissionReason.NO_PLANNING_TOOLS: OmissionText(_("no planning tools"), "no tools for planning"),
    OmissionReason.NO_RESPONSIBILITIES: OmissionText(_("no responsibilities"), "no responsibilities"),
    OmissionReason.NO_SKILLS_OR_NOT_FULL: OmissionText(
        _("no skills, or the entry point is not set to Full"), "no skills, or not the full entry point"
    ),
    OmissionReason.NO_STORAGE: OmissionText(
        _("the agent has no storage"), "nothing the agent can do keeps anything"
    ),
    OmissionReason.NO_TOOL_GUIDELINES: OmissionText(_("no tool has guidelines"), "no tool asks for any"),
    OmissionReason.NO_TOOLS: OmissionText(_("no tools"), "no tools"),
    OmissionReason.NO_TOOLS_OR_DEFINED: OmissionText(
        _("no tools, or tools are sent as definitions"),
        "no tools, or a provider that takes their definitions",
    ),
    OmissionReason.NO_USER_NAME: OmissionText(
        _("no user name, or the entry point is set to Simple"), "no user's name, or the simple entry point"
    ),
    OmissionReason.NO_WORKSPACE_FILES: OmissionText(
        _("no workspace files, or the entry point is set to Simple"),
        "no workspace files, or the simple entry point",
    ),
    OmissionReason.NOT_IN_CALL: OmissionText(_("not sent with the call"), "the call says nothing"),
    OmissionReason.REFERENCE_OFF: OmissionText(
        _("left out by the setting “Leave out the language reference”"), "left out by limits.omit_reference"
    ),
    OmissionReason.SIMPLE_ENTRY: OmissionText(
        _("the entry point is set to Simple"), "the simple entry point"
    ),
    OmissionReason.SUB_AGENT: OmissionText(_("sub-agents do not plan"), "sub-agents do not plan"),
}


def describe_omission(reason: str) -> str:
    """Return the label of an omission reason; codes of older compilers are returned unchanged."""
    text = OMISSION_TEXTS.get(reason)
    return str(text.label) if text else reason


def omissions_json(omitted: Mapping[str, str]) -> dict[str, str]:
    """Return the reason for each omitted part, for responses of the API."""
    texts = {name: OMISSION_TEXTS.get(reason) for name, reason in omitted.items()}
    return {name: text.api if text else omitted[name] for name, text in texts.items()}
