"""Tenant checks at row level: what models and the database reject, independent of views."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from django.core.exceptions import ObjectDoesNotExist, ValidationError
from django.db import DatabaseError, IntegrityError, connection, models

from personas.models import DailyUsage, SecurityEvent, UnscopedQuery, User, Workspace, WorkspaceOwned
from tests.isolation.canaries import our_models, rows_of, tenant_models
from tests.isolation.cast import ELSEWHERE, HARBOUR, Stage, rolled_back

# The only product tables outside workspaces.
NOT_TENANT = {User, Workspace, SecurityEvent, DailyUsage}
# Append-only tables, enforced by database triggers.
APPEND_ONLY = (
    "personas_revision",
    "personas_auditevent",
    "prompts_promptversion",
    "prompts_versionpart",
    "prompts_labelmove",
    "prompts_ledgerentry",
    "prompts_digestreport",
    "prompts_ledgerblock",
    "prompts_ledgerexpiry",
    "prompts_checkpoint",
    "prompts_signingkey",
)


# --- scoped manager ------------------------------------------------------------------------------------


def find_unowned_models() -> list[str]:
    unowned = [model for model in our_models() if not issubclass(model, WorkspaceOwned)]
    return [f"{model.__name__} belongs to no workspace" for model in unowned if model not in NOT_TENANT]


def find_unscoped_methods(model: type[WorkspaceOwned]) -> list[str]:
    """Find methods of `objects` that work without a workspace."""
    findings = []
    for name in sorted(["all", *type(model.objects)._get_queryset_methods(models.QuerySet)]):
        try:
            getattr(model.objects, name)()
        except UnscopedQuery:
            continue
        # Any other exception means that the query was not rejected as unscoped.
        except Exception as error:  # noqa: BLE001
            findings.append(f"{model.__name__}.objects.{name}() ended in {type(error).__name__}")
        else:
            findings.append(f"{model.__name__}.objects.{name}() answered")
    return findings


def find_wrongly_scoped_rows(stage: Stage) -> list[str]:
    """Find models for which `in_workspace` returns foreign rows or omits own rows."""
    findings = []
    for model in tenant_models():
        for home, workspace in stage.workspaces.items():
            scoped = set(model.objects.in_workspace(workspace).values_list("pk", flat=True))
            own = {row.pk for row in rows_of(model, workspace)}
            if scoped != own or not own:
                findings.append(f"{model.__name__}: {home} gets {len(scoped)} rows of its {len(own)}")
    return findings


# --- links and moves -----------------------------------------------------------------------------------


def find_accepted_links(stage: Stage) -> list[str]:
    """Find foreign keys into another workspace that clean() or save() accepts, by id or by object."""
    findings = []
    for row, field, foreign in foreign_links(stage):
        name = f"{type(row).__name__}.{field.name}"
        for attribute, value in ((field.attname, foreign.pk), (field.name, foreign)):
            for way in (type(row).save, type(row).full_clean):
                with rolled_back():
                    fresh = type(row).unscoped.get(pk=row.pk)
                    setattr(fresh, attribute, value)
                    if not refuses(way, fresh, field.name):
                        findings.append(f"{name} takes a foreign link by {attribute} in {way.__name__}()")
    return findings


def foreign_links(stage: Stage) -> Iterator[tuple[Any, Any, Any]]:
    """Yield a row, each of its tenant foreign keys, and a row of the other workspace."""
    for model in tenant_models():
        row = first_of(model, stage.workspaces[HARBOUR])
        for field in model.list_tenant_links():
            yield row, field, first_of(field.remote_field.model, stage.workspaces[ELSEWHERE])


def first_of(model: type[models.Model], workspace: Workspace) -> Any:
    return next(iter(rows_of(model, workspace)))


def refuses(way: Callable[[Any], Any], row: Any, field: str) -> bool:
    """Whether a ValidationError names the field, raised before the database is reached."""
    try:
        way(row)
    except ValidationError as error:
        return field in getattr(error, "error_dict", {})
    except (DatabaseError, ObjectDoesNotExist):
        return False
    return False


def find_accepted_moves(stage: Stage) -> list[str]:
    """Find rows that can be moved to another workspace.

    Loaded, partially loaded, just saved, or built from an id.
    """
    findings, elsewhere = [], stage.workspaces[ELSEWHERE]
    for model in tenant_models():
        for way, row in movable(model, stage):
            with rolled_back():
                row.workspace = elsewhere
                if not refuses(type(row).save, row, "workspace"):
                    findings.append(f"{model.__name__} {way} can be moved to another workspace")
    return findings


def movable(model: type[WorkspaceOwned], stage: Stage) -> Iterator[tuple[str, Any]]:
    row = first_of(model, stage.workspaces[HARBOUR])
    yield "loaded", model.unscoped.get(pk=row.pk)
    yield "loaded in part", model.unscoped.only("pk").get(pk=row.pk)
    values = {field.attname: getattr(row, field.attname) for field in model._meta.concrete_fields}
    yield "built around its id", model(**values)
    if model._meta.db_table not in APPEND_ONLY:
        saved = model.unscoped.get(pk=row.pk)
        del saved._stored_workspace_id
        saved.save()
        yield "just saved", saved


def find_accepted_bulk_writes(stage: Stage) -> list[str]:
    """Find bulk writes that accept a foreign link or another workspace."""
    findings, elsewhere = [], stage.workspaces[ELSEWHERE]
    for row, field, foreign in foreign_links(stage):
        model = type(row)
        for name, value in ((field.name, foreign), (field.attname, foreign.pk)):
            findings += [
                f"{model.__name__}.{name} can be set by {way} to a foreign row"
                for way, write in bulk_ways(row, name, value).items()
                if not is_refused(write)
            ]
    for model in tenant_models():
        rows = model.objects.in_workspace(stage.workspaces[HARBOUR])
        if not is_refused(partial(rows.update, workspace=elsewhere)):
            findings.append(f"{model.__name__} can be moved by update()")
    return findings


def bulk_ways(row: Any, name: str, value: Any) -> dict[str, Callable[[], Any]]:
    rows = type(row).objects.in_workspace(row.workspace_id)
    changed = type(row).unscoped.get(pk=row.pk)
    setattr(changed, name, value)
    twin = type(row).unscoped.get(pk=row.pk)
    setattr(twin, name, value)
    twin.pk, twin._stored_workspace_id = None, None
    return {
        "update()": lambda: rows.filter(pk=row.pk).update(**{name: value}),
        "bulk_update()": lambda: rows.bulk_update([changed], [name.removesuffix("_id")]),
        "bulk_create()": lambda: rows.bulk_create([twin]),
    }


def is_refused(write: Callable[[], Any]) -> bool:
    with rolled_back():
        try:
            write()
        except ValidationError:
            return True
        except DatabaseError:
            return False
    return False


def find_foreign_parents(stage: Stage) -> list[str]:
    """Find rows whose workspace differs from that of their parent, or may be null."""
    findings = [
        f"{model.__name__}.workspace may be empty"
        for model in tenant_models()
        if model._meta.get_field("workspace").null
    ]
    for model in tenant_models():
        for field in model.list_tenant_links():
            # Not with a join, because joins compare the workspace.
            parent: Any = field.remote_field.model
            parents = parent.unscoped.filter(
                pk=models.OuterRef(field.attname), workspace=models.OuterRef("workspace")
            )
            linked = model.unscoped.filter(**{f"{field.attname}__isnull": False})
            count = linked.exclude(models.Exists(parents)).count()
            findings += [f"{count} rows of {model.__name__} hang on a foreign {field.name}"] if count else []
    return findings


# --- database constraints ------------------------------------------------------------------------------

# For each check constraint, a change that violates it.
VIOLATIONS: dict[str, dict[str, Any]] = {
    "key_kind_known": {"kind": "odd"},
    "admin_key_has_its_maker": {"kind": "admin", "created_by": None},
    "agent_policy_known": {"release_policy": "whenever"},
    "agent_not_own_parent": {"parent": models.F("id")},
    "tool_use_known": {"use": "never"},
    "membership_role_known": {"role": "king"},
    "invitation_role_known": {"role": "king"},
    "memory_status_known": {"status": "vague"},
    "only_superseded_memories_have_a_successor": {"status": "active", "superseded_by": models.F("id")},
    "memory_valid_from_before_until": {
        "valid_from": "2030-01-02T00:00:00Z",
        "valid_until": "2030-01-01T00:00:00Z",
    },
    "task_status_known": {"status": "lost"},
    "ledger_kept_half_a_year_at_least": {"ledger_months": 5},
    "source_has_its_folder": {"source_kind": "pushed"},
    "source_approval_known": {"approval": "never"},
    "agent_source_scope_known": {"scope": "odd"},
    "source_schedule_sane": {"refresh_minutes": 0},
    "run_status_known": {"status": "odd"},
    "file_status_known": {"status": "odd"},
    "file_assignment_known": {"assigned_to": "odd"},
    "file_verdict_known": {"verdict": "odd"},
    "release_status_known": {"status": "odd"},
    "an_override_has_a_reason": {"is_override": True, "reason": ""},
    "comment_has_one_subject": {"memory": None, "version": None},
    "settings_of_one_level": {"agent": 1, "channel": 1},
}


def find_unenforced_constraints(stage: Stage) -> list[str]:
    """Find declared constraints that the database does not enforce."""
    findings = []
    for model in our_models():
        idle = [one.name for one in model._meta.constraints if not holds(model, one, stage)]
        alone = [one.name for one in model._meta.concrete_fields if one.unique and not one.primary_key]
        idle += [f"unique {name}" for name in alone if not keeps_unique(model, (name,), stage)]
        findings += [f"{name} of {model.__name__} is not kept by the database" for name in idle]
    return findings


def find_untested_constraints() -> list[str]:
    """Find check constraints without a violation in VIOLATIONS."""
    names = [
        constraint.name
        for model in our_models()
        for constraint in model._meta.constraints
        if isinstance(constraint, models.CheckConstraint)
    ]
    unknown = [name for name in names if name not in VIOLATIONS]
    return [f"{name}: say in tests/isolation/scoping.py how to break it" for name in unknown]


def holds(model: type[models.Model], constraint: models.BaseConstraint, stage: Stage) -> bool:
    if isinstance(constraint, models.CheckConstraint):
        row = first_of(model, stage.workspaces[HARBOUR])
        change = VIOLATIONS[constraint.name]
        return breaks(lambda: model._base_manager.filter(pk=row.pk).update(**change), constraint.name)
    assert isinstance(constraint, models.UniqueConstraint)
    if constraint.expressions:
        return keeps_mail_addresses_apart(stage)
    if model._meta.pk.name in constraint.fields:
        # A duplicate would need the same id: the primary key enforces it, and another test checks the
        # constraint.
        return True
    return keeps_unique(model, constraint.fields, stage, constraint.condition, constraint.name)


def keeps_unique(
    model: type[models.Model],
    fields: Sequence[str],
    stage: Stage,
    condition: models.Q | None = None,
    name: str = "",
) -> bool:
    """Insert a duplicate that differs in all other unique values, bypassing our own code."""
    # NULLs are not duplicates.
    not_null = {f"{name}__isnull": False for name in fields if model._meta.get_field(name).null}
    rows = model._base_manager.filter(condition or models.Q(), **not_null)
    row = rows.filter(pk__in=[row.pk for row in rows_of(model, stage.workspaces[HARBOUR])]).first()
    if row is None:
        return False
    row.pk = None
    for field in other_unique_texts(model, fields):
        setattr(row, field.name, f"x{getattr(row, field.name)}"[: field.max_length])
    column = str(model._meta.get_field(fields[-1]).column)  # type: ignore[union-attr]
    return breaks(lambda: model._base_manager.bulk_create([row]), name, column)


def other_unique_texts(model: type[models.Model], fields: Sequence[str]) -> list[Any]:
    """Other unique fields, which the duplicate must change, or another constraint would fail first."""
    rules = [one for one in model._meta.constraints if isinstance(one, models.UniqueConstraint)]
    names = {rule.fields[-1] for rule in rules if rule.fields}
    names |= {one.name for one in model._meta.concrete_fields if one.unique and not one.primary_key}
    others: list[Any] = [model._meta.get_field(name) for name in names - set(fields)]
    return [field for field in others if isinstance(field, models.CharField)]


def keeps_mail_addresses_apart(stage: Stage) -> bool:
    user = first_of(User, stage.workspaces[HARBOUR])
    twin = User(email=user.email.upper(), name="Twin")
    return breaks(lambda: User._base_manager.bulk_create([twin]), "user_email_once_in_any_case")


def breaks(write: Callable[[], Any], *names: str) -> bool:
    """Whether the database rejects a write because of one of these constraints."""
    with rolled_back():
        try:
            write()
        except IntegrityError as error:
            return any(name and name in str(error) for name in names)
    return False


def find_mutable_history(stage: Stage) -> list[str]:
    """Find append-only tables in which the database allows UPDATE or DELETE."""
    findings = []
    for table in APPEND_ONLY:
        for statement in (f"UPDATE {table} SET workspace_id = workspace_id", f"DELETE FROM {table}"):  # noqa: S608  # fixed names
            with rolled_back(), connection.cursor() as cursor:
                try:
                    cursor.execute(statement)
                except DatabaseError as error:
                    if "only grows" in str(error):
                        continue
                findings.append(f"the database allows: {statement}")
    return findings


def find_missing_triggers() -> list[str]:
    """Find append-only triggers that are missing after the migrations."""
    if connection.vendor == "postgresql":
        expected, query = [f"{table}_only_grows" for table in APPEND_ONLY], "SELECT tgname FROM pg_trigger"
    else:
        expected = [f"{table}_no_{action}" for table in APPEND_ONLY for action in ("UPDATE", "DELETE")]
        query = "SELECT name FROM sqlite_master WHERE type = 'trigger'"
    with connection.cursor() as cursor:
        cursor.execute(query)
        existing = {name for (name,) in cursor.fetchall()}
    return [f"the trigger {name} is missing" for name in expected if name not in existing]
