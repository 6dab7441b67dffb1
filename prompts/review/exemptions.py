"""Page actions without a review step, each with the reason. All others have it."""

# These write no records that prompts are built from. If one moves production, it fails.
EXEMPT_NAMESPACES = {
    "keys": "API keys",
    "members": "members and invitations",
    "impact": "shows what saving would change, saves nothing",
    "find": "search",
    "verify": "verifies the hash chains",
    "labels": "label protection",
    "time-machine": "replay",
    "ledger": "reads the ledger",
}
EXEMPT_VIEWS = {
    "workspace-settings": "name of the workspace",
    "skills:check": "validates a text that is not saved",
    "studio:preview": "shows the prompt with a draft",
    "studio:layouts": "compares layouts",
    "studio:state": "shows the state of the draft",
    "studio:save": "saves a draft, which no prompt uses",
    "studio:discard": "deletes a draft",
    "fleet:dismiss": "hides the first steps",
    "releases:new": "requests a release",
    "releases:approve": "approves a release, which is published by another action",
    "releases:reject": "rejects a release",
    "releases:withdraw": "withdraws a release",
}
# These let workers or the settings of a source change prompts.
AUTOMATIC_VIEWS = {
    "sources:refresh": "scans a source; files are used at once only if its automatic approval is on",
    "sources:upload": "pushes files; they are used at once only if automatic approval of the source is on",
    "sources:confirm-removal": "approves the removal of files that a scan missed",
    "rebuilding:everything": "rebuilds the same records; its page asks first, with the number of prompts",
    "fleet:demo": "creates the demo workspace's records",
}


def is_exempt(view_name: str) -> bool:
    return view_name in EXEMPT_VIEWS or view_name.partition(":")[0] in EXEMPT_NAMESPACES
