"""Table rows of the pages for sources, files, rule sets and skills."""

from collections.abc import Callable
from datetime import timedelta

from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from skills.archives import write_zip
from tests.isolation.cast import Stage
from tests.isolation.rows import AGENT, APPROVE, SOURCES, Body, Page, action, form


def with_digest(variant: str) -> Callable[[Stage, str], Body]:
    """Form data with the digest of the newest revision, as the user has read it."""
    return lambda s, h: {"digest": s.row(h, "files", variant).latest.digest}


def waiver_form(stage: Stage, home: str) -> Body:
    until = (timezone.now() + timedelta(days=3)).date().isoformat()
    return with_digest("quarantined")(stage, home) | {"reason": "A quotation.", "until": until}


def zip_upload(stage: Stage, home: str) -> Body:
    return {"archive": SimpleUploadedFile("a.zip", write_zip([("AGENTS.md", b"Hi.")]))}


def rule_set_form(stage: Stage, home: str) -> Body:
    rules = '{"rules": [{"kind": "context", "paths": ["FRESH.md"]}]}'
    revision = stage.row(home, "rule-sets").revision
    return {"revision": revision, "kinds": ["context", "skill"], "rules": rules}


FILES: dict[str, Page] = {
    "sources:refresh": action(),
    "sources:confirm-removal": action(body=lambda s, h: {"run": s.row(h, "runs", "held").pk}),
    "sources:live": Page(),
    "sources:upload": action(variant="pushed", body=zip_upload),
    "skills:import": form(text="---\nname: taken-in\ndescription: Taken.\n---\n\nDo.\n"),
    "skills:copy": action(variant="skill", objects={"file_id": ("files", "pk")}),
    "skills:export": Page(),
    "skills:check": action(body=lambda s, h: {"name": "Bad Name"}, status=200, changes=False),
    "skills:trust-policy": action(SOURCES, body=lambda s, h: {"needed": "0"}),
    "rule-sets:list": Page(),
    # Every workspace has all rule sets, customised or built-in: their names are not secret.
    "rule-sets:detail": Page(values={"key": "plain"}),
    "rule-sets:edit": Page(read=SOURCES, write=SOURCES, values={"key": "plain"}, body=rule_set_form),
    "rule-sets:reset": action(SOURCES, values={"key": "plain"}),
    "rule-sets:restore": action(SOURCES, values={"key": "plain"}, changes=False),
    "rule-sets:history": Page(values={"key": "plain"}),
    "rule-sets:revision": Page(values={"key": "plain"}),
    "rule-sets:revert": action(SOURCES, values={"key": "plain"}, changes=False),
    "inbox:list": Page(),
    "inbox:live": Page(),
    "inbox:approve-selected": action(changes=False),
    "files:detail": Page(),
    "files:live": Page(),
    "files:peek": Page(),
    "files:revision": Page(),
    "files:raw": Page(),
    "files:approve": action(body=with_digest("plain")),
    "files:reject": action(body=with_digest("plain")),
    "files:ignore": action(),
    "files:unignore": action(variant="ignored"),
    "files:waive": action(APPROVE, variant="quarantined", body=waiver_form),
    "files:end-waiver": action(APPROVE, variant="waived", objects={"waiver": ("waivers", "pk")}),
    "files:assign": action(variant="skill", body=lambda s, h: {"assigned_to": "all"}),
    "files:export": Page(variant="skill"),
    "agent-skills:list": Page(objects=AGENT),
    "agent-context:detail": Page(objects=AGENT),
    "agent-context:live": Page(objects=AGENT),
    "agent-context:choose": action(
        objects=AGENT,
        body=lambda s, h: {"source_1": "", "harness": "pi", "revision": s.row(h, "agents").revision},
    ),
    "agent-context:inherit": action(objects=AGENT),
}
