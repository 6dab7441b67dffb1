"""Text of the OpenAPI document that is not about single operations: introduction, licence, tags."""

API_DESCRIPTION = """\
Dramatis assembles, versions and serves the prompts of AI agents. With this API, bots fetch prompts, propose
memories, update tasks and load skills, and scripts manage everything else.

**Authentication.** Send an API key in the header `Authorization: Bearer drm_…`. A key belongs to one
workspace. Its verbs define what it can do, and it can be limited to agents, channels and labels. The
security scheme of an operation names the verb that its key needs.

**Errors** are problem details (RFC 9457) with a stable `code`; `errors` names the invalid values.

**Concurrent changes.** Records have an ETag. Requests that change a record need it in `If-Match`, so that no
other change is overwritten.

**Retries.** Requests that create something accept an `Idempotency-Key`: sent again with the same key and the
same body, the first response is returned again, with the header `Idempotency-Replayed: true`.

**Headers.** Every response has `X-Request-ID`, and with a valid key `RateLimit` and `RateLimit-Policy`.
Responses to changes have `Dramatis-Prompts-Built`, `Dramatis-Prompts-Pending` and `Dramatis-Prompts-Failed`:
how many prompts got a new version, will be rebuilt by workers, and could not be built.

**Lists** are returned in pages: send `next_cursor` of a page as `cursor` to get the next one.

**Bulk actions** change all records that the body names, or none: if one cannot be changed, the problem names
its id. They need no `If-Match`.

**Exports** are CSV or JSON. A last line says if rows are missing. Cells that a spreadsheet would take for a
formula begin with an apostrophe."""
LICENSE = {"name": "MIT", "identifier": "MIT"}
TAG_DESCRIPTIONS = {
    "agents": "The bots that prompts are assembled for, with the skills and context files that they read.",
    "identities": "Who an agent is: name, emoji, creature and vibe.",
    "souls": "The character and principles of an agent, in Markdown. Several agents can share a soul.",
    "user-profiles": "Who an agent talks to.",
    "channels": "Where agents communicate, such as web, telegram or api.",
    "tools": "The functions that agents can call.",
    "memories": "Facts that agents know. Memories of bots are proposals until someone approves them.",
    "responsibilities": "What an agent must always do.",
    "tasks": "What an agent works on now, in steps.",
    "keys": "API keys: create, rotate and revoke them.",
    "members": "The users of the workspace, their roles, and invitations.",
    "workspace": "The workspace that the key belongs to.",
    "audit": "Who changed what, and when.",
    "webhooks": "URLs that get the events of the workspace.",
    "events": "What happened in the workspace, in order, for programs.",
    "skills": "Instructions that agents load on demand, as records of the workspace.",
    "discovered-skills": "Skills that were discovered as SKILL.md files in sources.",
    "sources": "Folders, or files pushed through the API, that context files and skills come from.",
    "rule-sets": "What each harness reads in sources: which files, where, and in which order.",
    "context-files": "Files found in sources, such as AGENTS.md, with their findings and decisions.",
    "prompts": "Fetch and render prompts. This is what bots call.",
    "prompt-versions": "The numbered, immutable versions of prompts: text, provenance, differences.",
    "ledger": "One entry for every prompt that was served, with replay and evidence.",
    "integrity": "Checkpoints, their signing keys, and verification of all hash chains.",
    "reports": "Which prompts bots say they have loaded, compared with what is released and was served.",
    "labels": "Pointers to versions. Bots fetch `production` unless they name another label.",
    "releases": "Versions that move to production together, after approval where it is required.",
    "erasures": "Removal of the data of a person from records, versions and the ledger.",
    "impact": "What an unsaved change would do to prompts. Nothing is stored.",
    "layouts": "The formats of prompts, with their sections in order.",
    "search": "Search over everything in the workspace.",
    "prompt-settings": "Settings of prompts on four levels: workspace, channel, agent, agent on a channel.",
}


def build_api_info(server: str) -> dict[str, object]:
    """Return the `info` of the document. The contact is the installation itself: its operator runs it."""
    return {
        "title": "Dramatis",
        "version": "1",
        "summary": "Prompts of AI agents: records, versions, labels and the ledger",
        "description": API_DESCRIPTION,
        "license": LICENSE,
        "contact": {"name": "The operator of this installation", "url": f"{server}/api/v1/docs/"},
    }
