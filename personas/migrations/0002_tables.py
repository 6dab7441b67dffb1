"""Create the tables of workspaces, agents and their records."""

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import core.db.create_models
import core.db.fields
import core.db.line_lists
import core.timezones
import personas.workspaces.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("personas", "0001_users"),
    ]

    operations = [
        core.db.create_models.CreateModels(
            models=[
                migrations.CreateModel(
                    name="Identity",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        ("name", core.db.fields.LineField(max_length=80)),
                        (
                            "slug",
                            models.SlugField(
                                db_index=False,
                                editable=False,
                                max_length=64,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    ),
                                    personas.workspaces.models.validate_not_reserved,
                                ],
                            ),
                        ),
                        ("display_name", core.db.fields.LineField(blank=True, max_length=80)),
                        ("emoji", core.db.fields.LineField(blank=True, max_length=32)),
                        ("creature", core.db.fields.LineField(blank=True, max_length=120)),
                        ("vibe", core.db.fields.LineField(blank=True, max_length=200)),
                        ("text", core.db.fields.ProseField(blank=True, max_length=20000)),
                        (
                            "extra",
                            core.db.fields.ProseField(
                                blank=True, max_length=8000, verbose_name="other front matter"
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "identities",
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "slug"), name="identity_slug_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Soul",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        ("name", core.db.fields.LineField(max_length=80)),
                        (
                            "slug",
                            models.SlugField(
                                db_index=False,
                                editable=False,
                                max_length=64,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    ),
                                    personas.workspaces.models.validate_not_reserved,
                                ],
                            ),
                        ),
                        ("text", core.db.fields.ProseField(blank=True, max_length=60000)),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "slug"), name="soul_slug_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="UserProfile",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        ("name", core.db.fields.LineField(max_length=80)),
                        (
                            "slug",
                            models.SlugField(
                                db_index=False,
                                editable=False,
                                max_length=64,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    ),
                                    personas.workspaces.models.validate_not_reserved,
                                ],
                            ),
                        ),
                        ("display_name", core.db.fields.LineField(blank=True, max_length=80)),
                        (
                            "timezone",
                            core.db.fields.LineField(
                                blank=True, max_length=64, validators=[core.timezones.validate_timezone]
                            ),
                        ),
                        ("location", core.db.fields.LineField(blank=True, max_length=120)),
                        ("notes", core.db.fields.ProseField(blank=True, max_length=20000)),
                        (
                            "extra",
                            core.db.fields.ProseField(
                                blank=True, max_length=8000, verbose_name="other front matter"
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "slug"), name="userprofile_slug_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Workspace",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", core.db.fields.LineField(max_length=80)),
                        (
                            "slug",
                            models.SlugField(
                                max_length=48,
                                unique=True,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    )
                                ],
                            ),
                        ),
                        ("last_task_number", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("skills_need_trust", models.BooleanField(default=True)),
                        (
                            "ledger_months",
                            models.PositiveSmallIntegerField(
                                default=24, validators=[django.core.validators.MinValueValidator(6)]
                            ),
                        ),
                        (
                            "default_release_policy",
                            models.CharField(
                                choices=[
                                    ("automatic", "Automatic: production follows the latest build"),
                                    ("reviewed", "Reviewed: another member approves first"),
                                ],
                                db_default="automatic",
                                default="automatic",
                                max_length=10,
                            ),
                        ),
                        ("requires_second_factor", models.BooleanField(db_default=False, default=False)),
                        ("deleted_at", models.DateTimeField(editable=False, null=True)),
                        (
                            "former_slugs",
                            core.db.line_lists.LineListField(
                                blank=True, db_default="", default=list, editable=False
                            ),
                        ),
                        ("removed_at", models.DateTimeField(editable=False, null=True)),
                        (
                            "counted_for",
                            models.ForeignKey(
                                editable=False,
                                null=True,
                                on_delete=django.db.models.deletion.SET_NULL,
                                related_name="counted_workspaces",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(("ledger_months__gte", 6)),
                                name="ledger_kept_half_a_year_at_least",
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="Agent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        (
                            "slug",
                            models.SlugField(
                                db_index=False,
                                max_length=64,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    ),
                                    personas.workspaces.models.validate_not_reserved,
                                ],
                            ),
                        ),
                        ("name", core.db.fields.LineField(max_length=80)),
                        ("description", core.db.fields.LineField(blank=True, max_length=300)),
                        ("layout", models.CharField(default="dramatis", max_length=40)),
                        ("instructions", core.db.fields.ProseField(blank=True, max_length=60000)),
                        ("working_directory", core.db.fields.LineField(blank=True, max_length=1000)),
                        (
                            "release_policy",
                            models.CharField(
                                choices=[
                                    ("automatic", "Automatic: production follows the latest build"),
                                    ("reviewed", "Reviewed: another member approves first"),
                                ],
                                default="automatic",
                                max_length=10,
                            ),
                        ),
                        (
                            "parent",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="sub_agents",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "identity",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agents",
                                to="personas.identity",
                            ),
                        ),
                        (
                            "soul",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agents",
                                to="personas.soul",
                            ),
                        ),
                        (
                            "user_profile",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agents",
                                to="personas.userprofile",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        ("capabilities", core.db.line_lists.LineListField(blank=True, null=True)),
                        (
                            "directories",
                            core.db.line_lists.LineListField(blank=True, db_default="", default=list),
                        ),
                        (
                            "documentation_main",
                            core.db.fields.LineField(blank=True, db_default="", default="", max_length=1000),
                        ),
                        (
                            "documentation_additional",
                            core.db.fields.LineField(blank=True, db_default="", default="", max_length=1000),
                        ),
                        (
                            "documentation_examples",
                            core.db.fields.LineField(blank=True, db_default="", default="", max_length=1000),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "slug"), name="agent_slug_once"),
                            models.CheckConstraint(
                                condition=models.Q(("release_policy__in", ["automatic", "reviewed"])),
                                name="agent_policy_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("parent", None),
                                    models.Q(("parent", models.F("id")), _negated=True),
                                    _connector="OR",
                                ),
                                name="agent_not_own_parent",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Task",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        ("number", models.PositiveIntegerField(editable=False)),
                        ("title", core.db.fields.LineField(max_length=120)),
                        ("description", core.db.fields.ProseField(blank=True, max_length=20000)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("open", "Open"),
                                    ("in_progress", "In progress"),
                                    ("blocked", "Blocked"),
                                    ("done", "Done"),
                                    ("cancelled", "Cancelled"),
                                ],
                                default="open",
                                max_length=12,
                            ),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="tasks",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "number"), name="task_number_once"),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("status__in", ["open", "in_progress", "blocked", "done", "cancelled"])
                                ),
                                name="task_status_known",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Tool",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        (
                            "name",
                            core.db.fields.LineField(
                                max_length=64,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[A-Za-z_][A-Za-z0-9_.-]*\\Z",
                                        "Start with a letter or underscore, then letters, digits, dots, hyphens or underscores.",
                                        code="tool_name",
                                    ),
                                    personas.workspaces.models.validate_not_reserved,
                                ],
                            ),
                        ),
                        ("description", core.db.fields.ProseField(blank=True, max_length=4000)),
                        ("snippet", core.db.fields.LineField(blank=True, max_length=300)),
                        (
                            "guidelines",
                            core.db.fields.ProseField(
                                blank=True, help_text="One guideline per line.", max_length=4000
                            ),
                        ),
                        ("parameters", core.db.fields.ProseField(blank=True, max_length=20000)),
                        ("signature", core.db.fields.LineField(blank=True, max_length=1000)),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                blank=True,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="as_tools",
                                to="personas.agent",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "name"), name="tool_name_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="TaskStep",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("title", core.db.fields.LineField(max_length=300)),
                        ("is_done", models.BooleanField(default=False)),
                        ("position", models.PositiveIntegerField()),
                        (
                            "task",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="steps",
                                to="personas.task",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["position", "id"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("task", "position"), name="one_step_per_place")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Revision",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=20)),
                        ("object_id", models.BigIntegerField()),
                        ("number", models.PositiveIntegerField()),
                        ("data", models.JSONField()),
                        ("author_label", models.CharField(max_length=254)),
                        ("message", models.CharField(blank=True, max_length=200)),
                        ("at", models.DateTimeField(auto_now_add=True)),
                        (
                            "author",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "kind", "object_id", "number"),
                                name="revisions_numbered_once",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Responsibility",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        ("title", core.db.fields.LineField(max_length=120)),
                        ("text", core.db.fields.ProseField(max_length=20000)),
                        ("position", models.PositiveIntegerField(default=0)),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="responsibilities",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "responsibilities",
                        "ordering": ["position", "id"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("archived_at", None)),
                                fields=("agent", "title"),
                                name="responsibility_title_once_per_agent",
                                violation_error_message="This agent already has a responsibility with this title.",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Memory",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        ("text", core.db.fields.ProseField(max_length=2000)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("proposed", "Proposed"),
                                    ("active", "Active"),
                                    ("superseded", "Superseded"),
                                    ("revoked", "Revoked"),
                                ],
                                default="active",
                                max_length=10,
                            ),
                        ),
                        ("source", core.db.fields.LineField(blank=True, max_length=300)),
                        ("author_label", core.db.fields.LineField(editable=False, max_length=254)),
                        ("valid_from", models.DateTimeField(blank=True, null=True)),
                        ("valid_until", models.DateTimeField(blank=True, null=True)),
                        (
                            "agent",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="memories",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "author",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "superseded_by",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="supersedes",
                                to="personas.memory",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "verbose_name_plural": "memories",
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("status__in", ["proposed", "active", "superseded", "revoked"])
                                ),
                                name="memory_status_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("superseded_by", None), ("status", "superseded"), _connector="OR"
                                ),
                                name="only_superseded_memories_have_a_successor",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("valid_from", None),
                                    ("valid_until", None),
                                    ("valid_until__gt", models.F("valid_from")),
                                    _connector="OR",
                                ),
                                name="memory_valid_from_before_until",
                                violation_error_message="“Valid until” must come after “valid from”.",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Membership",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("owner", "Owner"),
                                    ("admin", "Admin"),
                                    ("editor", "Editor"),
                                    ("reviewer", "Reviewer"),
                                    ("viewer", "Viewer"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("joined_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "user",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="memberships",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "unread_count",
                            models.PositiveIntegerField(db_default=0, default=0, editable=False),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "user"), name="one_membership_per_person"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("role__in", ["owner", "admin", "editor", "reviewer", "viewer"])
                                ),
                                name="membership_role_known",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Invitation",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("email", models.EmailField(max_length=254)),
                        (
                            "role",
                            models.CharField(
                                choices=[
                                    ("owner", "Owner"),
                                    ("admin", "Admin"),
                                    ("editor", "Editor"),
                                    ("reviewer", "Reviewer"),
                                    ("viewer", "Viewer"),
                                ],
                                max_length=10,
                            ),
                        ),
                        ("nonce", models.CharField(editable=False, max_length=43, unique=True)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("expires_at", models.DateTimeField()),
                        ("accepted_at", models.DateTimeField(blank=True, null=True)),
                        ("withdrawn_at", models.DateTimeField(blank=True, null=True)),
                        (
                            "invited_by",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("accepted_at", None), ("withdrawn_at", None)),
                                fields=("workspace", "email"),
                                name="one_open_invitation_per_address",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("role__in", ["owner", "admin", "editor", "reviewer", "viewer"])
                                ),
                                name="invitation_role_known",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Channel",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=0, editable=False)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "updated_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
                        (
                            "slug",
                            models.SlugField(
                                db_index=False,
                                max_length=64,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    ),
                                    personas.workspaces.models.validate_not_reserved,
                                ],
                            ),
                        ),
                        ("name", core.db.fields.LineField(max_length=80)),
                        ("formatting", core.db.fields.ProseField(blank=True, max_length=8000)),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "slug"), name="channel_slug_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="AuditEvent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("verb", models.CharField(max_length=40)),
                        ("kind", models.CharField(max_length=20)),
                        ("object_id", models.BigIntegerField()),
                        ("object_label", models.CharField(max_length=254)),
                        ("actor_label", models.CharField(max_length=254)),
                        ("before", models.JSONField(null=True)),
                        ("after", models.JSONField(null=True)),
                        ("request_id", models.CharField(blank=True, max_length=64)),
                        ("at", models.DateTimeField(auto_now_add=True)),
                        (
                            "actor",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["workspace", "-at"], name="audit_by_time"),
                            models.Index(
                                fields=["workspace", "kind", "object_id", "-at"], name="audit_by_object"
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="AgentTool",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "use",
                            models.CharField(
                                choices=[("active", "Active"), ("planning", "For planning only")],
                                max_length=10,
                            ),
                        ),
                        ("position", models.PositiveIntegerField()),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="tool_links",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "tool",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agent_links",
                                to="personas.tool",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["position", "id"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("agent", "tool"), name="tool_once_per_agent"),
                            models.CheckConstraint(
                                condition=models.Q(("use__in", ["active", "planning"])), name="tool_use_known"
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="AgentChannel",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("position", models.PositiveIntegerField()),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="channel_links",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "channel",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agent_links",
                                to="personas.channel",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["position", "id"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("agent", "channel"), name="channel_once_per_agent"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Content",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("digest", models.CharField(max_length=64)),
                        ("size", models.PositiveIntegerField()),
                        ("data", models.BinaryField(null=True)),
                        ("erased_at", models.DateTimeField(editable=False, null=True)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        ("plain_digest", models.CharField(editable=False, max_length=64, null=True)),
                        ("salt", models.CharField(editable=False, max_length=32, null=True)),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "digest"), name="content_once"),
                            models.UniqueConstraint(
                                condition=models.Q(("plain_digest__isnull", False)),
                                fields=("workspace", "plain_digest"),
                                name="salted_content_once",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="ApiKey",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", core.db.fields.LineField(max_length=80)),
                        ("prefix", models.CharField(max_length=16)),
                        ("digest", models.CharField(max_length=64, unique=True)),
                        ("scopes", models.JSONField(default=dict)),
                        ("created_label", models.CharField(max_length=254)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("expires_at", models.DateTimeField()),
                        ("revoked_at", models.DateTimeField(null=True)),
                        ("last_used_at", models.DateTimeField(null=True)),
                        (
                            "created_by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[("bot", "Bot"), ("admin", "Admin")], default="bot", max_length=5
                            ),
                        ),
                        (
                            "origin",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.apikey",
                            ),
                        ),
                        (
                            "creator_key",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="created_keys",
                                to="personas.apikey",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "name"), name="key_name_once"),
                            models.CheckConstraint(
                                condition=models.Q(("kind__in", ["bot", "admin"])), name="key_kind_known"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("kind", "admin"), _negated=True),
                                    ("created_by__isnull", False),
                                    _connector="OR",
                                ),
                                name="admin_key_has_its_maker",
                            ),
                        ],
                        "verbose_name": "key",
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Erasure",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=20)),
                        ("object_id", models.BigIntegerField()),
                        ("reason", core.db.fields.LineField(max_length=500)),
                        ("digests", models.JSONField(default=list)),
                        ("versions", models.JSONField(default=list)),
                        ("author_label", models.CharField(max_length=254)),
                        ("at", models.DateTimeField(auto_now_add=True)),
                        (
                            "person",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        ("rebuilding_since", models.DateTimeField(null=True)),
                        ("pending_texts", models.JSONField(null=True)),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "kind", "object_id"), name="erased_once"
                            )
                        ],
                        "indexes": [
                            models.Index(
                                condition=models.Q(("rebuilding_since__isnull", False)),
                                fields=["rebuilding_since"],
                                name="erasures_to_finish",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="IdempotentResponse",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("route", models.CharField(max_length=200)),
                        ("name", models.CharField(max_length=255)),
                        ("body_digest", models.CharField(max_length=64)),
                        ("status", models.PositiveSmallIntegerField(default=0)),
                        ("headers", models.JSONField(default=dict)),
                        ("body", models.BinaryField(default=bytes)),
                        ("at", models.DateTimeField()),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "route", "name"), name="one_response_per_idempotency_key"
                            )
                        ],
                        "indexes": [models.Index(fields=["at"], name="idempotent_responses_by_age")],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="FormDraft",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("family", models.CharField(max_length=40)),
                        ("key", models.CharField(blank=True, max_length=80)),
                        ("values", models.JSONField(default=dict)),
                        ("base_revision", models.PositiveIntegerField(default=0)),
                        ("updated_at", models.DateTimeField()),
                        (
                            "agent",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "person",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "person", "family", "key"),
                                name="one_draft_per_member_and_record",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="SecurityEvent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=32)),
                        ("detail", models.CharField(blank=True, max_length=200)),
                        ("actor_label", models.CharField(blank=True, max_length=254)),
                        ("network", models.CharField(blank=True, max_length=50)),
                        ("user_agent", models.CharField(blank=True, max_length=200)),
                        ("count", models.PositiveIntegerField(default=1)),
                        ("at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "user",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="security_events",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "indexes": [
                            models.Index(fields=["user", "-at"], name="security_events_of_user"),
                            models.Index(fields=["at"], name="security_events_by_age"),
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="ErasureCounter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "workspace",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        ("number", models.PositiveBigIntegerField(default=0)),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="EventCounter",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("last", models.PositiveBigIntegerField(default=0)),
                        (
                            "workspace",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Event",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("sequence", models.PositiveBigIntegerField(null=True)),
                        ("type", models.CharField(max_length=40)),
                        ("data", models.JSONField()),
                        ("at", models.DateTimeField(default=django.utils.timezone.now)),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "actor",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(
                                condition=models.Q(("sequence", None)),
                                fields=["workspace", "id"],
                                name="events_to_number",
                            ),
                            models.Index(fields=["workspace", "at"], name="events_by_time"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "sequence"), name="event_sequence_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="WebhookEndpoint",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("name", models.CharField(max_length=80)),
                        ("url", models.CharField(max_length=500)),
                        ("types", models.JSONField(blank=True, default=list)),
                        ("agents", models.JSONField(blank=True, default=list)),
                        ("channels", models.JSONField(blank=True, default=list)),
                        ("labels", models.JSONField(blank=True, default=list)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("enabled", "Enabled"),
                                    ("disabled", "Disabled"),
                                    ("gone", "Disabled after the receiver returned 410"),
                                    ("failing", "Disabled after repeated delivery failures"),
                                ],
                                default="enabled",
                                editable=False,
                                max_length=10,
                            ),
                        ),
                        ("revision", models.PositiveIntegerField(default=1, editable=False)),
                        ("secret", models.CharField(editable=False, max_length=300)),
                        ("previous_secret", models.CharField(blank=True, editable=False, max_length=300)),
                        ("previous_ends_at", models.DateTimeField(editable=False, null=True)),
                        ("private_key", models.CharField(editable=False, max_length=300)),
                        ("created_label", models.CharField(editable=False, max_length=254)),
                        (
                            "created_at",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        (
                            "active_since",
                            models.DateTimeField(default=django.utils.timezone.now, editable=False),
                        ),
                        ("leased_until", models.DateTimeField(editable=False, null=True)),
                        ("served_at", models.DateTimeField(editable=False, null=True)),
                        ("held_until", models.DateTimeField(editable=False, null=True)),
                        ("failures", models.PositiveIntegerField(default=0, editable=False)),
                        ("failing_since", models.DateTimeField(editable=False, null=True)),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "name"), name="webhook_name_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="WebhookDelivery",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("pending", "Pending"),
                                    ("delivered", "Delivered"),
                                    ("failed", "Failed"),
                                ],
                                default="pending",
                                max_length=10,
                            ),
                        ),
                        ("attempt_count", models.PositiveSmallIntegerField(default=0)),
                        ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("finished_at", models.DateTimeField(null=True)),
                        (
                            "event",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="personas.event",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "endpoint",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="deliveries",
                                to="personas.webhookendpoint",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(
                                condition=models.Q(("status", "pending")),
                                fields=["workspace", "endpoint", "due_at"],
                                name="webhook_deliveries_due",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "endpoint", "event"), name="webhook_delivery_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="WebhookQueue",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("position", models.PositiveBigIntegerField(default=0)),
                        (
                            "workspace",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="WebhookAttempt",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("at", models.DateTimeField()),
                        ("milliseconds", models.PositiveIntegerField()),
                        ("status", models.PositiveSmallIntegerField(null=True)),
                        ("error", models.CharField(blank=True, max_length=200)),
                        ("response", models.TextField(blank=True)),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "delivery",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="attempts",
                                to="personas.webhookdelivery",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["workspace", "at"], name="webhook_attempts_by_time")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="NotificationQueue",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("position", models.PositiveBigIntegerField(default=0)),
                        (
                            "workspace",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Notification",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("review_requested", "Releases that need review"),
                                    ("release_updated", "Decisions about your releases and changes"),
                                    ("commented", "Comments on your releases, changes and memories"),
                                    ("memory_proposed", "Memories that need approval"),
                                    ("file_waiting", "Context files that need review"),
                                    ("build_failed", "Failed builds"),
                                    ("key_expiring", "API keys that expire soon"),
                                    ("webhook_disabled", "Disabled webhook endpoints"),
                                    ("chain_broken", "Failed integrity checks"),
                                ],
                                max_length=20,
                            ),
                        ),
                        ("count", models.PositiveIntegerField(default=1)),
                        ("at", models.DateTimeField(default=django.utils.timezone.now)),
                        ("read_at", models.DateTimeField(null=True)),
                        ("is_email", models.BooleanField(default=False)),
                        ("emailed_at", models.DateTimeField(null=True)),
                        (
                            "event",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="personas.event",
                            ),
                        ),
                        (
                            "member",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="notifications",
                                to="personas.membership",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(
                                fields=["workspace", "member", "-at"], name="notifications_of_member"
                            ),
                            models.Index(
                                condition=models.Q(("read_at", None)),
                                fields=["workspace", "member", "kind"],
                                name="notifications_unread",
                            ),
                            models.Index(
                                condition=models.Q(
                                    ("emailed_at", None), ("is_email", True), ("read_at", None)
                                ),
                                fields=["workspace", "member", "at"],
                                name="notifications_to_email",
                            ),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "member", "event"), name="notification_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="NotificationPreference",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "kind",
                            models.CharField(
                                choices=[
                                    ("review_requested", "Releases that need review"),
                                    ("release_updated", "Decisions about your releases and changes"),
                                    ("commented", "Comments on your releases, changes and memories"),
                                    ("memory_proposed", "Memories that need approval"),
                                    ("file_waiting", "Context files that need review"),
                                    ("build_failed", "Failed builds"),
                                    ("key_expiring", "API keys that expire soon"),
                                    ("webhook_disabled", "Disabled webhook endpoints"),
                                    ("chain_broken", "Failed integrity checks"),
                                ],
                                max_length=20,
                            ),
                        ),
                        (
                            "delivery",
                            models.CharField(
                                choices=[
                                    ("app", "In the app"),
                                    ("email", "In the app and by email"),
                                    ("none", "Off"),
                                ],
                                max_length=5,
                            ),
                        ),
                        (
                            "member",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to="personas.membership",
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "member", "kind"), name="notification_preference_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="DailyUsage",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=32)),
                        ("subject", models.CharField(max_length=64)),
                        ("day", models.DateField()),
                        ("amount", models.PositiveBigIntegerField()),
                    ],
                    options={
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("kind", "subject", "day"), name="daily_usage_once_a_day"
                            )
                        ],
                    },
                ),
                migrations.CreateModel(
                    name="DailyStorage",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("day", models.DateField()),
                        ("size", models.PositiveBigIntegerField()),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "day"), name="storage_once_a_day")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
            ],
        ),
    ]
