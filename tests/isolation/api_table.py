"""Table of requests for the API matrix: the seeded row that each URL parameter names, and a valid body."""

from typing import Any

from tests.isolation.api_rows import (
    Body,
    Row,
    constant,
    label_of_prompt,
    of_agent,
    path_of_push,
    row,
    run_of_source,
)
from tests.isolation.api_walk import ApiEndpoint, all_endpoints
from tests.isolation.cast import Stage
from tests.isolation.webhook_rows import WEBHOOK_OPERATIONS

HOW_TO_ADD = (
    "has no row: say in tests/isolation/api_table.py which seeded row stands for each parameter of its "
    "address, and what a good body is"
)
# Bodies that create a record of each kind.
NEW: dict[str, Body] = {
    "agents": lambda s, h: {"slug": "fresh", "name": "Fresh", "identity": s.key(h, "identities")},
    "identities": constant({"name": "Fresh", "display_name": "Ada"}),
    "souls": constant({"name": "Fresh", "text": "Calm."}),
    "user-profiles": constant({"name": "Fresh"}),
    "channels": constant({"slug": "fresh", "name": "Fresh"}),
    "tools": constant({"name": "fresh", "description": "Fresh."}),
    "memories": lambda s, h: {"text": "Fresh."} | of_agent(s, h),
    "responsibilities": lambda s, h: {"title": "Fresh", "text": "Do it."} | of_agent(s, h),
    "tasks": lambda s, h: {"title": "Fresh", "steps": [{"title": "One"}]} | of_agent(s, h),
    "skills": lambda s, h: {
        "name": "fresh",
        "description": "Fresh.",
        "body": "Do.",
        "agents": [s.key(h, "agents")],
    },
    "sources": lambda s, h: {"name": "Fresh", "allowed_folder": s.row(h, "grants").path},
}
FIXED = {"agents": {"slug"}, "channels": {"slug"}, "responsibilities": {"agent"}}
# Shared kinds: a key limited to one agent can neither read nor write them, or can only read them.
SHARED = {"identities", "souls", "user-profiles", "channels", "tools"}
READ_ONLY = {"skills", "sources"}
# Spare rows belong to another agent or to none: not found for such a key, or shared and read-only.
UNSHARED = {"agents": 404, "tasks": 404, "memories": 403}

WITHOUT_BULK = {"sources"}
EXPORTED_LISTS = (*NEW, "labels", "audit", "ledger", "keys", "members", "checkpoints")


def ids_of(kind: str, variant: str) -> Body:
    """The body of a bulk action, with one row."""
    return lambda stage, home: {"ids": [stage.row(home, kind, variant).pk]}


def bulk_rows(kind: str, narrow: int) -> dict[str, Row]:
    variants = {"archive": "spare", "restore": "archived"}
    return {
        f"POST {kind}-{verb}-many": Row(body=ids_of(kind, variant), narrow=narrow)
        for verb, variant in variants.items()
    }


# The path parameters that identify records; the others have a slug.
LOOKUP_NAMES = {
    "tools": "name",
    "skills": "name",
    "tasks": "number",
    "memories": "id",
    "responsibilities": "id",
}


def family(kind: str) -> dict[str, Row]:
    """The operations that every kind of record has."""
    reads, writes = (403 if kind in SHARED else 0), (403 if kind in SHARED | READ_ONLY else 0)

    def edit(stage: Stage, home: str) -> Any:
        values = NEW[kind](stage, home)
        return {name: value for name, value in values.items() if name not in FIXED.get(kind, ())}

    plain, spare, archived = (
        {LOOKUP_NAMES.get(kind, "slug"): row(kind, variant=one)} for one in ("plain", "spare", "archived")
    )
    history = 403 if kind == "skills" else reads
    # Revisions of an agent contain the ids of all its channels.
    on_channels = {"owner on channels": 403, "bot on channels": 403} if kind == "agents" else {}
    return {
        f"GET {kind}-list": Row(narrow=reads),
        f"POST {kind}-list": Row(body=NEW[kind], narrow=403 if kind == "agents" else writes),
        # Bots find only the memories that they wrote.
        f"GET {kind}-one": Row(plain, narrow=reads, bots=404 if kind == "memories" else 0),
        f"PATCH {kind}-one": Row(plain, body=edit, narrow=writes),
        f"PUT {kind}-one": Row(plain, body=edit, narrow=writes),
        f"DELETE {kind}-one": Row(spare, narrow=UNSHARED.get(kind, writes)),
        f"POST {kind}-restore": Row(archived, narrow=UNSHARED.get(kind, writes)),
        **(bulk_rows(kind, UNSHARED.get(kind, writes)) if kind not in WITHOUT_BULK else {}),
        f"GET {kind}-revisions": Row(plain, narrow=history, others=on_channels),
        f"POST {kind}-restore-revision": Row(plain, {"revision": "1"}, narrow=writes),
    }


# --- members, keys, work -------------------------------------------------------------------------------

KEY = {"id": row("keys")}
MEMBER, INVITATION = {"id": row("members")}, {"id": row("invitations")}
LIMITED = ("owner on channels", "owner of labels")
AGENT = {"agent": row("agents")}
# The owner wrote the seeded comments.
NOT_THE_AUTHOR = {"admin": 403, "editor": 403}


def responsibility_title(stage: Stage, home: str) -> Any:
    return {"title": stage.row(home, "responsibilities").title}


def file_rows(kind: str, text: str) -> dict[str, Row]:
    """Rows of the kinds of records that are imported from and exported to Markdown files."""
    plain = {"slug": row(kind)}
    return {
        f"POST {kind}-import": Row(body=constant({"name": "Fresh", "text": text}), narrow=403),
        f"GET {kind}-file": Row(plain, narrow=403),
        f"PUT {kind}-file": Row(plain, body=constant(text), narrow=403),
    }


def ordered_duties(stage: Stage, home: str) -> Any:
    agent = stage.row(home, "agents")
    rows = agent.responsibilities.filter(archived_at=None)
    return {"ids": list(rows.order_by("-position", "-pk").values_list("pk", flat=True))}


PERSONAS: dict[str, Row] = {
    **file_rows("identities", "---\nname: Fresh\n---\n\nFresh.\n"),
    **file_rows("souls", "Fresh.\n"),
    **file_rows("user-profiles", "---\nname: Fresh\n---\n\nFresh.\n"),
    "POST responsibilities-order": Row(AGENT, body=ordered_duties, changes=False),
    "POST agents-import": Row(body=constant({"name": "Fresh", "role": "You are Fresh."}), narrow=403),
    "GET memories-comments": Row({"id": row("memories")}),
    "POST memories-comments": Row({"id": row("memories")}, body=constant({"text": "Why?"})),
    "DELETE memories-comment": Row(
        {"id": row("memories"), "comment": row("comments")}, others=NOT_THE_AUTHOR
    ),
    "POST memories-import": Row(body=constant(["Fresh."]), narrow=403),
    "POST memories-approve": Row({"id": row("memories", variant="proposed")}, narrow=403),
    "POST memories-reject": Row({"id": row("memories", variant="proposed")}, narrow=403),
    "POST memories-approve-many": Row(body=ids_of("memories", "proposed"), narrow=403),
    "POST memories-reject-many": Row(body=ids_of("memories", "proposed"), narrow=403),
    "POST memories-supersede": Row(
        {"id": row("memories")}, body=lambda s, h: {"superseded_by": s.row(h, "memories", "spare").pk}
    ),
    # A bot needs a key that is limited to some agents.
    "POST responsibilities-remove": Row(
        AGENT, body=responsibility_title, others={"bot": 403, "bot of elsewhere": 403}
    ),
    "POST tasks-tick": Row({"number": row("tasks")}, {"position": "0"}, constant({"is_done": True})),
    "GET keys-list": Row(narrow=403),
    # A key cannot create a key with more permissions than its own.
    "POST keys-list": Row(body=constant({"name": "Fresh"}), narrow=422, others=dict.fromkeys(LIMITED, 422)),
    "GET keys-one": Row(KEY, narrow=404, others=dict.fromkeys(LIMITED, 404)),
    "POST keys-rotate": Row(
        KEY, body=constant({"overlap_hours": 1}), narrow=404, others=dict.fromkeys(LIMITED, 404)
    ),
    "POST keys-revoke": Row(KEY, narrow=404, others=dict.fromkeys(LIMITED, 404)),
    "GET members-list": Row(narrow=403),
    "GET members-one": Row(MEMBER, narrow=403),
    "PATCH members-one": Row(MEMBER, body=constant({"role": "editor"}), narrow=403),
    "DELETE members-one": Row(MEMBER, narrow=403),
    "GET invitations-list": Row(narrow=403),
    "POST invitations-list": Row(body=constant({"email": "new@example.com", "role": "viewer"}), narrow=403),
    "GET invitations-one": Row(INVITATION, narrow=403),
    "POST invitations-resend": Row(INVITATION, narrow=403),
    "POST invitations-withdraw": Row(INVITATION, narrow=403),
    "GET workspace-one": Row(),
    "PATCH workspace-one": Row(body=constant({"name": "Renamed"}), narrow=403),
    # The new workspace is another one.
    "POST workspaces-list": Row(body=constant({"name": "Fresh", "slug": "fresh"}), changes=False, narrow=403),
    "GET audit-list": Row(query=constant({"kind": "agent"}), narrow=403),
    "GET events-list": Row(query=constant({"after": "0"}), narrow=403),
}

# --- skills, sources, files ----------------------------------------------------------------------------

FILE, SOURCE = {"id": row("files")}, {"slug": row("sources")}
FOUND, PUSHED = {"id": row("files", variant="skill")}, {"slug": row("sources", variant="pushed")}
TEXT = "---\nname: taken-in\ndescription: Taken.\n---\n\nDo.\n"


def with_digest(variant: str, **more: Any) -> Body:
    """A body with the digest of the newest revision, as the caller has read it."""
    return lambda s, h: {"digest": s.row(h, "files", variant).latest.digest, **more}


def pick_files(stage: Stage, home: str) -> Any:
    file = stage.row(home, "files")
    return {"files": [{"id": file.pk, "digest": file.latest.digest}]}


PLAIN_RULES = {"harness": "plain"}
SKILLS: dict[str, Row] = {
    "POST skills-import": Row(body=constant({"text": TEXT}), narrow=403),
    "GET skills-file": Row({"name": row("skills")}),
    "GET agent-skills-list": Row(AGENT),
    "GET found-skills-list": Row(),
    "GET found-skills-trust": Row(narrow=403),
    "POST found-skills-trust": Row(body=constant({"is_required": False}), narrow=403),
    "GET found-skills-one": Row(FOUND),
    "POST found-skills-assign": Row(
        FOUND, body=lambda s, h: {"scope": "selected", "agents": [s.key(h, "agents")]}, narrow=403
    ),
    "POST found-skills-copy": Row(FOUND, narrow=403),
    "POST sources-refresh": Row(SOURCE),
    "POST sources-confirm-removal": Row(
        SOURCE, body=lambda s, h: {"run": s.row(h, "runs", "held").pk}, narrow=403
    ),
    "GET sources-runs": Row(SOURCE),
    "GET sources-run": Row({**SOURCE, "run": run_of_source}),
    # The agent does not use the source that files are pushed to.
    "GET sources-files": Row(PUSHED, narrow=404),
    "POST sources-files-push": Row(
        PUSHED, body=constant({"files": [{"path": "AGENTS.md", "text": "Hi."}]}), narrow=404
    ),
    "PUT sources-file": Row(PUSHED, {"path": "AGENTS.md"}, constant({"text": "Hi."}), narrow=404),
    # The file was pushed with none of these keys: only a key that may manage sources removes it.
    "DELETE sources-file": Row(
        {**PUSHED, "path": path_of_push},
        narrow=404,
        others=dict.fromkeys(("bot", "editor", "bot of elsewhere"), 403),
    ),
    "GET allowed-folders-list": Row(narrow=403),
    "GET rule-sets-list": Row(narrow=403),
    # Every workspace has all rule sets, customised or built-in: their names are not secret.
    "GET rule-sets-one": Row(values=PLAIN_RULES, narrow=403),
    "PUT rule-sets-one": Row(
        values=PLAIN_RULES, body=constant({"rules": [{"kind": "context", "paths": ["F.md"]}]}), narrow=403
    ),
    "DELETE rule-sets-one": Row(values=PLAIN_RULES, narrow=403),
    "POST rule-sets-restore": Row(values=PLAIN_RULES, changes=False, narrow=403),
    "GET rule-sets-revisions": Row(values=PLAIN_RULES, narrow=403),
    "POST rule-sets-restore-revision": Row(
        values={**PLAIN_RULES, "revision": "1"}, changes=False, narrow=403
    ),
    "GET context-files-list": Row(),
    "GET context-files-one": Row(FILE),
    "GET context-files-revisions": Row(FILE),
    "GET context-files-revision": Row(FILE, {"revision": "1"}),
    "POST context-files-approve-many": Row(body=pick_files, narrow=403),
    "POST context-files-approve": Row(FILE, body=with_digest("plain"), narrow=403),
    "POST context-files-ignore": Row(FILE, narrow=403),
    "POST context-files-unignore": Row({"id": row("files", variant="ignored")}, narrow=403),
    "POST context-files-waive": Row(
        {"id": row("files", variant="quarantined")},
        body=with_digest("quarantined", reason="A quotation."),
        narrow=403,
    ),
    "POST context-files-end-waiver": Row(
        {"id": row("files", variant="waived"), "waiver": row("waivers", variant="waived")}, narrow=403
    ),
    "GET agent-context": Row(AGENT),
    "PUT agent-context": Row(AGENT, body=constant({"source": None, "harness": "pi"})),
    "DELETE agent-context": Row(AGENT),
}

# --- prompts -------------------------------------------------------------------------------------------

PROMPT = {**AGENT, "channel": row("channels")}
VERSION, ENTRY = {"digest": row("prompts", "latest.digest")}, {"id": row("ledger")}
RELEASE = {"number": row("releases", "number")}
LABEL = {**PROMPT, "label": label_of_prompt}
PRODUCTION = {"label": "production"}


def of_prompt(**more: Any) -> Body:
    return lambda s, h: {"agent": s.key(h, "agents"), "channel": s.key(h, "channels"), **more}


def report_body(stage: Stage, home: str) -> Any:
    return of_prompt(digest=stage.row(home, "prompts").latest.digest)(stage, home)


def replay_query(stage: Stage, home: str) -> Any:
    return of_prompt(at=stage.seeded_at)(stage, home)


def edited_soul(stage: Stage, home: str) -> Any:
    return {"kind": "soul", "key": stage.key(home, "souls"), "values": {"text": "Calm."}}


def preview_body(stage: Stage, home: str) -> Any:
    return of_prompt(record=edited_soul(stage, home))(stage, home)


def reviewer_body(stage: Stage, home: str) -> Any:
    """A reviewer of the workspace who has not been asked yet."""
    return {"reviewers": [stage.row(home, "reviewers").user.email]}


# The requester of a release cannot approve it.
ASKED = dict.fromkeys(("owner", "narrow owner", "owner of elsewhere", *LIMITED), 403)
PROMPTS: dict[str, Row] = {
    "GET prompts-list": Row(),
    "POST prompts-rebuild": Row(AGENT),
    "GET versions-list": Row(PROMPT),
    "GET versions-number": Row(PROMPT, {"version": "1"}),
    "GET versions-sizes": Row(PROMPT, {"version": "1"}),
    # Comments can quote the text, which keys of some labels do not read here.
    "GET versions-comments": Row(PROMPT, {"version": "1"}, others={"owner of labels": 403}),
    "POST versions-comments": Row(PROMPT, {"version": "1"}, constant({"line": 1, "text": "Why?"})),
    "DELETE versions-comment": Row(
        {**PROMPT, "comment": row("comments", variant="version")}, {"version": "1"}, others=NOT_THE_AUTHOR
    ),
    "GET versions-one": Row(VERSION),
    "GET versions-places": Row(VERSION),
    "GET versions-provenance": Row(VERSION),
    # Keys of some labels read no text here.
    "GET versions-diff": Row(
        VERSION,
        query=lambda s, h: {"against": s.row(h, "prompts").latest.digest},
        others={"owner of labels": 403},
    ),
    "GET versions-verify": Row(VERSION),
    "GET ledger-list": Row(),
    "GET ledger-outdated": Row(),
    "GET ledger-one": Row(ENTRY, bots=404),
    "GET ledger-replay": Row(ENTRY),
    "GET ledger-evidence": Row(ENTRY),
    "GET replay": Row(query=replay_query),
    "POST prompts-report": Row(body=report_body),
    "GET reports-list": Row(),
    "GET bots-list": Row(),
    "GET labels-list": Row(narrow=403),
    "POST labels-protect": Row(values=PRODUCTION, body=constant({"is_protected": True}), narrow=403),
    "GET prompt-labels-list": Row(PROMPT),
    "POST labels-unpin": Row(PROMPT),
    "GET labels-one": Row(LABEL),
    "PUT labels-one": Row(
        PROMPT, {"label": "fresh"}, constant({"version": 1, "expected": None}), creates=True
    ),
    "DELETE labels-one": Row(LABEL),
    "POST labels-roll-back": Row(PROMPT, PRODUCTION, constant({"note": "Back."})),
    "GET labels-moves": Row(PROMPT, PRODUCTION),
    "GET releases-list": Row(),
    "POST releases-list": Row(
        body=lambda s, h: {"message": "Go", "label": "fresh", "prompts": [of_prompt()(s, h)]}
    ),
    "GET releases-one": Row(RELEASE),
    "POST releases-approve": Row(RELEASE, others=ASKED),
    "POST releases-reject": Row(RELEASE, body=constant({"reason": "No."})),
    "GET releases-comments": Row(RELEASE),
    "POST releases-comments": Row(RELEASE, body=constant({"text": "Why?"})),
    "POST releases-requestAgain": Row(RELEASE),
    "POST releases-requestReview": Row(RELEASE, body=reviewer_body),
    "POST releases-requestChanges": Row(RELEASE, body=constant({"reason": "Softer."}), others=ASKED),
    "POST releases-withdraw": Row(RELEASE),
    "POST releases-publish": Row(RELEASE, others={}),
    "GET erasures-list": Row(narrow=403),
    "GET erasures-one": Row({"id": row("erasures")}, narrow=403),
    "POST erasures-list": Row(
        body=lambda s, h: {"kind": "memory", "record": s.row(h, "memories").pk, "reason": "Asked for."},
        narrow=403,
    ),
    "POST erasures-preview": Row(
        body=lambda s, h: {"kind": "memory", "record": s.row(h, "memories").pk}, changes=False, narrow=403
    ),
    "POST releases-override": Row(RELEASE, body=constant({"reason": "Fire."})),
    # The record is a soul, which such keys cannot read.
    "POST preview": Row(body=preview_body, changes=False, narrow=403, others={"owner on channels": 403}),
    "POST impact": Row(body=edited_soul, changes=False, narrow=403),
    "GET erasures-versions": Row({"id": row("erasures")}, narrow=403),
    "GET replay-evidence": Row(query=replay_query),
    "GET checkpoints-list": Row(narrow=403),
    "GET signing-keys-list": Row(narrow=403),
    "GET verifications-list": Row(narrow=403),
    "GET verifications-one": Row({"id": row("verifications")}, narrow=403),
    # A verification run is already active.
    "POST verifications-list": Row(changes=False, narrow=403),
    "GET rebuild": Row(narrow=403),
    "POST rebuild": Row(narrow=403),
    "GET usages-list": Row(query=lambda s, h: {"kind": "soul", "id": s.row(h, "souls").pk}, narrow=403),
    "GET layouts-list": Row(),
    "GET search": Row(query=constant({"q": "a"}), narrow=403),
    "GET prompt-settings-list": Row(narrow=403),
    "GET prompt-settings-workspace": Row(narrow=403),
    "PUT prompt-settings-workspace": Row(body=constant({"token_budget": 900}), narrow=403),
    "GET prompt-settings-agent": Row(AGENT),
    "PUT prompt-settings-agent": Row(AGENT, body=constant({"token_budget": 900})),
    "GET prompt-settings-channel": Row({"channel": row("channels")}, narrow=403),
    "PUT prompt-settings-channel": Row(
        {"channel": row("channels")}, body=constant({"token_budget": 900}), narrow=403
    ),
    "GET prompt-settings-prompt": Row({**AGENT, "channel": row("channels")}),
    "PUT prompt-settings-prompt": Row(
        {**AGENT, "channel": row("channels")}, body=constant({"token_budget": 900})
    ),
}
SKILL_OF_PROMPT = {**PROMPT, "name": row("skills")}
SERVING: dict[str, Row] = {
    "GET me": Row(),
    **dict.fromkeys(("GET prompt", "GET prompt-text", "GET prompt-skills"), Row(PROMPT, beyond=403)),
    **dict.fromkeys(("GET prompt-skill", "GET prompt-skill-file"), Row(SKILL_OF_PROMPT, beyond=403)),
    "GET agent-skills-one": Row(
        {**AGENT, "name": row("skills")},
        query=lambda s, h: {"channel": row("channels")(s, h)},
        beyond=403,
    ),
    "POST render": Row(PROMPT, body=constant({}), beyond=403),
    # The batch succeeds; rejections are inside its items.
    "POST batch-get": Row(body=lambda s, h: {"prompts": [of_prompt()(s, h)]}, changes=False),
}
EXPORTS = {f"GET {name}-export": Row(narrow=403) for name in EXPORTED_LISTS}
TABLE: dict[str, Row] = {
    **EXPORTS,
    **{name: row for kind in NEW for name, row in family(kind).items()},
    **PERSONAS,
    **SKILLS,
    **PROMPTS,
    **SERVING,
    **WEBHOOK_OPERATIONS,
}


def find_table_gaps(endpoints: list[ApiEndpoint]) -> list[str]:
    """Find operations without a complete row, and rows without an operation."""
    names = {str(endpoint) for endpoint in endpoints}
    findings = [f"{endpoint} {HOW_TO_ADD}" for endpoint in endpoints if str(endpoint) not in TABLE]
    findings += [f"{name} has a row and no operation" for name in TABLE if name not in names | set(SERVING)]
    for endpoint in endpoints:
        if entry := TABLE.get(str(endpoint)):
            missing = set(endpoint.parameters) - set(entry.names) - set(entry.values)
            findings += [f"{endpoint}: parameter {name} {HOW_TO_ADD}" for name in sorted(missing)]
            if endpoint.operation.body and entry.body is None:
                findings.append(f"{endpoint}: body {HOW_TO_ADD}")
    return findings


def known_endpoints() -> list[ApiEndpoint]:
    return [endpoint for endpoint in all_endpoints() if str(endpoint) in TABLE]
