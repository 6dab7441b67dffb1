"""Seeds the data other than records: sources, files, keys, versions, releases, ledger."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db import models
from django.utils import timezone

from personas.accounts.encryption import encrypt_secret
from personas.actors import Actor
from personas.contents.services import store_contents
from personas.models import (
    ApiKey,
    Content,
    DailyStorage,
    Erasure,
    Event,
    EventCounter,
    FormDraft,
    IdempotentResponse,
    Membership,
    Notification,
    NotificationPreference,
    NotificationQueue,
    User,
    WebhookAttempt,
    WebhookDelivery,
    WebhookEndpoint,
    WebhookQueue,
    Workspace,
    WorkspaceOwned,
    sha256_digest,
)
from personas.records.revisions import build_revision
from personas.records.services import create_record
from personas.webhooks.signatures import generate_private_key, generate_secret
from prompts.evidence.drift.details import ReportDetails, report_details_json
from prompts.evidence.replay.services import build_replay
from prompts.models import (
    AgentPrompt,
    BotStatus,
    BuildCause,
    CallContent,
    Checkpoint,
    Comment,
    DigestReport,
    LabelRule,
    LedgerBlock,
    LedgerEntry,
    LedgerExpiry,
    PromptSettings,
    PromptVersion,
    ReleaseComment,
    ReleaseReviewer,
    SigningKey,
    VerificationRun,
)
from prompts.publishing.builds.services import rebuild_agents
from prompts.publishing.labels.services import move_label
from prompts.publishing.releases.services import request_release
from skills.discovery.harness_json import harness_to_json
from skills.discovery.harnesses import PLAIN
from skills.models import (
    AgentContext,
    AgentSource,
    AllowedFolder,
    ContextFile,
    FileAgent,
    FileRevision,
    PushedFile,
    RefreshRun,
    RuleSet,
    Waiver,
)
from tests.isolation.canaries import Canaries

Row = models.Model


@dataclass
class Seeder:
    """Fills one workspace; `row` reads seeded rows and `keep` registers new ones."""

    canaries: Canaries
    home: str
    workspace: Workspace
    owner: User
    row: Callable[[str, str], Any]
    keep: Callable[[str, str, Row], None]
    now: datetime = field(default_factory=timezone.now)

    def word(self, place: str) -> str:
        return self.canaries.word(self.home, place)

    def create(self, model: type[WorkspaceOwned], **values: Any) -> Any:
        """Create a row with a canary in every text field that `values` does not set."""
        marked = self.canaries.values(self.home, model)
        row = model(workspace=self.workspace, **(marked | values))
        row.save()
        return row

    def content(self, text: str) -> Content:
        data = text.encode()
        store_contents(self.workspace, {sha256_digest(data): data})
        return Content.objects.in_workspace(self.workspace).get(digest=sha256_digest(data))

    # --- files --------------------------------------------------------------------------------------

    def allowed_folder(self) -> AllowedFolder:
        row: AllowedFolder = self.create(AllowedFolder, path=f"/srv/{self.word('AllowedFolder.path')}")
        self.keep("grants", "plain", row)
        return row

    def files(self) -> None:
        """Create one file in each state that an action needs."""
        source, agent = self.row("sources", "plain"), self.row("agents", "plain")
        lists = {name: [self.word(f"AgentContext.{name}")] for name in ("file_names", "extra_skill_folders")}
        lists["file_names"].append("AGENTS.md")
        context = self.create(AgentContext, agent=agent, harness="plain", **lists)
        self.create(AgentSource, context=context, source=source)
        rules = {"harness": "plain", "rules": self.rules()}
        by = Actor(self.word("Actor.label"), self.owner)
        self.keep("rule-sets", "plain", create_record(RuleSet, self.workspace, rules, by=by))
        for variant, state in {
            "plain": "changed",
            "spare": "new",
            "quarantined": "quarantined",
            "waived": "current",
            "ignored": "ignored",
            "invalid": "invalid",
        }.items():
            self.keep(
                "files", variant, self.file(source, f"{self.word('ContextFile.path')}/AGENTS.md", state)
            )
        path = f".agents/skills/{self.word('ContextFile.path')}/SKILL.md"
        skill = self.file(source, path, "new", file_kind="skill")
        self.keep("files", "skill", skill)
        self.create(FileAgent, file=skill, agent=agent)
        waived = self.row("files", "waived")
        waiver = self.create(
            Waiver,
            file=waived,
            digest=waived.latest.digest,
            until=self.now.date() + timedelta(days=3),
            person=self.owner,
        )
        self.keep("waivers", "waived", waiver)
        pushed = self.row("sources", "pushed")
        self.create(PushedFile, source=pushed, content=self.content(self.word("Content.data")))
        refusal = {name: self.word("RefreshRun.refusals") for name in ("path", "rule", "reason")}
        self.create(
            RefreshRun,
            source=source,
            status="done",
            outcome={"new": 1},
            refusals=[refusal],
            finished_at=self.now,
        )
        held = self.create(
            RefreshRun,
            source=source,
            status="held",
            outcome={},
            refusals=[],
            missing=1,
            missing_paths=[self.word("RefreshRun.missing_paths")],
            finished_at=self.now,
        )
        self.keep("runs", "held", held)

        for status in ("queued", "running"):
            self.create(
                RefreshRun, source=self.row("sources", "spare"), status=status, outcome={}, refusals=[]
            )

    def rules(self) -> dict[str, Any]:
        rules = harness_to_json(PLAIN)
        rules["rules"][0]["paths"] = [f"{self.word('RuleSet.rules')}.md"]
        return rules

    def file(self, source: Any, path: str, status: str, file_kind: str = "context") -> ContextFile:
        file: ContextFile = self.create(
            ContextFile,
            source=source,
            path=path,
            file_kind=file_kind,
            status=status,
            is_ignored=status == "ignored",
            problem=self.word("ContextFile.problem") if status == "invalid" else "",
            first_seen_at=self.now,
            changed_at=self.now,
        )
        good = self.revision(file, 1, "good")
        verdict = "blocked" if status in {"quarantined", "current"} else "good"
        file.latest, file.active = self.revision(file, 2, verdict), good
        file.save()
        return file

    def revision(self, file: ContextFile, number: int, verdict: str) -> FileRevision:
        name = file.path.split("/")[-2]
        head = f"---\nname: {name}\ndescription: {self.word('Content.data')}\n---\n\n"
        text = (head if file.file_kind == "skill" else "") + self.word("Content.data")
        content = self.content(text)
        finding = {"rule": "bidi", "severity": "block", "line": 1, "column": 1}
        problem = {"field": "name", "line": 1, "flaw": None}
        skill = {"name": name, "description": self.word("FileRevision.head"), "metadata": []}
        row: FileRevision = self.create(
            FileRevision,
            file=file,
            number=number,
            digest=content.digest,
            content=content,
            size=len(text),
            verdict=verdict,
            findings=[
                finding | {name: self.word("FileRevision.findings") for name in ("excerpt", "message")}
            ],
            problems=[problem | {"message": self.word("FileRevision.problems")}],
            head=skill,
            first_seen_at=self.now,
        )
        return row

    # --- prompts ------------------------------------------------------------------------------------

    def prompts(self) -> None:
        """Create versions, a custom label, a pending release, and rows that only jobs write."""
        agent, by = self.row("agents", "plain"), Actor(self.word("Actor.label"), self.owner)
        BuildCause.unscoped.filter(workspace=self.workspace).update(
            cause={"by": by.label, "message": by.label}
        )
        rebuild_agents(self.workspace, [agent.pk])
        cause = {
            "kind": "agent",
            "by": self.word("BuildCause.cause"),
            "message": self.word("Revision.message"),
        }
        for is_pinned in (False, True):
            # Two versions have been production, and a third one is pending.
            AgentPrompt.unscoped.filter(agent=agent).update(is_pinned=is_pinned)
            agent.instructions = self.word("Agent.instructions")
            agent.save()
            BuildCause(workspace=self.workspace, agent=agent, cause=cause).save()
            rebuild_agents(self.workspace, [agent.pk])
        BuildCause(workspace=self.workspace, agent=self.row("agents", "spare"), cause=cause).save()
        prompt = AgentPrompt.unscoped.select_related("latest", "agent", "channel").get(agent=agent)
        prompt.problem = self.word("AgentPrompt.problem")
        prompt.save()
        self.keep("prompts", "plain", prompt)
        first = PromptVersion.unscoped.get(prompt=prompt, number=1)
        label, note = self.word("PromptLabel.name"), self.word("LabelMove.note")
        move_label(prompt, label, first, expected=None, by=by, note=note)
        self.create(LabelRule)
        self.release(prompt, by)
        self.ledger(AgentPrompt.unscoped.get(pk=prompt.pk), first)
        self.proof()

    def release(self, prompt: AgentPrompt, by: Actor) -> None:
        label = self.word("Release.label")
        release = request_release(
            self.workspace, [prompt], message=self.word("Release.message"), by=by, label=label
        )
        release.reason = self.word("Release.reason")
        release.decided_label = self.word("Release.decided_label")
        release.cache_prefixes = {"0": {"section": self.word("Release.cache_prefixes")}}
        # Numbers are per workspace; a foreign number must not exist at home.
        release.number += 100 * (self.home == "elsewhere")
        release.save()
        self.keep("releases", "plain", release)
        first = PromptVersion.unscoped.get(prompt=prompt, number=1)
        on_line = self.create(Comment, version=first, line=1, author=self.owner)
        self.keep("comments", "version", on_line)
        on_memory = self.create(Comment, memory=self.row("memories", "plain"), author=self.owner)
        self.keep("comments", "plain", on_memory)
        self.create(ReleaseComment, release=release, author=self.owner)
        self.create(ReleaseReviewer, release=release, user=self.owner)

    def ledger(self, prompt: AgentPrompt, version: PromptVersion) -> None:
        digest = sha256_digest(self.word("ApiKey.digest").encode())
        key = self.create(
            ApiKey, digest=digest, expires_at=self.now + timedelta(days=1), created_by=self.owner
        )
        self.keep("keys", "plain", key)
        draft = LedgerEntry(prompt=prompt, version=version, at=self.now, slots={}, workspace=self.workspace)
        served = build_replay(draft).salted_digest
        entry = self.create(
            LedgerEntry,
            key=key,
            prompt=prompt,
            version=version,
            size=1,
            status=200,
            at=self.now,
            slots={},
            served_digest=served,
            skill=None,
        )
        self.keep("ledger", "plain", entry)
        # The name of its skill is a canary; the version does not offer it.
        self.create(
            LedgerEntry,
            key=key,
            prompt=prompt,
            version=version,
            size=1,
            status=304,
            at=self.now,
            slots={},
        )
        report = self.create(
            DigestReport,
            prompt=prompt,
            key=key,
            version=version,
            digest=version.digest,
            ledger_id=entry.pk,
            is_last_served=True,
            details=report_details_json(
                ReportDetails(path=self.word("DigestReport.details"), status=BotStatus.SAME)
            ),
        )
        self.keep("reports", "plain", report)
        self.drafts()
        self.create(EventCounter, last=1)
        event = self.create(Event, sequence=1, type="label.moved", data={"label": "production"}, at=self.now)
        self.webhooks(event)
        self.notifications(event)
        self.create(IdempotentResponse, body=self.word("IdempotentResponse.body").encode(), at=self.now)
        block = self.create(
            LedgerBlock,
            sequence=1,
            first_id=entry.pk,
            last_id=entry.pk,
            count=1,
            first_at=self.now,
            last_at=self.now,
            at=self.now,
        )
        self.create(LedgerExpiry, block=block, first_id=0, last_id=0, months=6, at=self.now)

    def notifications(self, event: Event) -> None:
        """Create an unread notification and a preference of the owner."""
        member = Membership.objects.in_workspace(self.workspace).get(user=self.owner)
        row = self.create(Notification, member=member, event=event, kind="file_waiting")
        self.create(NotificationPreference, member=member, kind="build_failed", delivery="none")
        self.create(NotificationQueue, position=1)
        self.keep("notifications", "plain", row)

    def webhooks(self, event: Event) -> None:
        """Create a webhook endpoint with a delivery."""
        endpoint = self.create(
            WebhookEndpoint,
            types=[],
            agents=[],
            channels=[],
            labels=[],
            secret=encrypt_secret(generate_secret()),
            private_key=encrypt_secret(generate_private_key()),
        )
        delivery = self.create(WebhookDelivery, endpoint=endpoint, event=event, status="delivered")
        self.create(WebhookAttempt, delivery=delivery, at=self.now, milliseconds=5)
        self.create(WebhookQueue, position=1)
        self.keep("webhooks", "plain", endpoint)
        self.keep("webhook-deliveries", "plain", delivery)

    def drafts(self) -> None:
        """Create a draft of the owner."""
        soul = self.row("souls", "plain")
        self.create(
            FormDraft,
            person=self.owner,
            family="souls",
            key=soul.slug,
            values={"name": [self.word("FormDraft.values")], "text": [self.word("FormDraft.values")]},
            base_revision=soul.revision,
            agent=self.row("agents", "plain"),
            updated_at=self.now,
        )

    def proof(self) -> None:
        self.create(Checkpoint, sequence=1, at=self.now)
        self.keep("signing-keys", "plain", self.create(SigningKey, first_used_at=self.now))
        self.keep("verifications", "plain", self.create(VerificationRun))
        agent, channel = self.row("agents", "spare"), self.row("channels", "spare")
        for level in ({}, {"agent": agent}, {"channel": channel}, {"agent": agent, "channel": channel}):
            row = self.create(PromptSettings, **({"entry": "", "mode": "", "revision": 1} | level))
            build_revision(row, by=Actor(self.word("Actor.label"), self.owner)).save()
        erasure = self.create(Erasure, object_id=987_654, person=self.owner, digests=[], versions=[])
        self.keep("erasures", "plain", erasure)
        day = self.now.date()
        self.create(CallContent, size=5, data=b'"tea"', plain_digest="0" * 64, last_used_on=day)
        self.create(DailyStorage, day=self.now.date(), size=5)
