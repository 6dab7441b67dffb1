"""Table rows of the pages for versions, labels, releases, ledger, replay and Studio."""

from personas.roles import Permission
from prompts.publishing.releases.forms import get_choice_value
from tests.isolation.cast import Stage
from tests.isolation.rows import (
    AGENT,
    APPROVE,
    EDIT,
    ENTRY,
    KEYS,
    OWNERS,
    PROMPT,
    READ,
    RELEASE,
    SOURCES,
    THEN,
    Body,
    Page,
    action,
    form,
)

PROMPTS: dict[str, Page] = {
    "agent-channels:list": Page(objects=AGENT),
    "agent-activity:list": Page(objects=AGENT),
    "versions:list": Page(objects=AGENT),
    "versions:detail": Page(objects=PROMPT),
    "versions:text": Page(objects=PROMPT),
    "versions:json": Page(objects=PROMPT),
    "versions:diff": Page(objects=PROMPT, values={"before": "1", "after": "2"}),
    "versions:peek": Page(objects=PROMPT, values={"number": "2"}),
    "versions:rebuild": action(objects=AGENT),
    "versions:roll-back": action(APPROVE, objects=PROMPT, body=lambda s, h: {"note": "Back."}),
    "versions:unpin": action(APPROVE, objects=PROMPT),
    "versions:label": action(objects=PROMPT, body=lambda s, h: {"label": "fresh"}),
    "versions:remove-label": action(objects=PROMPT, values={"label": "no-such"}, changes=False),
    "search:palette": Page(),
    "builds:everything": Page(read=EDIT, write=EDIT),
    "builds:live": Page(),
    # The permission depends on the bulk action; editors may rebuild.
    "fleet:bulk": action(body=lambda s, h: {"verb": "rebuild", "chosen": [s.row(h, "prompts").pk]}),
    # The workspace already has agents: rejected with a message.
    "fleet:demo": action(SOURCES, changes=False),
    "fleet:traffic": Page(),
    "fleet:dismiss": action(READ, changes=False),
    "holdings:record": Page(objects={"key": ("souls", "pk")}, values={"kind": "soul"}),
    "replay:find": Page(),
    "replay:fetch": Page(objects=ENTRY),
    "replay:fetch-evidence": Page(objects=ENTRY),
    "replay:fetch-text": Page(objects=ENTRY),
    "replay:fetch-tools": Page(objects=ENTRY),
    "replay:moment": Page(objects=PROMPT, values=THEN),
    "replay:moment-evidence": Page(objects=PROMPT, values=THEN),
    "replay:moment-text": Page(objects=PROMPT, values=THEN),
    "replay:moment-tools": Page(objects=PROMPT, values=THEN),
    "ledger:list": Page(),
    "ledger:export": Page(),
    "ledger:stale": Page(),
    "ledger:retention": action(OWNERS, body=lambda s, h: {"ledger_months": "36"}),
    "bots:list": Page(),
    "bots:live": Page(),
    "bots:report": Page(objects={"report": ("reports", "pk")}),
    "integrity:show": Page(),
    "integrity:live": Page(),
    # A verification run is already active.
    "integrity:run": action(changes=False),
    "integrity:key": Page(objects={"key": ("signing-keys", "pk")}),
    "integrity:checkpoints": Page(),
    "comments:memory": Page(
        write=READ,
        objects={"key": ("memories", "pk")},
        body=lambda s, h: {"text": "Why?"},
    ),
    "comments:version": Page(
        write=READ, objects=PROMPT, values={"number": "1"}, body=lambda s, h: {"line": "1", "text": "Why?"}
    ),
    "comments:delete": action(READ, is_personal=True, objects={"key": ("comments", "pk")}),
    "releases:list": Page(),
    "releases:new": Page(
        read=EDIT,
        write=EDIT,
        body=lambda s, h: {"prompts": [get_choice_value(s.row(h, "prompts"))], "message": "Go"},
    ),
    "releases:detail": Page(objects=RELEASE),
    "releases:live": Page(objects=RELEASE),
    "releases:comment": action(READ, objects=RELEASE, body=lambda s, h: {"text": "Why?"}),
    # The requester is the owner, who gets a message; other reviewers request changes.
    "releases:request-changes": action(
        APPROVE, objects=RELEASE, body=lambda s, h: {"text": "Softer."}, changes=False
    ),
    "releases:request-again": action(objects=RELEASE),
    "releases:request-review": action(
        objects=RELEASE, body=lambda s, h: {"reviewers": [s.row(h, "reviewers").pk]}
    ),
    # The owner wrote the seeded versions and requested the release.
    "releases:approve": action(APPROVE, objects=RELEASE, owner_status=403),
    "releases:publish": action(objects=RELEASE, changes=False),
    "releases:reject": action(APPROVE, objects=RELEASE, body=lambda s, h: {"reason": "No."}),
    "releases:withdraw": action(objects=RELEASE),
    "releases:override": action(Permission.OVERRIDE, objects=RELEASE, body=lambda s, h: {"reason": "Fire."}),
    "labels:list": Page(),
    "labels:prompts": Page(values={"label": "production"}),
    "labels:protect": action(OWNERS, body=lambda s, h: {"label": "fresh", "protected": "1"}),
    "impact:new": action(
        values={"family": "memories"},
        body=lambda s, h: {"text": "Fresh.", "status": "active"},
        status=200,
        changes=False,
    ),
    "impact:edit": action(
        objects={"key": ("souls", "slug")},
        values={"family": "souls"},
        body=lambda s, h: {"name": "Fresh", "text": "Calm."},
        status=200,
        changes=False,
    ),
    "prompt-settings:list": Page(),
    "prompt-settings:workspace": form(token_budget=900, revision=1),
    "prompt-settings:agent": Page(
        read=EDIT, write=EDIT, objects=AGENT, body=lambda s, h: {"token_budget": 900}
    ),
    "prompt-settings:origins": Page(objects=AGENT),
    "prompt-settings:channel": Page(
        read=EDIT,
        write=EDIT,
        objects={"channel": ("channels", "slug")},
        body=lambda s, h: {"token_budget": 900},
    ),
    "prompt-settings:prompt": Page(
        read=EDIT,
        write=EDIT,
        objects=AGENT | {"channel": ("channels", "slug")},
        body=lambda s, h: {"token_budget": 900},
    ),
    # Every workspace has this level: its name is not secret.
    "prompt-settings:history": Page(values={"key": "workspace"}),
    "prompt-settings:revision": Page(values={"key": "workspace"}),
    "prompt-settings:revert": action(values={"key": "workspace"}, changes=False),
    "erasures:list": Page(),
    "erasures:detail": Page(),
    "erasures:erase": Page(
        read=KEYS,
        write=KEYS,
        objects={"key": ("memories", "pk")},
        values={"family": "memories"},
        body=lambda s, h: {"reason": "Asked for.", "sure": "on"},
    ),
}


def soul_draft(stage: Stage, home: str) -> Body:
    """Form data of the open Studio part: the agent's soul."""
    return {"name": "Fresh", "text": "Calm.", "revision": stage.row(home, "souls").revision}


def quick_start_body(stage: Stage, home: str) -> Body:
    return {"name": "Fresh", "soul": "Calm.", "channel": stage.row(home, "channels").slug}


# The quick start. Its pages about an agent need a channel of the same workspace.
TARGET = AGENT | {"channel": ("channels", "slug")}
QUICK_START: dict[str, Page] = {
    "quick-start:new": Page(read=EDIT, write=EDIT, body=quick_start_body),
    "quick-start:preview": action(body=quick_start_body, status=200, changes=False),
    "quick-start:connect": Page(objects=TARGET),
    "quick-start:live": Page(objects=TARGET),
    "quick-start:key": action(write=KEYS, objects=TARGET),
}

# Without a part in the URL the agent's soul is open.
STUDIO: dict[str, Page] = {
    "studio:home": Page(),
    "studio:show": Page(objects=AGENT),
    "studio:preview": action(objects=AGENT, body=soul_draft, status=200, changes=False),
    "studio:layouts": action(objects=AGENT, body=soul_draft, status=200, changes=False),
    "studio:state": Page(objects=AGENT),
    "studio:save": action(objects=AGENT, body=soul_draft),
    "studio:review": Page(read=EDIT, write=EDIT, objects=AGENT, body=soul_draft),
    "studio:drafts": Page(),
    # A draft exists only for its author: other users get "no draft".
    "studio:discard": action(body=lambda s, h: {"part": f"souls:{s.row(h, 'souls').slug}"}, changes=False),
}
