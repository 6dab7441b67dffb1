"""Foreign ids in form fields, filters and unexpected fields: they must be rejected or ignored."""

from collections.abc import Iterator
from inspect import unwrap
from itertools import count, product
from typing import Any

from django import forms
from django.db.models import Model

from personas.memories.forms import SuccessorForm
from personas.records.forms import RecordForm
from personas.records.views import RecordPages
from prompts.publishing.settings.forms import PromptSettingsForm
from skills.agent_context.forms import ContextForm
from skills.files.forms import AssignmentForm
from skills.models import AllowedFolder
from tests.isolation.canaries import OUR_APPS
from tests.isolation.cast import ELSEWHERE, HARBOUR, KINDS, Stage, rolled_back
from tests.isolation.expectations import INSIDE, NEW
from tests.isolation.matrix import Outcome, changes, inside_routes, leaks, named_rows
from tests.isolation.probe import quick_templates, send_request
from tests.isolation.turns import PAGES, is_due
from tests.isolation.walk import Route

# Forms with record choices that are not record forms; run_other_forms tests them.
OTHER_FORMS: dict[type[forms.BaseForm], tuple[str, dict[str, str]]] = {
    SuccessorForm: ("memories:supersede", {"successor": "memories"}),
    AssignmentForm: ("files:assign", {"agents": "agents"}),
    ContextForm: ("agent-context:choose", {"source_1": "sources"}),
}
MORE_ROWS: dict[type[Model], str] = {AllowedFolder: "grants"}
# Query parameters of filters.
FILTERS = ("agent", "page", "shelf", "state", "layout", "status", "workspace", "workspace_id", "key")
OVERPOSTED = ("workspace", "workspace_id", "id", "pk", "archived_at", "superseded_by", "author", "number")


def families() -> dict[str, RecordPages[Any]]:
    """The record page classes by name, from the routes."""
    views = [route.view for route in inside_routes() if route.name.endswith(":new")]
    # Views with decorators are wrapped.
    owners = [getattr(unwrap(view), "__self__", None) for view in views]
    return {pages.name: pages for pages in owners if isinstance(pages, RecordPages)}


def find_untested_forms() -> list[str]:
    """Find forms with record choices that this module does not test."""
    tested = (
        {pages.form for pages in families().values()} | set(OTHER_FORMS) | {RecordForm, PromptSettingsForm}
    )
    return [
        f"{form.__name__} takes ids and is not tested: add it to tests/isolation/substitution.py"
        for form in all_forms(forms.BaseForm)
        if form not in tested and any(choice_fields(getattr(form, "base_fields", {})))
    ]


def all_forms(form: type[forms.BaseForm]) -> Iterator[type[forms.BaseForm]]:
    for subclass in form.__subclasses__():
        app, _, module = subclass.__module__.partition(".")
        # Admin forms are excepted: operators may see everything.
        if app in OUR_APPS and module != "admin":
            yield subclass
        yield from all_forms(subclass)


def choice_fields(fields: dict[str, forms.Field]) -> "Iterator[tuple[str, forms.ModelChoiceField[Any]]]":
    for name, field in fields.items():
        if isinstance(field, forms.ModelChoiceField):
            yield name, field


def run_form_fields(stage: Stage, turn: int | None = None) -> Outcome:
    """Send a foreign id in each choice of each form, new and edit: 422 on that field, nothing linked."""
    outcome, number = Outcome(), count()
    for kind, pages in families().items():
        form = pages.form(workspace=stage.workspaces[HARBOUR])
        for name, field in choice_fields(form.fields):
            foreign = foreign_row(stage, field)
            value = [foreign.pk] if isinstance(field, forms.ModelMultipleChoiceField) else foreign.pk
            for page in ("new",) if name in pages.form.fixed else forms_in_turn(next(number), turn):
                with rolled_back():
                    outcome.cells += 1
                    findings = send_form(stage, kind, page, {name: value})
                    outcome.findings += [f"{kind}:{page} {name}: {finding}" for finding in findings]
    return outcome


def forms_in_turn(number: int, turn: int | None) -> tuple[str, ...]:
    """Both forms of a record, or one of them in turn: they share a class."""
    both = ("new", "edit")
    return both if turn is None else (both[(number + turn) % 2],)


def kinds_in_turn(turn: int | None) -> list[str]:
    """All record kinds, or in a turn one of the similar ones."""
    return [kind for kind in families() if turn is None or is_due(kind, "list", PAGES, turn)]


def foreign_row(stage: Stage, field: "forms.ModelChoiceField[Any]") -> Any:
    assert field.queryset is not None
    model = field.queryset.model
    kind = MORE_ROWS.get(model) or next(kind for kind, (known, _) in KINDS.items() if known is model)
    return stage.row(ELSEWHERE, kind)


def send_form(stage: Stage, kind: str, page: str, foreign: dict[str, Any]) -> list[str]:
    editor = stage.requesters["admin"]
    body = INSIDE[f"{kind}:{page}"].body(stage, HARBOUR) | foreign
    answer = send_request(editor, "POST", address(stage, kind, page), body)
    findings = leaks(stage, editor, answer, str(body))
    if answer.status != 422:
        findings.append(f"expected 422, got {answer.status}")
    elif not set(foreign) <= set(answer.response.context["form"].errors):
        findings.append("the error does not name the field")
    return findings + changes(stage, editor, answer, before=None)


def address(stage: Stage, kind: str, page: str) -> str:
    route = route_named(f"{kind}:{page}")
    return route.path(
        {"workspace": stage.workspaces[HARBOUR].slug, "key": stage.key(HARBOUR, kind), "number": "1"}
    )


def route_named(name: str) -> Route:
    return next(route for route in inside_routes() if route.name == name)


def run_successor(stage: Stage) -> Outcome:
    """Send a foreign id to the supersede form of a memory's detail page.

    Rejected with a message, nothing replaced.
    """
    editor, outcome = stage.requesters["editor"], Outcome(cells=1)
    with rolled_back():
        body = {"successor": stage.row(ELSEWHERE, "memories").pk}
        answer = send_request(editor, "POST", address(stage, "memories", "supersede"), body)
        outcome.findings += leaks(stage, editor, answer, str(body)) + changes(stage, editor, answer, None)
        if "Replace with:" not in answer.visible_text:
            outcome.findings.append("memories:supersede successor: the refusal does not name the field")
    return outcome


def run_other_forms(stage: Stage) -> Outcome:
    """Send a foreign row to forms on pages of other records: it is not a valid choice."""
    outcome, requester = Outcome(), stage.requesters["admin"]
    for name, fields in OTHER_FORMS.values():
        for field, kind in fields.items():
            with rolled_back():
                outcome.cells += 1
                page, route = INSIDE[name], route_named(name)
                foreign = stage.row(ELSEWHERE, kind).pk
                body = page.body(stage, HARBOUR) | {field: foreign, "assigned_to": "selected"}
                values = {
                    one: str(getattr(stage.row(HARBOUR, of, page.variant), attribute))
                    for one, (of, attribute) in named_rows(route).items()
                }
                path = route.path(values | {"workspace": stage.workspaces[HARBOUR].slug})
                answer = send_request(requester, "POST", path, body)
                findings = leaks(stage, requester, answer, str(body)) + changes(
                    stage, requester, answer, None
                )
                outcome.findings += [f"{name} {field}: {finding}" for finding in findings]
    return outcome


def run_settings_form(stage: Stage) -> Outcome:
    """Send foreign records to the prompt settings form: 422."""
    outcome, requester = Outcome(), stage.requesters["editor"]
    for field, kind in (("identity", "identities"), ("soul", "souls"), ("user_profile", "user-profiles")):
        with rolled_back():
            outcome.cells += 1
            path = route_named("prompt-settings:workspace").path(
                {"workspace": stage.workspaces[HARBOUR].slug}
            )
            body = {field: stage.row(ELSEWHERE, kind).pk, "revision": 1}
            answer = send_request(requester, "POST", path, body)
            findings = leaks(stage, requester, answer, str(body)) + changes(stage, requester, answer, None)
            findings += [] if answer.status == 422 else [f"expected 422, got {answer.status}"]
            outcome.findings += [f"prompt-settings {field}: {finding}" for finding in findings]
    return outcome


def run_queries(stage: Stage, turn: int | None = None) -> Outcome:
    """Send foreign ids and slugs in every filter: they are ignored."""
    outcome, editor = Outcome(), stage.requesters["admin"]
    foreign_values = (stage.row(ELSEWHERE, "agents").pk, stage.key(ELSEWHERE, "agents"))
    for number, (kind, page) in enumerate(product(kinds_in_turn(turn), ("list", "new", "history"))):
        path = address(stage, kind, page)
        for value in foreign_values if turn is None else foreign_values[(number + turn) % 2 :][:1]:
            # The search is sent separately: without matches it would hide what a filter returns.
            for names in (FILTERS, ("q",)):
                answer = send_request(editor, "GET", path, dict.fromkeys(names, value))
                outcome.cells += 1
                findings = leaks(stage, editor, answer, str(value)) + changes(stage, editor, answer, None)
                findings += [f"got {answer.status}"] if answer.status != 200 else []
                outcome.findings += [f"{kind}:{page}?{names[0]}={value}: {finding}" for finding in findings]
    return outcome


def run_overposting(stage: Stage, turn: int | None = None) -> Outcome:
    """Send foreign ids in fields that the form does not have: they are ignored."""
    outcome, editor, before = Outcome(), stage.requesters["admin"], stage.before
    elsewhere = stage.workspaces[ELSEWHERE]
    for number, kind in enumerate(KINDS):
        for page in forms_in_turn(number, turn):
            with rolled_back():
                outcome.cells += 1
                extra = dict.fromkeys(OVERPOSTED, elsewhere.pk)
                body = extra | INSIDE[f"{kind}:{page}"].body(stage, HARBOUR)
                answer = send_request(editor, "POST", address(stage, kind, page), body)
                findings = changes(stage, editor, answer, before)
                if answer.status != 302:
                    findings.append(f"expected 302, got {answer.status}")
                outcome.findings += [f"{kind}:{page}: {finding}" for finding in findings]
    return outcome


NONSENSE = ("\x00", "9" * 40, "x' OR 1=1 -- 𝟙" * 300)


def run_nonsense(stage: Stage, turn: int | None = None) -> Outcome:
    """Send malformed values: rejected or ignored, never a server error."""
    outcome, known = Outcome(), families()
    for number, kind in enumerate(kinds_in_turn(turn)):
        for value in NONSENSE if turn is None else NONSENSE[(number + turn) % 3 :][:1]:
            for method, path, data in nonsense(stage, kind, known[kind], value):
                with rolled_back(), quick_templates():
                    answer = send_request(stage.requesters["admin"], method, path, data)
                outcome.cells += 1
                if answer.status >= 500:
                    outcome.findings.append(f"{method} {path[:60]!r} with {value[:20]!r}: {answer.status}")
    return outcome


def nonsense(
    stage: Stage, kind: str, pages: RecordPages[Any], value: str
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    form = pages.form(workspace=stage.workspaces[HARBOUR])
    fields = NEW[kind](stage, HARBOUR) | {name: [value] for name, _ in choice_fields(form.fields)}
    for page in ("list", "new"):
        yield "GET", address(stage, kind, page), dict.fromkeys((*FILTERS, "q"), value)
    yield "POST", address(stage, kind, "new"), fields
    yield "POST", address(stage, kind, "edit"), fields | {"revision": value, "overwrite": value}
    path = route_named(f"{kind}:detail").path({"workspace": stage.workspaces[HARBOUR].slug, "key": value})
    yield "GET", path, {}
