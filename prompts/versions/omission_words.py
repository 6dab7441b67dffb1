"""Why a part is left out of a prompt, for people: versions keep the reason as the assembly gave it."""

from django.utils.translation import gettext_lazy as _

REASONS = {
    "left out by limits.omit_reference": _("left out by limits.omit_reference"),
    "native tools": _("native tools"),
    "no context files": _("no context files"),
    "no directory that the agent can reach": _("no directory that the agent can reach"),
    "no documentation is named, or the base is replaced": _(
        "no documentation is named, or the base is replaced"
    ),
    "no identity": _("no identity"),
    "no identity with a sentence to say, or the simple entry point": _(
        "no identity with a sentence to say, or the simple entry point"
    ),
    "no identity, or the simple entry point": _("no identity, or the simple entry point"),
    "no instructions, or no identity beside them": _("no instructions, or no identity beside them"),
    "no memories": _("no memories"),
    "no memory tools": _("no memory tools"),
    "no responsibilities": _("no responsibilities"),
    "no skill that may be offered": _("no skill that may be offered"),
    "no skill that the model may call": _("no skill that the model may call"),
    "no skills, or not the full entry point": _("no skills, or not the full entry point"),
    "no tool asks for any": _("no tool asks for any"),
    "no tools": _("no tools"),
    "no tools for planning": _("no tools for planning"),
    "no tools, or a provider that takes their definitions": _(
        "no tools, or a provider that takes their definitions"
    ),
    "no user's name, or the simple entry point": _("no user's name, or the simple entry point"),
    "no workspace files, or the simple entry point": _("no workspace files, or the simple entry point"),
    "nothing the agent can do keeps anything": _("nothing the agent can do keeps anything"),
    "nothing to say": _("nothing to say"),
    "sub-agents do not plan": _("sub-agents do not plan"),
    "the base is replaced": _("the base is replaced"),
    "the call says nothing": _("the call says nothing"),
    "the channel has no formatting rules": _("the channel has no formatting rules"),
    "the simple entry point": _("the simple entry point"),
}


def omission_in_words(reason: str) -> str:
    """In the reader's language; as it was kept where an older compiler said it otherwise."""
    return str(REASONS.get(reason, reason))
