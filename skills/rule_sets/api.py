"""REST resource of discovery rules: the rules of each harness, built-in or custom."""

from typing import Any

from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404
from django.urls import URLPattern

from personas.api.etags import check_etag, get_record_etag
from personas.api.exception_handler import validation_problem
from personas.api.key_limits import Touches
from personas.api.operations import ApiRequest, Operation
from personas.api.pagination import PAGINATION_PARAMS, complete_list_response
from personas.api.problems import FieldError, ProblemError
from personas.api.record_resource import CHANGE_ERROR_CODES, RecordResource
from personas.api.record_schema import REVISION_SCHEMA
from personas.api.responses import ApiResponse, json_response, no_content_response
from personas.api.schema import (
    FILE_NAME_FORMAT,
    PATH_PATTERN_FORMAT,
    RELATIVE_PATH_FORMAT,
    Schema,
    array_schema,
    boolean_schema,
    enum_schema,
    integer_schema,
    line_schema,
    nullable_schema,
    object_schema,
    page_schema,
)
from personas.api.views import endpoint
from personas.models import Workspace
from personas.records.services import restore_record
from personas.roles import Permission
from skills.discovery.harness_json import (
    MAX_CAPS,
    MAX_NAMES,
    MAX_PATH_LENGTH,
    MAX_PATHS,
    MAX_RULES,
    InvalidHarness,
    harness_to_json,
    parse_harness,
)
from skills.discovery.harnesses import FILE_KINDS, HARNESSES, MATCH_MODES, RULE_SCOPES
from skills.models import RuleSet
from skills.rule_sets.selectors import HarnessRules, list_harness_rules, list_rule_sets
from skills.rule_sets.services import reset_rules, save_rules
from skills.rule_sets.views import request_rule_refreshes

PATH_SCHEMA = line_schema(MAX_PATH_LENGTH, least=1, format=RELATIVE_PATH_FORMAT)
CAP_NAMES = (
    "file_bytes",
    "total_bytes",
    "files",
    "folder_files",
    "folder_entries",
    "entries",
    "depth",
    "seconds",
)


def cap_schema(name: str) -> Schema:
    most = getattr(MAX_CAPS, name)
    return {
        "type": "number" if isinstance(most, float) else "integer",
        "exclusiveMinimum": 0,
        "maximum": most,
    }


RULES_FIELDS: dict[str, Schema] = {
    "rules": array_schema(
        object_schema(
            {
                "kind": enum_schema(FILE_KINDS, title="FileKind"),
                "paths": array_schema(
                    PATH_SCHEMA | {"format": PATH_PATTERN_FORMAT}, most=MAX_PATHS, description="In order."
                ),
                "at": enum_schema(
                    RULE_SCOPES,
                    description="Whether to search each folder or only the working directory.",
                    title="RuleScope",
                ),
                "take": enum_schema(
                    MATCH_MODES,
                    description="Whether to read all paths or only the first that exists.",
                    title="RuleMatch",
                ),
            },
            required=["kind", "paths"],
            title="DiscoveryRuleInput",
        ),
        most=MAX_RULES,
        description="The rules, in reading order.",
    ),
    "global_folder": {
        **line_schema(MAX_PATH_LENGTH, format=RELATIVE_PATH_FORMAT),
        "description": "The folder that `~` refers to. Empty for the root.",
    },
    "extra_skill_folders": array_schema(PATH_SCHEMA, most=MAX_NAMES),
    "off": array_schema(
        enum_schema(FILE_KINDS, title="FileKind"),
        most=len(FILE_KINDS),
        description="Kinds that are not read.",
    ),
    "skip_folders": array_schema(PATH_SCHEMA | {"format": FILE_NAME_FORMAT}, most=MAX_NAMES),
    "caps": object_schema(
        {name: cap_schema(name) for name in CAP_NAMES},
        required=(),
        description="Limits of one refresh run. They can be lowered.",
        title="ScanCapsInput",
    ),
}


def relax_rules_schema(schema: Schema) -> Schema:
    """Return the schema of a field for responses, without limits: the built-in rules may exceed them."""
    limits = {"maxItems", "minItems", "maxLength", "minLength", "pattern", "maximum", "exclusiveMinimum"}
    relaxed = {name: value for name, value in schema.items() if name not in limits}
    if "title" in relaxed:
        relaxed["title"] = relaxed["title"].removesuffix("Input")
    if "items" in relaxed:
        relaxed["items"] = relax_rules_schema(relaxed["items"])
    if "properties" in relaxed:
        fields = {name: relax_rules_schema(field) for name, field in relaxed["properties"].items()}
        relaxed |= {"properties": fields, "required": list(fields)}
    return relaxed


RULE_SET_SCHEMA = object_schema(
    {
        "harness": enum_schema(HARNESSES, title="Harness"),
        "is_custom": boolean_schema(description="Whether the workspace replaces the built-in rules."),
        "sources": {
            "type": "array",
            "items": {"type": "string"},
            "description": "Sources that use these rules.",
        },
        "revision": nullable_schema(integer_schema(1, description="Null if they were never changed.")),
        "etag": {"type": "string", "description": "For If-Match."},
        **{name: relax_rules_schema(schema) for name, schema in RULES_FIELDS.items()},
    },
    title="RuleSet",
)
RULES_EXAMPLE = {
    "rules": [
        {"kind": "context", "paths": ["AGENTS.md", "CLAUDE.md"], "at": "each", "take": "first"},
        {"kind": "skill", "paths": [".agents/skills/*/SKILL.md"], "at": "each", "take": "all"},
    ]
}
REFRESH_NOTE = "Sources that use these rules are refreshed."


def convert_caps(body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with integers in place of numbers such as 10.0, which are integers in JSON Schema."""
    caps = {
        name: int(value) if value == int(value) else value for name, value in body.get("caps", {}).items()
    }
    return {**body, "caps": caps} if caps else body


class RuleSetResource(RecordResource[RuleSet]):
    """The discovery rules of each harness.

    All harnesses are listed; a record exists only for one whose rules were changed.
    """

    model = RuleSet
    name, singular = "rule-sets", "rule set"
    lookup_field = "harness"
    write_permission = Permission.MANAGE_SOURCES

    def get_queryset(self, workspace: Workspace | int) -> QuerySet[RuleSet]:
        return list_rule_sets(workspace)

    def to_json(self, record: RuleSet) -> dict[str, Any]:
        return harness_rules_json(HarnessRules(record.harness, record))

    def index(self, call: ApiRequest) -> ApiResponse:
        return complete_list_response([harness_rules_json(row) for row in list_harness_rules(call.workspace)])

    def read(self, call: ApiRequest, key: str) -> ApiResponse:
        return self.rules_response(call, key)

    @transaction.atomic
    def replace(self, call: ApiRequest, key: str) -> ApiResponse:
        before = get_harness_rules(call, key)
        check_etag(get_rules_etag(before), call.if_match)
        try:
            rules = harness_to_json(parse_harness({"name": key, **convert_caps(call.body)}))
        except InvalidHarness as error:
            raise ProblemError(
                validation_problem(FieldError(message, pointer) for pointer, message in error.problems)
            ) from error
        revision = before.rule_set.revision if before.rule_set else 0
        saved = save_rules(call.workspace, key, rules, expected_revision=revision, by=call.actor)
        if saved is not None and (saved.revision != revision or not before.is_custom):
            request_rule_refreshes(call.workspace, key, by=call.actor)
        return self.rules_response(call, key)

    @transaction.atomic
    def remove(self, call: ApiRequest, key: str) -> ApiResponse:
        before = get_harness_rules(call, key)
        check_etag(get_rules_etag(before), call.if_match)
        if before.is_custom:
            reset_rules(call.workspace, key, by=call.actor)
            request_rule_refreshes(call.workspace, key, by=call.actor)
        return no_content_response()

    @transaction.atomic
    def restore(self, call: ApiRequest, key: str) -> ApiResponse:
        rule_set = self.find_writable(call, key)
        if rule_set.is_archived:
            restore_record(rule_set, by=call.actor)
            request_rule_refreshes(call.workspace, key, by=call.actor)
        return self.rules_response(call, key)

    @transaction.atomic
    def restore_to_revision(self, call: ApiRequest, key: str, number: int) -> ApiResponse:
        before = self.find_writable(call, key)
        super().restore_to_revision(call, key, number)
        if self.find_record(call, key).revision != before.revision:
            request_rule_refreshes(call.workspace, key, by=call.actor)
        return self.rules_response(call, key)

    def rules_response(self, call: ApiRequest, key: str) -> ApiResponse:
        rules = get_harness_rules(call, key)
        return json_response(harness_rules_json(rules), ETag=get_rules_etag(rules))

    def urls(self) -> list[URLPattern]:
        read_options: dict[str, Any] = {"touches": Touches.WORKSPACE, "tag": self.name}
        write_options: dict[str, Any] = {
            "permission": self.write_permission,
            "touches": Touches.WORKSPACE,
            "tag": self.name,
        }
        change_options: dict[str, Any] = {
            **write_options,
            "is_conditional": True,
            "refusals": CHANGE_ERROR_CODES,
        }
        one = "rule-sets/<slug:harness>"
        return [
            endpoint(
                "rule-sets",
                "rule-sets-list",
                get=Operation(
                    self.index,
                    "List rule sets",
                    operation_id="listRuleSets",
                    answer=page_schema(RULE_SET_SCHEMA),
                    note="One per harness: which files are read in sources, where, and in which order.",
                    **read_options,
                ),
            ),
            endpoint(
                one,
                "rule-sets-one",
                get=Operation(
                    self.read,
                    "Get the rule set of a harness",
                    operation_id="getRuleSet",
                    answer=RULE_SET_SCHEMA,
                    **read_options,
                ),
                put=Operation(
                    self.replace,
                    "Replace the rule set of a harness",
                    operation_id="replaceRuleSet",
                    body=object_schema(RULES_FIELDS, required=["rules"], title="RuleSetInput"),
                    body_example=RULES_EXAMPLE,
                    answer=RULE_SET_SCHEMA,
                    note=f"Omitted fields are reset to their defaults. {REFRESH_NOTE}",
                    **change_options,
                ),
                delete=Operation(
                    self.remove,
                    "Reset a harness to its built-in rules",
                    operation_id="resetRuleSet",
                    status=204,
                    note=f"The custom rules are archived; `:restore` uses them again. {REFRESH_NOTE}",
                    **change_options,
                ),
            ),
            endpoint(
                f"{one}:restore",
                "rule-sets-restore",
                post=Operation(
                    self.restore,
                    "Use the archived rules of a harness again",
                    operation_id="restoreRuleSet",
                    answer=RULE_SET_SCHEMA,
                    is_retryable=True,
                    refusals={404: "not_found"},
                    note=REFRESH_NOTE,
                    **write_options,
                ),
            ),
            endpoint(
                f"{one}/revisions",
                "rule-sets-revisions",
                get=Operation(
                    self.list_history,
                    "List the revisions of a rule set, newest first",
                    operation_id="listRuleSetRevisions",
                    answer=page_schema(REVISION_SCHEMA),
                    query=PAGINATION_PARAMS,
                    **read_options,
                ),
            ),
            endpoint(
                f"{one}/revisions/<int:revision>:restore",
                "rule-sets-restore-revision",
                post=Operation(
                    self.restore_to_revision,
                    "Restore a revision of a rule set",
                    operation_id="restoreRuleSetRevision",
                    answer=RULE_SET_SCHEMA,
                    note=REFRESH_NOTE,
                    **change_options,
                ),
            ),
        ]


def get_harness_rules(call: ApiRequest, key: str) -> HarnessRules:
    if key not in HARNESSES:
        raise Http404
    return list_harness_rules(call.workspace, [key])[0]


def get_rules_etag(rules: HarnessRules) -> str:
    return get_record_etag(rules.rule_set) if rules.rule_set else '"0"'


def harness_rules_json(rules: HarnessRules) -> dict[str, Any]:
    definition = harness_to_json(rules.harness)
    return {
        "harness": rules.name,
        "is_custom": rules.is_custom,
        "sources": [source.slug for source in rules.sources],
        "revision": rules.rule_set.revision if rules.rule_set else None,
        "etag": get_rules_etag(rules),
        **{name: definition[name] for name in RULES_FIELDS},
    }


urlpatterns = RuleSetResource().urls()
