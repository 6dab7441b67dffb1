"""The layout and vocabulary of the code hold, and every check notices a planted fault."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.layout import (
    DEFAULT_LOOSE_MODULES,
    DEFAULT_PACKAGE_MODULES,
    MAX_LINES,
    MAX_MODULES,
    find_bad_module_names,
    find_banned_names,
    find_banned_phrases,
    find_crowded_packages,
    find_duplicate_names,
    find_long_modules,
    find_too_many_modules,
    find_wrong_places,
)

# The questions a newcomer asks: what they would type into a file finder, and where the answer is.
WHERE_IS = [
    (
        "What ends when an owner deletes a workspace, and how is it restored?",
        "deletion",
        "personas/workspaces/deletion.py",
        "delete_workspace",
    ),
    (
        "What removes the rows of a deleted workspace?",
        "removal",
        "personas/workspaces/removal.py",
        "remove_workspace",
    ),
    (
        "Where is a member without a second factor redirected?",
        "tenancy",
        "personas/tenancy/middleware.py",
        "require_second_factor",
    ),
    (
        "What makes a member review an action before it changes production?",
        "review",
        "prompts/review/services.py",
        "run_with_review",
    ),
    ("Which page actions have no review step?", "review", "prompts/review/middleware.py", "is_exempt"),
    (
        "Which sections have grown over the versions of a prompt?",
        "size_history",
        "prompts/versions/size_history.py",
        "load_size_history",
    ),
    (
        "How many bots were outdated on each day?",
        "outdated",
        "prompts/ledger/outdated_history.py",
        "count_outdated_by_day",
    ),
    ("Where does Markdown become HTML?", "markdown", "core/text/markdown.py", "render_markdown"),
    (
        "Where do names replace emails?",
        "display_names",
        "personas/ui/display_names.py",
        "render_person",
    ),
    (
        "What happens to jobs while a node of the database is lost?",
        "lost_nodes",
        "personas/tenancy/lost_nodes.py",
        "query_workspaces",
    ),
    (
        "Which behaviour do all clients share?",
        "behaviour",
        "tests/clients/test_behaviour.py",
        "test_the_client_behaves_as_described",
    ),
    (
        "Where is memories.json imported?",
        "memory_file",
        "personas/memories/memory_file.py",
        "import_memories",
    ),
    ("Where is a nova agent imported?", "agent_file", "personas/agents/agent_file.py", "import_agent"),
    (
        "Where are the adapters of the Python client for agent frameworks?",
        "adapters",
        "clients/python/src/dramatis_client/adapters/prompt_source.py",
        "PromptSource",
    ),
    (
        "Where is a prompt converted for a model provider?",
        "formats",
        "clients/python/src/dramatis_client/formats.py",
        "build_anthropic_blocks",
    ),
    (
        "Where are connections of slow clients closed?",
        "request_limits",
        "project/request_limits/connections.py",
        "close_if_stalled",
    ),
    (
        "What may a key that is limited to some channels do?",
        "key_limits",
        "personas/api/key_limits.py",
        "check_key_limits",
    ),
    ("Where is a label moved?", "labels", "prompts/labels/services.py", "move_label"),
    ("Where is production rolled back?", "labels", "prompts/labels/services.py", "roll_back"),
    (
        "Which rule keeps unapproved text out of production?",
        "approval",
        "prompts/labels/approval.py",
        "check_moves",
    ),
    (
        "Where does an erasure move labels?",
        "erasure",
        "prompts/erasure/label_moves.py",
        "move_labels_off_erased",
    ),
    ("Where is a release approved?", "releases", "prompts/releases/services.py", "approve_release"),
    (
        "Which level does a prompt setting come from?",
        "inheritance",
        "prompts/inputs/inheritance.py",
        "InheritedSettings",
    ),
    ("Where is a prompt served to a bot?", "serving", "prompts/serving/services.py", "serve_prompt"),
    ("Where is a ledger row written?", "ledger_writer", "prompts/serving/ledger_writer.py", "LedgerWriter"),
    ("Which cache does serving use?", "cache", "prompts/serving/cache.py", "ServingCache"),
    (
        "Where is a fetch's label resolved to a version?",
        "resolve",
        "prompts/serving/resolve.py",
        "resolve_request",
    ),
    ("Where are changed prompts rebuilt?", "builds", "prompts/builds/services.py", "rebuild_agents"),
    ("Where is a version stored?", "publish", "prompts/builds/publish.py", "publish_versions"),
    ("Where are tokens counted?", "tokens", "prompts/builds/tokens.py", "count_tokens"),
    ("Where are the inputs of a prompt collected?", "inputs", "prompts/inputs/collect.py", "collect_inputs"),
    ("Where is a prompt assembled?", "assembly", "prompts/assembly/builder.py", "build_prompt"),
    ("Where is the token budget applied?", "budget", "prompts/assembly/budget.py", "fit_to_budget"),
    (
        "Where are settings inherited?",
        "settings",
        "prompts/inputs/effective_settings.py",
        "EffectiveSettings",
    ),
    ("Where are two versions compared?", "diff", "prompts/versions/diff.py", "compare_segments"),
    ("Where is the size table of a version?", "sizes", "prompts/versions/sizes.py", "build_size_table"),
    (
        "Where are stored tool definitions read?",
        "tool_definitions",
        "prompts/versions/tool_definitions.py",
        "parse_definitions",
    ),
    ("Where is the lockfile of a version?", "lockfile", "prompts/versions/lockfile.py", "build_lockfile"),
    (
        "What adds a comment to a memory or a line of a version?",
        "comment",
        "prompts/comments/services.py",
        "comment_on_line",
    ),
    (
        "What creates an agent and its key on one page?",
        "quick_start",
        "prompts/quick_start/services.py",
        "create_agent_with_soul",
    ),
    (
        "How does a new key reach the page that shows it once?",
        "secret_cookie",
        "prompts/quick_start/secret_cookie.py",
        "take_secret",
    ),
    ("Where are sizes in bytes formatted?", "sizes", "core/text/sizes.py", "format_size"),
    ("Where is a preview built?", "preview", "prompts/preview/services.py", "build_preview"),
    ("Where is the impact of an edit computed?", "impact", "prompts/preview/impact.py", "compute_impact"),
    (
        "Where is it listed which prompts use a record?",
        "usage",
        "prompts/provenance/usage.py",
        "get_record_usage",
    ),
    ("Where is a served prompt replayed?", "replay", "prompts/replay/services.py", "replay_entry"),
    ("Where is an evidence bundle built?", "evidence", "prompts/replay/evidence.py", "build_evidence"),
    (
        "Where are checkpoints signed?",
        "checkpoint",
        "prompts/integrity/checkpoint_signer.py",
        "sign_checkpoint",
    ),
    ("Where is the signing lag computed?", "lag", "prompts/integrity/lag.py", "list_workspace_lags"),
    ("Where are trusted keys?", "trusted_keys", "prompts/integrity/trusted_keys.py", "get_trusted_keys"),
    ("Where is a workspace verified?", "verify", "prompts/integrity/verify/workspace.py", "verify_workspace"),
    ("Where is a hash chain verified?", "chains", "prompts/proof/chains.py", "verify_chain"),
    ("Where is canonical JSON?", "canonical", "prompts/proof/canonical.py", "canonical_json"),
    ("Where is a full disk recognised?", "disk_full", "core/db/disk_full.py", "is_disk_full"),
    ("Where is the database's clock?", "database_clock", "core/db/database_clock.py", "DatabaseClock"),
    (
        "Where is the daily quota of call data?",
        "quota",
        "personas/limits/storage_quota.py",
        "QuotaReservations",
    ),
    (
        "Where are unused contents deleted?",
        "content_retention",
        "prompts/versions/content_retention.py",
        "delete_unused_contents",
    ),
    ("Where do old ledger rows expire?", "retention", "prompts/ledger/retention.py", "expire_blocks"),
    (
        "Where are ledger partitions created?",
        "partitions",
        "prompts/ledger/partitions.py",
        "create_partitions",
    ),
    ("Where are outdated bots found?", "bots", "prompts/ledger/outdated_bots.py", "list_outdated_bots"),
    ("Where is it compared what bots have loaded?", "drift", "prompts/drift/selectors.py", "list_bots"),
    ("Where are the rows of long lists rendered?", "jinja", "project/jinja.py", "build_environment"),
    ("Where is personal data erased?", "erasure", "prompts/erasure/services.py", "erase_record"),
    ("Which other records contain the text?", "erasure", "prompts/erasure/same_text.py", "find_same_text"),
    (
        "What refuses a version with an erased record?",
        "versions",
        "prompts/versions/selectors.py",
        "find_tombstones",
    ),
    ("Where is the rate limit?", "rate_limit", "personas/api/rate_limits.py", "RateLimiter"),
    (
        "Where is an API key authenticated?",
        "authentication",
        "personas/api/authentication.py",
        "authenticate",
    ),
    ("Where is idempotency?", "idempotency", "personas/api/idempotency.py", "run_idempotent"),
    ("Where is keyset pagination?", "pagination", "personas/api/pagination.py", "paginate_rows"),
    ("Where are many records changed in one request?", "bulk", "personas/api/record_bulk.py", "RecordBulk"),
    ("Where are lists exported by API?", "exports", "project/api/exports.py", "ListExport"),
    (
        "Where are the headers of a deprecated operation set?",
        "views",
        "personas/api/views.py",
        "set_deprecation_headers",
    ),
    ("Where is If-Match checked?", "etag", "personas/api/etags.py", "check_if_match"),
    ("Where is an API key created?", "api_keys", "personas/api_keys/services.py", "create_key"),
    ("Where are key scopes checked?", "scopes", "personas/api_keys/scopes.py", "find_missing_scope"),
    (
        "Which manager scopes queries to a workspace?",
        "tenancy",
        "personas/tenancy/models.py",
        "ScopedManager",
    ),
    ("Where does an outsider get 404?", "tenancy", "personas/tenancy/middleware.py", "TenancyMiddleware"),
    ("Where is a record saved with its revision?", "records", "personas/records/services.py", "edit_record"),
    (
        "Where is a failed sign-in delayed?",
        "sign_in",
        "personas/accounts/sign_in_delays.py",
        "get_remaining_delay",
    ),
    (
        "Where is a security event recorded?",
        "accounts",
        "personas/accounts/services.py",
        "record_security_event",
    ),
    (
        "Where are second factors encrypted?",
        "second_factors",
        "personas/accounts/second_factors.py",
        "EncryptingMFAAdapter",
    ),
    (
        "Where is it audited what operators view?",
        "operator",
        "personas/accounts/operator_audit.py",
        "audit_viewed_list",
    ),
    ("Where is an audit event written?", "audit", "personas/audit/services.py", "write_audit_event"),
    ("Where is a member invited?", "members", "personas/members/services.py", "invite_member"),
    ("Where is a memory approved?", "memories", "personas/memories/services.py", "approve_memory"),
    ("Where is the navigation?", "navigation", "personas/ui/navigation.py", "build_navigation"),
    ("Where is CSV exported?", "export", "personas/ui/export.py", "generate_csv"),
    ("Where is a source refreshed?", "refresh", "skills/refresh/services.py", "refresh_source"),
    ("Where is a refresh held if most files are missing?", "holds", "skills/refresh/holds.py", "hold_run"),
    ("Where are folders watched?", "watch", "skills/refresh/watch.py", "WatchPlan"),
    ("Where is text scanned for injection?", "scan", "skills/scanning/scanner.py", "scan_text"),
    ("Where are leaked secrets detected?", "secrets", "skills/scanning/secrets.py", "is_real_secret"),
    ("Where is SKILL.md parsed?", "parser", "skills/skill_format/parser.py", "parse_skill"),
    ("Where is an uploaded zip read?", "zip", "skills/archives/zip_reader.py", "read_zip"),
    ("Where are symbolic links refused?", "filesystem", "skills/discovery/filesystem.py", "SafeRoot"),
    ("Where is a context file approved?", "files", "skills/files/services.py", "approve_file"),
    ("Where is a folder granted to a workspace?", "grants", "skills/sources/grants.py", "allow_folder"),
    (
        "Where is row-level security?",
        "row_level_security",
        "core/db/row_level_security.py",
        "EnableRowLevelSecurity",
    ),
    (
        "What if a database has migrations from before the first release?",
        "replaced_migrations",
        "project/database/replaced_migrations.py",
        "require_complete_migrations",
    ),
    ("Where are append-only tables?", "append_only", "core/db/append_only.py", "AppendOnly"),
    ("Where are reads sent to the replica?", "replica", "core/db/replica.py", "read_from_replica"),
    ("Where are jobs enqueued?", "task_queue", "core/task_queue.py", "enqueue_after_commit"),
    ("Where is front matter split?", "front_matter", "core/text/front_matter.py", "split_front_matter"),
    ("Where is readiness checked?", "health", "project/health/views.py", "readyz"),
    ("Where is the Prometheus format?", "metrics", "project/metrics/exposition.py", "format_metrics"),
    ("Where is a backup created?", "backup", "project/backup/create.py", "create_backup"),
    (
        "Which revocations does a restore apply?",
        "journal",
        "project/journal/apply.py",
        "apply_endings",
    ),
    ("Where are secrets removed from logs?", "redaction", "project/logs/redaction.py", "redact_event"),
    ("Where is the OpenAPI document?", "openapi", "project/api/openapi.py", "build_openapi_document"),
    ("Which types of events are there?", "types", "personas/events/types.py", "EVENT_TYPES"),
    (
        "What keeps requests out of internal networks?",
        "http_sender",
        "core/outgoing/http_sender.py",
        "HttpSender",
    ),
    (
        "What if the mail server hangs?",
        "email_backend",
        "core/outgoing/email_backend.py",
        "LimitedEmailBackend",
    ),
    ("How are webhooks signed?", "webhooks", "personas/webhooks/signatures.py", "build_signature_headers"),
    ("Where are spans of fetches written?", "spans", "core/spans.py", "record_span"),
    ("When is a webhook tried again?", "retries", "personas/webhooks/retries.py", "RETRY_DELAYS"),
    ("Where are events recorded?", "events", "personas/events/services.py", "record_event"),
    ("Who is notified of an event?", "rules", "personas/notifications/rules.py", "NOTIFICATION_RULES"),
    (
        "Where are notifications created?",
        "notifications",
        "personas/notifications/services.py",
        "create_notifications",
    ),
    ("What does the doctor check?", "doctor", "project/doctor/checks.py", "check_workers"),
]

CHECKS: dict[str, Callable[[Path], list[str]]] = {
    check.__name__: check
    for check in (
        find_too_many_modules,
        find_crowded_packages,
        find_long_modules,
        find_bad_module_names,
        find_banned_names,
        find_duplicate_names,
        find_banned_phrases,
    )
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_product_follows_the_layout(name: str) -> None:
    problems = CHECKS[name](Path(__file__).resolve().parent.parent)
    assert not problems, "\n".join(problems[:50])


def test_a_newcomer_finds_things_by_their_usual_name() -> None:
    assert len(WHERE_IS) >= 40
    assert not find_wrong_places(WHERE_IS)


# --- planted faults ------------------------------------------------------------------------------------

MODULE = '"""A module."""\n'


def make_tree(root: Path, files: dict[str, str]) -> None:
    for name, text in {"core/db/a.py": MODULE, "core/db/b.py": MODULE, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        (path.parent / "__init__.py").touch()
        path.write_text(text, encoding="utf-8")


def repeat(folder: str, count: int) -> dict[str, str]:
    return {f"{folder}/module_{number}.py": MODULE for number in range(count)}


FAULTS: dict[str, tuple[str, dict[str, str]]] = {
    "too many modules": ("find_too_many_modules", repeat("core/db", MAX_MODULES + 1)),
    "too many loose modules": ("find_crowded_packages", repeat("personas", DEFAULT_LOOSE_MODULES + 1)),
    "a crowded package": ("find_crowded_packages", repeat("skills/files", DEFAULT_PACKAGE_MODULES + 1)),
    "a package with one module": ("find_crowded_packages", {"skills/files/models.py": MODULE}),
    "a long module": ("find_long_modules", {"core/db/c.py": MODULE + "A = 1\n" * MAX_LINES}),
    "a gerund": ("find_bad_module_names", {"core/db/keeping_rows.py": MODULE, "core/db/telling.py": MODULE}),
    "a banned module": ("find_bad_module_names", {"core/db/shelf.py": MODULE}),
    "a banned variable": (
        "find_banned_names",
        {"core/db/c.py": "def get_a():\n    said = 1\n    return said\n"},
    ),
    "a banned parameter": ("find_banned_names", {"core/db/c.py": "def get_a(words):\n    return words\n"}),
    "a banned function": ("find_banned_names", {"core/db/c.py": "def told():\n    return 1\n"}),
    "a banned attribute": ("find_banned_names", {"core/db/c.py": "class A:\n    whole: int = 1\n"}),
    "a banned class": ("find_banned_names", {"core/db/c.py": "class Shelf:\n    pass\n"}),
    "a banned alias": ("find_banned_names", {"core/db/c.py": "import json as told\n"}),
    "a repeated class": (
        "find_duplicate_names",
        {"core/db/c.py": "class Filter:\n    pass\n", "core/db/d.py": "class Filter:\n    pass\n"},
    ),
    "repeated functions": (
        "find_duplicate_names",
        {"core/db/c.py": "def get_a():\n    pass\n", "core/db/d.py": "def get_a():\n    pass\n"},
    ),
    "a banned phrase in a comment": ("find_banned_phrases", {"core/db/c.py": "# Read it anew.\nA = 1\n"}),
    "a banned phrase in a docstring": (
        "find_banned_phrases",
        {"core/db/c.py": '"""Handed out to bots."""\n'},
    ),
}


@pytest.mark.planted
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_noticed(fault: str, tmp_path: Path) -> None:
    check, files = FAULTS[fault]
    make_tree(tmp_path, {})
    assert not CHECKS[check](tmp_path)
    make_tree(tmp_path, files)
    assert CHECKS[check](tmp_path)


@pytest.mark.planted
@pytest.mark.parametrize(
    "row",
    [
        ("Is the term in the path?", "cache", "core/db/a.py", "A"),
        ("Is there such a file?", "db", "core/db/missing.py", "A"),
        ("Is the symbol defined there?", "db", "core/db/a.py", "missing"),
    ],
)
def test_a_wrong_place_is_noticed(row: tuple[str, str, str, str], tmp_path: Path) -> None:
    make_tree(tmp_path, {"core/db/a.py": "A = 1\n"})
    assert not find_wrong_places([("Where is A?", "db", "core/db/a.py", "A")], tmp_path)
    assert find_wrong_places([row], tmp_path)
