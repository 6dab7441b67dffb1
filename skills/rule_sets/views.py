"""Pages for discovery rules: list, detail, edit, reset, history."""

import json
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from personas.actors import Actor
from personas.errors import DomainError, EditConflict, InvalidInput
from personas.models import Workspace
from personas.records.services import restore_record
from personas.records.views import RecordPages, post_only
from personas.roles import Permission
from personas.selectors import list_revisions
from personas.tenancy.middleware import WorkspaceRequest
from personas.ui.review import REVERT_REVIEW, Reviewed
from skills.discovery.harness_json import harness_to_json
from skills.discovery.harnesses import HARNESSES
from skills.models import RuleSet
from skills.refresh.runs import request_refresh
from skills.rule_sets.descriptions import describe_caps, describe_rules
from skills.rule_sets.forms import RuleSetForm, format_editable_rules
from skills.rule_sets.selectors import HarnessRules, list_harness_rules, list_rule_sets
from skills.rule_sets.services import reset_rules, save_rules
from skills.tasks import enqueue_refresh_run


class RuleSetPages(RecordPages[RuleSet]):
    """Pages for the rules of each harness.

    All harnesses are listed, but a RuleSet record exists only for a harness whose rules a user has changed.
    """

    model = RuleSet
    one, many = gettext_lazy("rule set"), gettext_lazy("Discovery rules")
    name, icon, templates = "rule-sets", "rules", "skills/rule_sets"
    lede = gettext_lazy("Which files each harness reads, where, and in which order.")
    key, write_permission = "harness", Permission.MANAGE_SOURCES
    # No impact preview: the effect of an edit on prompts is known only after the refresh that follows it.
    feeds_prompts = False

    def rows(self, request: WorkspaceRequest) -> QuerySet[RuleSet]:
        return list_rule_sets(request.workspace)

    # --- pages ------------------------------------------------------------------------------------------

    def index(self, request: WorkspaceRequest) -> HttpResponse:
        return self.render_page(request, "list", {"rule_sets": list_harness_rules(request.workspace)})

    def detail(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        harness_rules = self.get_harness_rules(request, key)
        rows, caps = describe_rules(harness_rules.harness), describe_caps(harness_rules.harness.caps)
        history = list_revisions(harness_rules.rule_set).defer("data")[:5] if harness_rules.rule_set else []
        context = {"rules": harness_rules, "rows": rows, "caps": caps, "revisions": list(history)}
        return self.render_page(request, "detail", context | self.build_urls(request, key))

    def edit(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        harness_rules = self.get_harness_rules(request, key)
        form = RuleSetForm(request.POST if request.method == "POST" else None, harness_rules=harness_rules)
        context = {"rules": harness_rules, "form": form} | self.build_urls(request, key)
        if request.method == "POST" and form.is_valid():
            try:
                return self.save_form(request, harness_rules, form)
            except EditConflict as conflict:
                context |= {
                    "conflict": conflict,
                    "theirs": format_editable_rules(conflict.record.snapshot()["rules"]),
                }
                return self.render_page(request, "form", context, status=409)
            except InvalidInput as error:
                form.add_error(
                    "rules",
                    [message for field_messages in error.errors.values() for message in field_messages],
                )
        return self.render_page(request, "form", context, status=422 if form.errors else 200)

    @transaction.atomic
    def save_form(
        self, request: WorkspaceRequest, harness_rules: HarnessRules, form: RuleSetForm
    ) -> HttpResponse:
        overwrite = request.POST.get("overwrite", "")
        is_overwrite = overwrite.isdecimal() and len(overwrite) < 10
        expected_revision = int(overwrite) if is_overwrite else form.cleaned_data["revision"] or 0
        before = harness_rules.rule_set.revision if harness_rules.rule_set and harness_rules.is_custom else 0
        rule_set = save_rules(
            request.workspace,
            harness_rules.name,
            form.values(),
            expected_revision=expected_revision,
            by=request.actor,
        )
        is_changed = rule_set is not None and rule_set.revision != before
        messages.success(
            request,
            _("“%(name)s” saved.") % {"name": harness_rules.name} if is_changed else _("Nothing changed."),
        )
        return self.redirect_to_detail(request, harness_rules.name, is_changed=is_changed)

    @transaction.atomic
    def reset(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        harness_rules = self.get_harness_rules(request, key)
        reset_rules(request.workspace, key, by=request.actor)
        messages.success(request, _("“%(name)s” uses the built-in rules again.") % {"name": key})
        return self.redirect_to_detail(request, key, is_changed=harness_rules.is_custom)

    @transaction.atomic
    def restore(self, request: WorkspaceRequest, key: str) -> HttpResponse:
        rule_set = self.find(request, key)
        restore_record(rule_set, by=request.actor)
        messages.success(request, _("“%(name)s” uses your custom rules again.") % {"name": key})
        return self.redirect_to_detail(request, key, is_changed=rule_set.is_archived)

    def revision(self, request: WorkspaceRequest, key: str, number: int) -> HttpResponse:
        rule_set = self.find(request, key)
        revision = get_object_or_404(list_revisions(rule_set), number=number)
        earlier = list_revisions(rule_set).filter(number=number - 1).first()
        before = earlier.data["rules"] if earlier else harness_to_json(HARNESSES[key])
        texts = {"before": format_rules(before), "after": format_rules(revision.data["rules"])}
        return self.render_page(
            request, "revision", {"record": rule_set, "revision": revision, "earlier": earlier} | texts
        )

    @transaction.atomic
    def revert(self, request: WorkspaceRequest, key: str, number: int) -> HttpResponse:
        before = self.find(request, key)
        response = super().revert(request, key, number)
        if self.find(request, key).revision != before.revision:
            request_rule_refreshes(request.workspace, key, by=request.actor)
        return response

    # --- helpers ----------------------------------------------------------------------------------------

    def get_harness_rules(self, request: WorkspaceRequest, key: str) -> HarnessRules:
        if key not in HARNESSES:
            raise Http404("Rule set not found.")
        return list_harness_rules(request.workspace, [key])[0]

    def redirect_to_detail(self, request: WorkspaceRequest, key: str, *, is_changed: bool) -> HttpResponse:
        if is_changed:
            request_rule_refreshes(request.workspace, key, by=request.actor)
        return redirect("rule-sets:detail", request.workspace.slug, key)

    def build_urls(self, request: WorkspaceRequest, key: str) -> dict[str, Any]:
        page_urls = {
            page: reverse(f"rule-sets:{page}", args=[request.workspace.slug, key]) for page in LINKED_PAGES
        }
        return {"urls": page_urls}

    def urls(self) -> tuple[list[URLPattern], str]:
        record_path = "<slug:key>/"
        routes = [
            path("", self.index, name="list"),
            path(record_path, self.detail, name="detail"),
            path(f"{record_path}edit/", self.require_write(self.edit, Reviewed()), name="edit"),
            path(f"{record_path}reset/", post_only(self.require_write(self.reset, Reviewed())), name="reset"),
            path(
                f"{record_path}restore/",
                post_only(self.require_write(self.restore, REVERT_REVIEW)),
                name="restore",
            ),
            path(f"{record_path}history/", self.history, name="history"),
            path(f"{record_path}history/<int:number>/", self.revision, name="revision"),
            path(
                f"{record_path}history/<int:number>/restore/",
                post_only(self.require_write(self.revert, REVERT_REVIEW)),
                name="revert",
            ),
        ]
        return routes, self.name


LINKED_PAGES = ("detail", "edit", "history")


def request_rule_refreshes(workspace: Workspace, harness: str, *, by: Actor) -> None:
    """Request a refresh of each source that uses the rules of this harness."""
    for source in list_harness_rules(workspace, [harness])[0].sources:
        try:
            enqueue_refresh_run(request_refresh(source, cause="rules", by=by))
        except DomainError:
            # The source was archived in the meantime and needs no refresh.
            continue


def format_rules(rules: dict[str, Any]) -> str:
    return json.dumps(rules, indent=2, ensure_ascii=False)


urls = RuleSetPages().urls()
