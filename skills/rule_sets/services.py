"""Save custom discovery rules for a workspace, and reset to the built-in rules."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from personas.actors import Actor
from personas.errors import InvalidInput
from personas.models import Workspace
from personas.records.services import archive_record, create_record, edit_record, restore_record
from skills.discovery.harness_json import harness_to_json
from skills.discovery.harnesses import HARNESSES
from skills.models import RuleSet
from skills.rule_sets.selectors import find_rule_set


@transaction.atomic
def save_rules(
    workspace: Workspace, harness: str, rules: dict[str, Any], *, expected_revision: int, by: Actor
) -> RuleSet | None:
    """Save custom rules for a harness, and restore them if they were archived.

    `expected_revision` is the revision of the custom rules that the caller edited, or 0 if there were none.
    Return None, and save nothing, if the rules equal the built-in rules and no custom rules are in use.
    """
    if harness not in HARNESSES:
        raise InvalidInput.on("harness", _("This harness does not exist."))
    rule_set = find_rule_set(workspace, harness)
    is_custom = rule_set is not None and not rule_set.is_archived
    if (
        not is_custom
        and expected_revision == (rule_set.revision if rule_set else 0)
        and rules == harness_to_json(HARNESSES[harness])
    ):
        return None
    if rule_set is None:
        return create_record(RuleSet, workspace, {"harness": harness, "rules": rules}, by=by)
    edited = edit_record(rule_set, {"rules": rules}, expected=expected_revision, by=by)
    return restore_record(edited, by=by)


@transaction.atomic
def reset_rules(workspace: Workspace, harness: str, *, by: Actor) -> RuleSet | None:
    """Reset a harness to its built-in rules. The custom rules are archived and keep their history."""
    rule_set = find_rule_set(workspace, harness)
    return archive_record(rule_set, by=by) if rule_set else None
