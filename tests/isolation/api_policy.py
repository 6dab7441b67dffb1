"""Expected permissions of the API operations, declared independently: the declaration of an operation may be wrong."""

from personas.api_keys.scopes import FETCH, RENDER, WRITE
from personas.api_keys.scopes import READ as READING
from personas.roles import Permission
from tests.isolation.api_walk import Door

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
    "POST labels-protect": Permission.MANAGE_MEMBERS,
    "GET source-grants-list": SOURCES,
    "POST found-skills-trust": SOURCES,
    "POST sources-list": SOURCES,
    "PATCH sources-one": SOURCES,
    "PUT sources-one": SOURCES,
    "DELETE sources-one": SOURCES,
    "POST sources-restore": SOURCES,
    "POST sources-go-back": SOURCES,
}
# Bots may read everything except users, keys and text that is not approved.
NOT_FOR_BOTS = {
    "GET keys-list",
    "GET keys-one",
    "GET members-list",
    "GET audit-list",
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
    "POST responsibilities-give-up",
    "POST sources-files-push",
    "PUT sources-file",
    "DELETE sources-file",
    "POST prompts-report",
}
# Serving operations require their own verb; in a batch each item is rejected separately.
SERVED = {"GET prompt": FETCH, "POST render": RENDER, "POST batch-get": ""}
VERBS = {READ: READING, EDIT: WRITE, APPROVE: "approve"}


def permission_for(door: Door) -> Permission:
    plain = READ if door.method == "GET" or str(door) in SERVED else EDIT
    return PERMISSIONS.get(str(door), plain)


def verb_for(door: Door) -> str:
    """The verb that a key needs; empty if any key is enough."""
    return SERVED.get(str(door), VERBS.get(permission_for(door), "manage"))


def is_for_bots(door: Door) -> bool:
    if str(door) in SERVED:
        return True
    return str(door) not in NOT_FOR_BOTS if door.method == "GET" else str(door) in FOR_BOTS


def disagreements(doors: list[Door]) -> list[str]:
    """Find operations whose declared permission differs from this table, and rows without an operation."""
    names = {str(door) for door in doors}
    found = [
        f"{name} has a row in tests/isolation/api_policy.py and no operation"
        for name in sorted({*PERMISSIONS, *NOT_FOR_BOTS, *FOR_BOTS} - names)
    ]
    for door in doors:
        told, needed = (
            (door.operation.permission, door.operation.bots),
            (permission_for(door), is_for_bots(door)),
        )
        if told != needed:
            found.append(f"{door} takes {said(*told)}; tests/isolation/api_policy.py has {said(*needed)}")
    return found


def said(permission: Permission, bots: bool) -> str:
    return f"{permission.value}, {'open to bots' if bots else 'not for bots'}"
