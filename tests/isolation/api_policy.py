"""Expected permissions of the API operations, declared independently.

The declaration of an operation may be wrong.
"""

from personas.api_keys.scopes import FETCH, RENDER, WRITE
from personas.api_keys.scopes import READ as READING
from personas.roles import Permission
from tests.isolation.api_walk import ApiEndpoint

READ, EDIT, APPROVE = Permission.READ, Permission.EDIT, Permission.APPROVE
KEYS, SOURCES = Permission.MANAGE_KEYS, Permission.MANAGE_SOURCES
# Reads require READ and writes require EDIT, except for these.
PERMISSIONS: dict[str, Permission] = {
    "GET keys-list": KEYS,
    "POST keys-list": KEYS,
    "GET keys-one": KEYS,
    "POST keys-rotate": KEYS,
    "POST keys-revoke": KEYS,
    "POST memories-approve": APPROVE,
    "POST context-files-waive": APPROVE,
    "POST context-files-end-waiver": APPROVE,
    "POST labels-follow": APPROVE,
    "POST labels-roll-back": APPROVE,
    "POST releases-approve": APPROVE,
    "POST releases-reject": APPROVE,
    "POST releases-override": KEYS,
    "POST erasures-list": KEYS,
    "POST labels-protect": Permission.MANAGE_MEMBERS,
    "GET source-grants-list": SOURCES,
    "POST found-skills-trust": SOURCES,
    "POST sources-list": SOURCES,
    "PATCH sources-one": SOURCES,
    "PUT sources-one": SOURCES,
    "DELETE sources-one": SOURCES,
    "POST sources-restore": SOURCES,
    "POST sources-restore-revision": SOURCES,
}
# Bots may read everything except users, keys and text that is not approved.
NOT_FOR_BOTS = {
    "GET keys-list",
    "GET keys-one",
    "GET members-list",
    "GET audit-list",
    "GET erasures-list",
    "GET erasures-one",
    "GET found-skills-trust",
    "GET source-grants-list",
    "GET context-files-revision",
    "GET versions-diff",
    "GET replay",
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
SERVED = {"GET prompt": FETCH, "POST render": RENDER, "POST batch-get": ""}
VERBS = {READ: READING, EDIT: WRITE, APPROVE: "approve"}


def permission_for(endpoint: ApiEndpoint) -> Permission:
    plain = READ if endpoint.method == "GET" or str(endpoint) in SERVED else EDIT
    return PERMISSIONS.get(str(endpoint), plain)


def verb_for(endpoint: ApiEndpoint) -> str:
    """The verb that a key needs; empty if any key is enough."""
    return SERVED.get(str(endpoint), VERBS.get(permission_for(endpoint), "manage"))


def is_for_bots(endpoint: ApiEndpoint) -> bool:
    if str(endpoint) in SERVED:
        return True
    return str(endpoint) not in NOT_FOR_BOTS if endpoint.method == "GET" else str(endpoint) in FOR_BOTS


def find_policy_mismatches(endpoints: list[ApiEndpoint]) -> list[str]:
    """Find operations whose declared permission differs from this table, and rows without an operation."""
    names = {str(endpoint) for endpoint in endpoints}
    findings = [
        f"{name} has a row in tests/isolation/api_policy.py and no operation"
        for name in sorted({*PERMISSIONS, *NOT_FOR_BOTS, *FOR_BOTS} - names)
    ]
    for endpoint in endpoints:
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
