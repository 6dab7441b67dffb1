"""Translated display names of stored identifiers: kinds, fields, sections, audit actions, members."""

from contextvars import ContextVar

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from personas.models import Membership

DISPLAY_NAMES = {
    # Kinds of records, as stored in the audit log and in build causes.
    "agent": _("Agent"),
    "identity": _("Identity"),
    "soul": _("Soul"),
    "user_profile": _("User profile"),
    "memory": _("Memory"),
    "responsibility": _("Responsibility"),
    "task": _("Task"),
    "tool": _("Tool"),
    "channel": _("Channel"),
    "skill": _("Skill"),
    "source": _("Source"),
    "allowed_folder": _("Allowed folder"),
    "file": _("File"),
    "context_file": _("Context file"),
    "rule_set": _("Discovery rules"),
    "prompt_settings": _("Prompt settings"),
    "label": _("Label"),
    "release": _("Release"),
    "ledger": _("Ledger"),
    "verification": _("Verification"),
    "key": _("Key"),
    "webhook": _("Webhook"),
    "member": _("Member"),
    "invitation": _("Invitation"),
    "workspace": _("Workspace"),
    # Fields of records.
    "approval": _("Approval"),
    "agents": _("Agents"),
    "all_files": _("Maximum characters in all files"),
    "allowed_tools": _("Allowed tools"),
    "body": _("Body"),
    "channels": _("Channels"),
    "compatibility": _("Compatibility"),
    "creature": _("Creature"),
    "default_release_policy": _("Release policy for new agents"),
    "description": _("Description"),
    "documentation_additional": _("Additional documentation"),
    "documentation_examples": _("Documentation examples"),
    "documentation_main": _("Main documentation"),
    "disable_model_invocation": _("Disable model invocation"),
    "display_name": _("Display name"),
    "emoji": _("Emoji"),
    "entry": _("Entry point"),
    "expires_at": _("Expires at"),
    "extra": _("Other front matter"),
    "folder": _("Folder"),
    "for_all_agents": _("For all agents"),
    "formatting": _("Formatting"),
    "hidden": _("Hidden fields"),
    "guidelines": _("Guidelines"),
    "harness": _("Harness"),
    "harnesses": _("Harnesses"),
    "instructions": _("Instructions"),
    "is_protected": _("Protected"),
    "labels": _("Labels"),
    "layout": _("Layout"),
    "ledger_months": _("Ledger retention (months)"),
    "license": _("License"),
    "list_sample": _("Items per list in samples"),
    "location": _("Location"),
    "metadata": _("Metadata"),
    "mission": _("Mission"),
    "mode": _("Mode"),
    "name": _("Name"),
    "native_tools": _("Tools as definitions"),
    "notes": _("Notes"),
    "omit_reference": _("Leave out the language reference"),
    "parameters": _("Parameters"),
    "parent": _("Parent"),
    "per_file": _("Maximum characters per file"),
    "planning_tools": _("Planning tools"),
    "position": _("Position"),
    "reason": _("Reason"),
    "refresh_minutes": _("Refresh interval (minutes)"),
    "release_policy": _("Release policy"),
    "requires_second_factor": _("Requires a second factor"),
    "role": _("Role"),
    "rules": _("Discovery rules"),
    "scopes": _("Scopes"),
    "signature": _("Signature"),
    "slug": _("Slug"),
    "snippet": _("Snippet"),
    "status": _("Status"),
    "steps": _("Steps"),
    "superseded_by": _("Superseded by"),
    "text": _("Text"),
    "timezone": _("Time zone"),
    "title": _("Title"),
    "token_budget": _("Token budget"),
    "tools": _("Tools"),
    "total_characters": _("Maximum characters"),
    "sample_data": _("Sample data"),
    "section_limits": _("Maximum characters per section"),
    "string_truncate": _("Characters per text value in samples"),
    "valid_from": _("Valid from"),
    "valid_until": _("Valid until"),
    "version": _("Version"),
    "vibe": _("Vibe"),
    "working_directory": _("Working directory"),
    "kind": _("Kind"),
    "prefix": _("Prefix"),
    "verbs": _("Permissions"),
    # Sections of a prompt.
    "append": _("Appended text"),
    "background": _("Background"),
    "base": _("Base"),
    "call": _("Call"),
    "call_append": _("Appended by call"),
    "context": _("Context"),
    "context_files": _("Context files"),
    "custom_tools": _("Custom tools"),
    "data": _("Data"),
    "date_and_directory": _("Date and directory"),
    "directories": _("Directories"),
    "documentation": _("Documentation"),
    "environment": _("Environment"),
    "introduction": _("Introduction"),
    "memories": _("Memories"),
    "memory_hint": _("Memory hint"),
    "now": _("Now"),
    "output_format": _("Output format"),
    "planning": _("Planning"),
    "previous_error": _("Previous error"),
    "project_context": _("Project context"),
    "reference": _("Reference"),
    "replacement": _("Replacement"),
    "responsibilities": _("Responsibilities"),
    "runtime": _("Runtime"),
    "skills": _("Skills"),
    "storage": _("Storage"),
    "tool_guidelines": _("Tool guidelines"),
    "tool_calling": _("Tool calling"),
    "tool_schemas": _("Tool schemas"),
    "user": _("User"),
    "workspace_files": _("Workspace files"),
    # Runtime values that a client sends when it fetches a prompt.
    "zone": _("Time zone abbreviation"),
    "host": _("Host"),
    "sandbox": _("Sandbox"),
    "session": _("Session"),
    "is_background": _("Background call"),
    "capabilities": _("Capabilities"),
    "messages": _("Messages"),
    "replace": _("Replace"),
    # Lifetimes of prompt sections.
    "refresh": _("Refresh"),
    "turn": _("Turn"),
    # Where the effective value of a setting comes from.
    "built in": _("Built-in"),
    "prompt": _("This prompt"),
    # Tables for which the integrity verification reports the number of checked rows.
    "content": _("Content"),
    "version parts": _("Version parts"),
    "label moves": _("Label moves"),
    "ledger rows": _("Ledger rows"),
    "ledger blocks": _("Ledger blocks"),
    "expiries": _("Expired blocks"),
    "versions": _("Versions"),
    "contents": _("Contents"),
    "checkpoints": _("Checkpoints"),
    "signing keys": _("Signing keys"),
    "checkpoint copies": _("Checkpoint copies"),
    # Permissions of roles and key scopes.
    "read": _("Read"),
    "edit": _("Edit"),
    "approve": _("Approve"),
    "manage_sources": _("Manage sources"),
    "manage_keys": _("Manage keys"),
    "manage_members": _("Manage members"),
}
# Sections of a prompt whose name stands for something else in DISPLAY_NAMES.
SECTION_DISPLAY_NAMES = {"rules": _("Rules")}
# Audit actions, in the order of the audit log's filter.
VERB_LABELS = {
    "created": _("created"),
    "created without approval": _("created without approval"),
    "edited": _("edited"),
    "archived": _("archived"),
    "restored": _("restored"),
    "reverted": _("reverted"),
    "moved": _("moved"),
    "completed": _("completed"),
    "reopened": _("reopened"),
    "approved": _("approved"),
    "superseded": _("superseded"),
    "revoked": _("revoked"),
    "reinstated": _("reinstated"),
    "rejected": _("rejected"),
    "erased": _("erased"),
    "exported": _("exported"),
    "viewed": _("viewed"),
    "account changed": _("changed account"),
    "accepted": _("accepted"),
    "ignored": _("ignored"),
    "unignored": _("stopped ignoring"),
    "waived": _("allowed"),
    "waiver ended": _("ended exception"),
    "assigned": _("assigned"),
    "changed context": _("changed context source"),
    "inherited context": _("reset context source"),
    "granted": _("allowed folder"),
    "pushed": _("pushed"),
    "removed file": _("removed file"),
    "held removal": _("held removal"),
    "confirmed removal": _("confirmed removal"),
    "ended hold": _("ended hold"),
    "requested": _("requested"),
    "requested again": _("requested again"),
    "review requested": _("requested a review"),
    "commented": _("commented"),
    "comment deleted": _("deleted a comment"),
    "changes requested": _("requested changes"),
    "released": _("released"),
    "rolled back": _("rolled back"),
    "removed label": _("removed label"),
    "withdrawn": _("withdrew"),
    "overridden": _("bypassed approval"),
    "lifted review": _("lifted review"),
    "voided": _("invalidated"),
    "protected": _("protected"),
    "unprotected": _("unprotected"),
    "rotated": _("rotated"),
    "enabled": _("enabled"),
    "disabled": _("disabled"),
    "deleted": _("deleted"),
    "tested": _("tested"),
    "redelivered": _("redelivered"),
    "invited": _("invited"),
    "role changed": _("changed role"),
    "removed": _("removed"),
    "left": _("left"),
    "took over": _("took over"),
    "renamed": _("renamed"),
    "changed retention": _("changed retention"),
    "changed settings": _("changed settings"),
    "expired": _("expired"),
}


def get_display_name(name: str) -> str:
    """Return the display name of a stored identifier. An unknown identifier is shown as capitalized text."""
    label = DISPLAY_NAMES.get(name.replace("-", "_"))
    return str(label) if label is not None else name.replace("_", " ").replace("-", " ").capitalize()


def get_section_name(name: str) -> str:
    """Return the display name of a section of a prompt."""
    return str(SECTION_DISPLAY_NAMES[name]) if name in SECTION_DISPLAY_NAMES else get_display_name(name)


# Actions whose wording differs when an object follows: "commented on release 1".
VERB_PHRASES = {
    "review requested": _("requested a review of"),
    "commented": _("commented on"),
    "comment deleted": _("deleted a comment on"),
    "changes requested": _("requested changes to"),
    "requested again": _("requested a new review of"),
    "granted": _("allowed"),
    "role changed": _("changed the role of"),
    "account changed": _("changed the account of"),
    "waiver ended": _("ended the exception for"),
    "overridden": _("bypassed approval for"),
    "lifted review": _("lifted the review of"),
    "changed context": _("changed the context source of"),
    "inherited context": _("reset the context source of"),
    "changed retention": _("changed the retention period of"),
    "changed settings": _("changed the settings of"),
}


def get_verb_phrase(name: str) -> str:
    """Return the display name of an audit action, to be followed by a kind or a name."""
    return str(VERB_PHRASES.get(name) or get_verb_label(name))


def get_verb_label(name: str) -> str:
    """Return the display name of an audit action, in lower case for use in a sentence."""
    return str(VERB_LABELS.get(name, name))


EMPTY_VALUE_DISPLAY = "—"


class PeopleNames:
    """The names of the members of a workspace by email address, loaded when the first one is needed."""

    def __init__(self, workspace_id: int) -> None:
        self.workspace_id = workspace_id
        self.names: dict[str, str] | None = None

    def find(self, label: str) -> str:
        """Return the name of the member with this address; empty if there is none, or without a name."""
        if "@" not in label:
            return ""
        if self.names is None:
            rows = Membership.objects.in_workspace(self.workspace_id)
            self.names = dict(rows.values_list("user__email", "user__name"))
        return self.names.get(label, "")


_people: ContextVar[PeopleNames | None] = ContextVar("people_names", default=None)


def set_people_workspace(workspace_id: int | None) -> None:
    """Set the workspace whose members the functions below know, at the start and end of a request."""
    _people.set(PeopleNames(workspace_id) if workspace_id else None)


def get_person_name(label: str) -> str:
    """Return the name for a stored author label, or the label itself if it is no member's address."""
    people = _people.get()
    return (people.find(str(label)) if people else "") or str(label)


def render_person(label: str) -> SafeString:
    """Render a stored author label as the member's name, with the label as tooltip."""
    name = get_person_name(label)
    if name == str(label):
        return format_html("<bdi>{}</bdi>", name)
    return format_html('<bdi title="{}">{}</bdi>', label, name)
