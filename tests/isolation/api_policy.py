"""Expected permissions of the API operations, declared independently.

The declaration of an operation may be wrong.
"""

from collections.abc import Iterable

from personas.api_keys.scopes import FETCH, RENDER, WRITE
from personas.api_keys.scopes import READ as READING
from personas.roles import Permission
from tests.isolation.api_walk import ApiEndpoint

READ, EDIT, APPROVE = Permission.READ, Permission.EDIT, Permission.APPROVE
KEYS, SOURCES = Permission.MANAGE_KEYS, Permission.MANAGE_SOURCES
MEMBERS = Permission.MANAGE_MEMBERS
EXPORTED_RECORDS = (
    *("agents", "identities", "souls", "user-profiles", "channels", "tools", "memories", "responsibilities"),
    *("tasks", "skills", "sources", "labels", "checkpoints"),
)
# The pages ask for the password before these exports.
SENSITIVE_EXPORTS = ("audit", "ledger", "keys", "members")
EXPORTS = [f"GET {name}-export" for name in (*EXPORTED_RECORDS, *SENSITIVE_EXPORTS)]
# Reads require READ and writes require EDIT, except for these.
PERMISSIONS: dict[str, Permission] = {
    **{f"GET {name}-export": MEMBERS for name in SENSITIVE_EXPORTS},
    "GET keys-list": KEYS,
    "POST keys-list": KEYS,
    "GET keys-one": KEYS,
    "POST keys-rotate": KEYS,
    "POST keys-revoke": KEYS,
    "GET webhooks-list": KEYS,
    "POST webhooks-list": KEYS,
    "GET webhooks-one": KEYS,
    "PATCH webhooks-one": KEYS,
    "DELETE webhooks-one": KEYS,
    "POST webhooks-rotate": KEYS,
    "POST webhooks-test": KEYS,
    "GET webhooks-deliveries": KEYS,
    "POST webhooks-redeliver": KEYS,
    "POST memories-approve": APPROVE,
    "POST memories-approve-many": APPROVE,
    "POST memories-reject": APPROVE,
    "POST memories-reject-many": APPROVE,
    "POST context-files-waive": APPROVE,
    "POST context-files-end-waiver": APPROVE,
    "POST labels-unpin": APPROVE,
    "POST labels-roll-back": APPROVE,
    "POST releases-approve": APPROVE,
    "POST releases-reject": APPROVE,
    "POST releases-requestChanges": APPROVE,
    "POST releases-override": Permission.OVERRIDE,
    "POST erasures-list": KEYS,
    "POST erasures-preview": KEYS,
    "POST labels-protect": MEMBERS,
    "PATCH members-one": MEMBERS,
    "DELETE members-one": MEMBERS,
    "POST invitations-list": MEMBERS,
    "POST invitations-resend": MEMBERS,
    "POST invitations-withdraw": MEMBERS,
    "PATCH workspace-one": MEMBERS,
    "POST workspaces-list": MEMBERS,
    "GET allowed-folders-list": SOURCES,
    "POST found-skills-trust": SOURCES,
    "POST sources-list": SOURCES,
    "PATCH sources-one": SOURCES,
    "PUT sources-one": SOURCES,
    "DELETE sources-one": SOURCES,
    "POST sources-restore": SOURCES,
    "POST sources-restore-revision": SOURCES,
    "PUT rule-sets-one": SOURCES,
    "DELETE rule-sets-one": SOURCES,
    "POST rule-sets-restore": SOURCES,
    "POST rule-sets-restore-revision": SOURCES,
}
# Bots read names, numbers, states, digests and dates, and text only if they wrote it themselves. All other
# text is served to them (SERVED). tests/isolation/test_bot_reads.py calls each of these operations.
READ_BY_BOTS = {
    "GET workspace-one",
    "GET memories-list",
    "GET memories-one",
    "GET tasks-list",
    "GET tasks-one",
    "GET sources-runs",
    "GET sources-run",
    "GET sources-files",
    "GET prompts-list",
    "GET versions-list",
    "GET versions-number",
    "GET versions-one",
    "GET ledger-list",
    "GET ledger-outdated",
    "GET ledger-one",
    "GET bots-list",
    "GET reports-list",
    "GET labels-list",
    "GET prompt-labels-list",
    "GET labels-one",
}
# Bots may write their own records.
FOR_BOTS = {
    "POST memories-list",
    "POST tasks-list",
    "POST tasks-tick",
    "POST responsibilities-remove",
    "POST sources-files-push",
    "PUT sources-file",
    "DELETE sources-file",
    "POST prompts-report",
}
# Serving operations require their own verb; in a batch each item is rejected separately.
SERVED = {
    "GET prompt": FETCH,
    "GET prompt-text": FETCH,
    "GET prompt-skills": FETCH,
    "GET prompt-skill": FETCH,
    "GET prompt-skill-file": FETCH,
    "GET agent-skills-one": FETCH,
    "POST render": RENDER,
    "POST batch-get": "",
    "GET me": "",
}
VERBS = {READ: READING, EDIT: WRITE, APPROVE: "approve", Permission.OVERRIDE: "override"}


# What limited keys may use, in groups of operations: those that name no agent, channel or label are closed to
# them; a memory names its agent, but not the channels on which it is part of prompts; and so on.
SHARED_RECORDS = ("identities", "souls", "user-profiles", "tools")
# Their reads show only what the key's agents use; their writes concern all agents.
ASSIGNED_RECORDS = ("skills", "sources", "found-skills", "context-files")
AGENT_RECORDS = ("agents", "memories", "responsibilities", "tasks", "agent-skills", "agent-context")
REACHES: dict[str, str] = {
    **dict.fromkeys(EXPORTS, "workspace"),
    "GET workspace-one": "agent",
    "GET keys-list": "workspace",
    "GET audit-list": "workspace",
    "GET events-list": "workspace",
    "GET labels-list": "workspace",
    "POST labels-protect": "workspace",
    "GET allowed-folders-list": "workspace",
    "GET found-skills-trust": "workspace",
    "GET skills-revisions": "workspace",
    "GET prompt-settings-list": "workspace",
    "GET prompt-settings-workspace": "workspace",
    "PUT prompt-settings-workspace": "workspace",
    "POST agents-list": "workspace",
    "POST agents-import": "workspace",
    "POST memories-import": "workspace",
    "POST channels-list": "workspace",
    "POST memories-list": "proposal",
    "POST prompts-report": "report",
    "GET reports-list": "report",
    "POST sources-refresh": "agent",
    "POST sources-files-push": "agent",
    "PUT sources-file": "agent",
    "DELETE sources-file": "agent",
    "POST prompts-rebuild": "agent",
    "POST impact": "agent",
    "GET prompt-settings-agent": "agent",
    "PUT prompt-settings-agent": "agent",
    "GET prompt-settings-channel": "channel",
    "PUT prompt-settings-channel": "channel",
    "GET prompt-settings-prompt": "prompt",
    "PUT prompt-settings-prompt": "prompt",
    "GET prompts-list": "prompt",
    "POST preview": "prompt",
}
GROUPS = {
    **dict.fromkeys(SHARED_RECORDS, "workspace"),
    **dict.fromkeys(AGENT_RECORDS, "agent"),
    "channels": "channel",
    "keys": "key",
    "webhooks": "workspace",
    "members": "workspace",
    "invitations": "workspace",
    "me": "key",
    "erasures": "workspace",
    "rule-sets": "workspace",
    **dict.fromkeys(("checkpoints", "signing-keys", "verifications", "rebuild"), "workspace"),
    **dict.fromkeys(("workspace", "workspaces"), "workspace"),
    "usages": "workspace",
    "search": "workspace",
    "layouts": "agent",
    "versions": "prompt",
    **dict.fromkeys(("labels", "prompt-labels", "releases", "ledger", "replay", "bots"), "label"),
    **dict.fromkeys(("prompt", "prompt-text", "render", "batch-get"), "label"),
    **dict.fromkeys(("prompt-skills", "prompt-skill", "prompt-skill-file", "agent-skills-one"), "label"),
}
ALL_LIMITS = {"agents", "channels", "labels"}
# The limits with which a key may read or write what an operation reaches.
OPEN_WITH: dict[str, tuple[set[str], set[str]]] = {
    "workspace": (set(), set()),
    "agent": (ALL_LIMITS, {"agents"}),
    "channel": ({"channels", "labels"}, {"channels"}),
    "prompt": (ALL_LIMITS, {"agents", "channels"}),
    "label": (ALL_LIMITS, ALL_LIMITS),
    "key": (ALL_LIMITS, ALL_LIMITS),
    "report": (ALL_LIMITS, ALL_LIMITS),
    # Of bots, and active at once with an admin key.
    "proposal": (ALL_LIMITS, {"agents"}),
}


def reach_of(endpoint: ApiEndpoint) -> str:
    if str(endpoint) in REACHES:
        return REACHES[str(endpoint)]
    for name in ASSIGNED_RECORDS:
        if endpoint.name.startswith(f"{name}-"):
            return "agent" if endpoint.method == "GET" else "workspace"
    names = [name for name in GROUPS if endpoint.name == name or endpoint.name.startswith(f"{name}-")]
    return GROUPS[max(names, key=len)]


def is_open_with(endpoint: ApiEndpoint, limits: Iterable[str], *, is_bot: bool) -> bool:
    """Whether a key with these limits may use the operation for rows within them."""
    reach = reach_of(endpoint)
    readable, writable = OPEN_WITH[reach]
    is_read = permission_for(endpoint) is READ
    allowed = ALL_LIMITS if reach == "proposal" and is_bot else readable if is_read else writable
    return set(limits) <= allowed


def permission_for(endpoint: ApiEndpoint) -> Permission:
    plain = READ if endpoint.method == "GET" or str(endpoint) in SERVED else EDIT
    return PERMISSIONS.get(str(endpoint), plain)


def verb_for(endpoint: ApiEndpoint) -> str:
    """The verb that a key needs; empty if any key is enough."""
    return SERVED.get(str(endpoint), VERBS.get(permission_for(endpoint), "manage"))


def is_for_bots(endpoint: ApiEndpoint) -> bool:
    if str(endpoint) in SERVED:
        return True
    return str(endpoint) in (READ_BY_BOTS if endpoint.method == "GET" else FOR_BOTS)


def find_policy_mismatches(endpoints: list[ApiEndpoint]) -> list[str]:
    """Find operations whose declared permission differs from this table, and rows without an operation."""
    names = {str(endpoint) for endpoint in endpoints}
    findings = [
        f"{name} has a row in tests/isolation/api_policy.py and no operation"
        for name in sorted({*PERMISSIONS, *READ_BY_BOTS, *FOR_BOTS} - names)
    ]
    for endpoint in endpoints:
        # The history of a skill is read like the skill, but its handler closes it to limited keys.
        if str(endpoint) != "GET skills-revisions" and endpoint.operation.touches != reach_of(endpoint):
            findings.append(
                f"{endpoint} touches {endpoint.operation.touches}; "
                f"tests/isolation/api_policy.py has {reach_of(endpoint)}"
            )
        declared = (endpoint.operation.permission, endpoint.operation.bots)
        expected = (permission_for(endpoint), is_for_bots(endpoint))
        if declared != expected:
            findings.append(
                f"{endpoint} takes {describe(*declared)}; "
                f"tests/isolation/api_policy.py has {describe(*expected)}"
            )
    return findings


def describe(permission: Permission, bots: bool) -> str:
    return f"{permission.value}, {'open to bots' if bots else 'not for bots'}"
