import pytest
from django.db import DatabaseError, IntegrityError, connection, models, transaction
from django.test.utils import CaptureQueriesContext

from core.db.compiled_write import MAX_ROWS, WriteBatch
from personas.models import Content, Memory, Revision, Soul
from personas.tenancy.models import CrossWorkspaceLink
from tests.factories import make_agent, make_memory, make_soul

pytestmark = pytest.mark.django_db

# No sequence counts down, so no other record has this number, whatever its kind.
OBJECT_ID = -900


def build_revision(workspace, number: int, **values) -> Revision:
    values = {"data": {"text": "Ευθεία %s"}, "author_label": "Alice", "message": ""} | values
    return Revision(workspace=workspace, kind="soul", object_id=OBJECT_ID, number=number, **values)


def read_rows(model, **conditions) -> list[dict]:
    rows = model.unscoped.filter(**conditions).order_by("pk").values()
    return [{name: value for name, value in row.items() if name not in {"id", "at"}} for row in rows]


def test_rows_are_inserted_as_by_django(workspace, alice):
    ours = [build_revision(workspace, number, author=alice) for number in (1, 2)]
    with CaptureQueriesContext(connection) as queries:
        created = Revision.objects.in_workspace(workspace).bulk_create(ours)
    assert len(queries) == 1
    assert [row.pk for row in created] == sorted(
        Revision.unscoped.filter(object_id=OBJECT_ID).values_list("pk", flat=True)
    )
    assert not any(row._state.adding for row in created)
    assert all(row.at is not None for row in created)
    django: models.QuerySet[Revision] = models.QuerySet(Revision)
    django.bulk_create([build_revision(workspace, number, author=alice) for number in (3, 4)])
    first, second = (
        read_rows(Revision, object_id=OBJECT_ID, number__in=numbers) for numbers in ([1, 2], [3, 4])
    )
    assert [row | {"number": 0} for row in first] == [row | {"number": 0} for row in second]


def test_saved_rows_can_be_edited_and_reloaded(workspace):
    row = Revision.objects.in_workspace(workspace).bulk_create([build_revision(workspace, 1)])[0]
    row.refresh_from_db()
    assert row.data == {"text": "Ευθεία %s"}


def test_existing_rows_are_updated_by_an_upsert(workspace):
    souls = [make_soul(workspace, name=name, text="Old.") for name in ("Calm", "Loud")]
    for soul in souls:
        soul.text, soul.name = "New.", "Not stored"
    Soul.objects.in_workspace(workspace).bulk_create(
        souls, update_conflicts=True, unique_fields=["id"], update_fields=["text"]
    )
    rows = Soul.unscoped.order_by("pk").values_list("name", "text")
    assert list(rows) == [("Calm", "New."), ("Loud", "New.")]


def test_binary_and_empty_values_are_kept(workspace):
    row = Content(workspace=workspace, digest="a" * 64, size=3, data=b"\x00%s", salt=None)
    Content.objects.in_workspace(workspace).bulk_create([row])
    stored = Content.unscoped.get()
    assert (bytes(stored.data or b""), stored.salt) == (b"\x00%s", None)


def test_links_to_other_workspaces_are_refused(workspace, elsewhere):
    foreign = make_agent(elsewhere, "spy")
    with pytest.raises(CrossWorkspaceLink):
        Memory.objects.in_workspace(workspace).bulk_create(
            [Memory(workspace=workspace, text="Tea.", agent=foreign)]
        )
    assert not Memory.unscoped.exists()


def test_unsaved_links_are_refused(workspace):
    with pytest.raises(ValueError, match="unsaved"):
        Memory.objects.in_workspace(workspace).bulk_create(
            [
                Memory(
                    workspace=workspace,
                    text="Tea.",
                    agent=make_agent(workspace).__class__(workspace=workspace),
                )
            ]
        )


def test_a_violated_constraint_inserts_nothing(workspace):
    Revision.objects.in_workspace(workspace).bulk_create([build_revision(workspace, 1)])
    with pytest.raises(IntegrityError), transaction.atomic():
        Revision.objects.in_workspace(workspace).bulk_create(
            [build_revision(workspace, number) for number in (2, 1)]
        )
    assert Revision.unscoped.filter(kind="soul", object_id=OBJECT_ID).count() == 1


def test_many_rows_are_inserted_by_django(workspace):
    rows = [build_revision(workspace, number) for number in range(1, MAX_ROWS + 3)]
    Revision.objects.in_workspace(workspace).bulk_create(rows)
    assert Revision.unscoped.filter(object_id=OBJECT_ID).count() == MAX_ROWS + 2
    assert len({row.pk for row in rows}) == MAX_ROWS + 2


def test_a_batch_inserts_and_updates_in_order(workspace):
    soul, batch = make_soul(workspace, name="Calm", text="Old."), WriteBatch()
    soul.text = "New %s."
    batch.update(soul)
    revision = build_revision(workspace, 7)
    Revision.objects.insert([revision], batch=batch)
    assert not revision.pk
    batch.send()
    assert Soul.unscoped.get().text == "New %s."
    assert Revision.unscoped.get(number=7) == revision
    batch.send()
    assert Revision.unscoped.filter(number=7).count() == 1


def test_an_update_of_a_missing_row_undoes_the_batch(workspace):
    soul = make_soul(workspace)
    Soul.unscoped.filter(pk=soul.pk).delete()
    batch = WriteBatch()
    Revision.objects.insert([build_revision(workspace, 7)], batch=batch)
    batch.update(soul)
    with pytest.raises(DatabaseError, match="does not exist"), transaction.atomic():
        batch.send()
    assert not Revision.unscoped.filter(number=7).exists()


def test_no_rows_make_no_query(workspace, django_assert_num_queries):
    make_memory(workspace)
    with django_assert_num_queries(0):
        assert Memory.objects.in_workspace(workspace).bulk_create([]) == []
