"""Create the tables of sources, context files and skills."""

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import core.db.create_models
import core.db.fields
import personas.workspaces.models
import skills.sources.models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("personas", "0002_tables"),
    ]

    operations = [
        core.db.create_models.CreateModels(
            models=[
                migrations.CreateModel(
                    name="Skill",
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
                                max_length=64, validators=[personas.workspaces.models.validate_not_reserved]
                            ),
                        ),
                        ("description", core.db.fields.ProseField(max_length=1024)),
                        ("body", core.db.fields.ProseField(max_length=100000)),
                        ("license", core.db.fields.LineField(blank=True, max_length=200)),
                        ("compatibility", core.db.fields.LineField(blank=True, max_length=500)),
                        ("allowed_tools", core.db.fields.LineField(blank=True, max_length=1000)),
                        ("metadata", models.JSONField(blank=True, default=dict)),
                        ("disable_model_invocation", models.BooleanField(default=False)),
                        ("for_all_agents", models.BooleanField(default=False)),
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
                            models.UniqueConstraint(fields=("workspace", "name"), name="skill_name_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="SkillLink",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="skill_links",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "skill",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="agent_links",
                                to="skills.skill",
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
                            models.UniqueConstraint(fields=("skill", "agent"), name="skill_once_per_agent")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="ContextFile",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("path", models.CharField(max_length=1000)),
                        (
                            "file_kind",
                            models.CharField(
                                choices=[
                                    ("base", "base"),
                                    ("append", "append"),
                                    ("persona", "persona"),
                                    ("context", "context"),
                                    ("workspace", "workspace"),
                                    ("skill", "skill"),
                                ],
                                max_length=10,
                            ),
                        ),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("new", "New"),
                                    ("current", "Current"),
                                    ("changed", "Changed"),
                                    ("missing", "Missing"),
                                    ("invalid", "Invalid"),
                                    ("quarantined", "Quarantined"),
                                    ("ignored", "Ignored"),
                                ],
                                default="new",
                                max_length=11,
                            ),
                        ),
                        ("problem", models.CharField(blank=True, max_length=500)),
                        ("exists", models.BooleanField(default=True)),
                        ("is_ignored", models.BooleanField(default=False)),
                        ("is_resolved", models.BooleanField(default=False)),
                        ("size", models.BigIntegerField(default=0)),
                        ("mtime_ns", models.BigIntegerField(default=0)),
                        ("inode", models.BigIntegerField(default=0)),
                        ("name", models.CharField(blank=True, max_length=200)),
                        ("trusted_digest", models.CharField(blank=True, max_length=64)),
                        (
                            "assigned_to",
                            models.CharField(
                                choices=[
                                    ("where_found", "Agents whose rules match this skill"),
                                    ("all", "All agents"),
                                    ("selected", "Selected agents"),
                                ],
                                default="where_found",
                                max_length=11,
                            ),
                        ),
                        ("first_seen_at", models.DateTimeField()),
                        ("changed_at", models.DateTimeField()),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "approved",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="skills.filerevision",
                            ),
                        ),
                        (
                            "active",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="used_by",
                                to="skills.filerevision",
                            ),
                        ),
                        (
                            "latest",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="skills.filerevision",
                            ),
                        ),
                        (
                            "source",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="files",
                                to="skills.source",
                            ),
                        ),
                        ("ctime_ns", models.BigIntegerField(db_default=0, default=0)),
                        (
                            "rejected_digest",
                            models.CharField(blank=True, db_default="", default="", max_length=64),
                        ),
                    ],
                    options={
                        "ordering": ["path"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(
                                fields=["workspace", "is_resolved", "status"], name="files_by_status"
                            ),
                            models.Index(fields=["workspace", "file_kind", "name"], name="files_by_name"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("source", "path"), name="file_once_per_source"),
                            models.CheckConstraint(
                                condition=models.Q(
                                    (
                                        "status__in",
                                        [
                                            "new",
                                            "current",
                                            "changed",
                                            "missing",
                                            "invalid",
                                            "quarantined",
                                            "ignored",
                                        ],
                                    )
                                ),
                                name="file_status_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("assigned_to__in", ["where_found", "all", "selected"])),
                                name="file_assignment_known",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="FileRevision",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveIntegerField()),
                        ("digest", models.CharField(max_length=64)),
                        ("size", models.PositiveIntegerField()),
                        (
                            "verdict",
                            models.CharField(
                                choices=[
                                    ("good", "Valid"),
                                    ("invalid", "Invalid"),
                                    ("blocked", "Quarantined"),
                                ],
                                max_length=7,
                            ),
                        ),
                        ("findings", models.JSONField(default=list)),
                        ("problems", models.JSONField(default=list)),
                        ("head", models.JSONField(default=dict)),
                        ("first_seen_at", models.DateTimeField()),
                        ("last_seen_at", models.DateTimeField(null=True)),
                        (
                            "content",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.content",
                            ),
                        ),
                        (
                            "file",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="revisions",
                                to="skills.contextfile",
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
                        "ordering": ["-number"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [models.Index(fields=["workspace", "digest"], name="revisions_by_digest")],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("file", "number"), name="file_revisions_numbered_once"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("verdict__in", ["good", "invalid", "blocked"])),
                                name="file_verdict_known",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="RuleSet",
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
                        ("harness", core.db.fields.LineField(max_length=40)),
                        ("rules", models.JSONField()),
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
                            models.UniqueConstraint(fields=("workspace", "harness"), name="rule_set_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Source",
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
                        (
                            "source_kind",
                            models.CharField(
                                choices=[
                                    ("folder", "A folder that workers read"),
                                    ("pushed", "Files pushed by upload or API"),
                                ],
                                default="folder",
                                max_length=6,
                            ),
                        ),
                        ("folder", core.db.fields.LineField(blank=True, max_length=1000)),
                        (
                            "harnesses",
                            models.JSONField(blank=True, default=skills.sources.models.every_harness),
                        ),
                        (
                            "approval",
                            models.CharField(
                                choices=[
                                    ("automatic", "Automatic: use changes immediately if the scan passes"),
                                    ("manual", "Manual: review each change"),
                                ],
                                default="automatic",
                                max_length=9,
                            ),
                        ),
                        ("refresh_minutes", models.PositiveIntegerField(blank=True, default=15, null=True)),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "allowed_folder",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="sources",
                                to="skills.allowedfolder",
                            ),
                        ),
                        ("allow_hard_links", models.BooleanField(db_default=False, default=False)),
                        (
                            "location",
                            core.db.fields.LineField(blank=True, db_default="", default="", max_length=1000),
                        ),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "slug"), name="source_slug_once"),
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("allowed_folder", None), ("source_kind", "pushed")),
                                    models.Q(("allowed_folder__isnull", False), ("source_kind", "folder")),
                                    _connector="OR",
                                ),
                                name="source_has_its_folder",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("approval__in", ["automatic", "manual"])),
                                name="source_approval_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("refresh_minutes", None),
                                    ("refresh_minutes__range", (1, 10080)),
                                    _connector="OR",
                                ),
                                name="source_schedule_sane",
                                violation_error_message="Enter 1 to 10,080 minutes (a week), or leave it empty.",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="RefreshRun",
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
                                    ("queued", "Queued"),
                                    ("running", "Running"),
                                    ("done", "Done"),
                                    ("held", "Held"),
                                    ("failed", "Failed"),
                                    ("lost", "Interrupted"),
                                ],
                                default="queued",
                                max_length=7,
                            ),
                        ),
                        ("cause", models.CharField(max_length=20)),
                        ("actor_label", models.CharField(max_length=254)),
                        ("requested_at", models.DateTimeField(auto_now_add=True)),
                        ("sent_at", models.DateTimeField(null=True)),
                        ("started_at", models.DateTimeField(null=True)),
                        ("leased_until", models.DateTimeField(null=True)),
                        ("finished_at", models.DateTimeField(null=True)),
                        ("seen", models.PositiveIntegerField(default=0)),
                        ("read", models.PositiveIntegerField(default=0)),
                        ("refused", models.PositiveIntegerField(default=0)),
                        ("outcome", models.JSONField(default=dict)),
                        ("refusals", models.JSONField(default=list)),
                        ("error", models.CharField(blank=True, max_length=500)),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "source",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="runs",
                                to="skills.source",
                            ),
                        ),
                        ("missing", models.PositiveIntegerField(db_default=0, default=0)),
                        ("missing_paths", models.JSONField(null=True)),
                        ("confirmed_paths", models.JSONField(null=True)),
                    ],
                    options={
                        "ordering": ["-pk"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(
                                models.F("source"),
                                models.OrderBy(models.F("id"), descending=True),
                                name="runs_of_a_source",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("status", "running")),
                                fields=("source",),
                                name="one_refresh_at_a_time",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("status", "queued")),
                                fields=("source",),
                                name="one_queued_refresh",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    ("status__in", ["queued", "running", "done", "held", "failed", "lost"])
                                ),
                                name="run_status_known",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="PushedFile",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("path", models.CharField(max_length=1000)),
                        ("pushed_at", models.DateTimeField(auto_now=True)),
                        (
                            "content",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.content",
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
                            "source",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="pushed_files",
                                to="skills.source",
                            ),
                        ),
                        (
                            "pushed_by",
                            models.ForeignKey(
                                blank=True,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.apikey",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["path"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("source", "path"), name="pushed_path_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="AgentContext",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("harness", core.db.fields.LineField(default="plain", max_length=40)),
                        (
                            "agent",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="context",
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
                        (
                            "source",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agent_contexts",
                                to="skills.source",
                            ),
                        ),
                        ("has_context_files", models.BooleanField(db_default=True, default=True)),
                        ("has_skills", models.BooleanField(db_default=True, default=True)),
                        (
                            "file_names",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value([], output_field=models.JSONField()),
                                default=list,
                            ),
                        ),
                        (
                            "extra_skill_folders",
                            models.JSONField(
                                blank=True,
                                db_default=models.Value([], output_field=models.JSONField()),
                                default=list,
                            ),
                        ),
                        (
                            "pulled_skills_folder",
                            core.db.fields.LineField(blank=True, db_default="", default="", max_length=1000),
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
                    name="AllowedFolder",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "path",
                            core.db.fields.LineField(
                                help_text="One of the allowed roots, or a folder below one.", max_length=1000
                            ),
                        ),
                        ("note", core.db.fields.LineField(blank=True, max_length=200)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
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
                            models.UniqueConstraint(fields=("workspace", "path"), name="allowed_folder_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Waiver",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("digest", models.CharField(max_length=64)),
                        ("reason", core.db.fields.LineField(max_length=500)),
                        ("until", models.DateField()),
                        ("author_label", models.CharField(max_length=254)),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        ("ended_at", models.DateTimeField(null=True)),
                        (
                            "file",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="waivers",
                                to="skills.contextfile",
                            ),
                        ),
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
                    ],
                    options={
                        "ordering": ["-pk"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("ended_at", None)),
                                fields=("file", "digest"),
                                name="one_open_waiver",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="FileAgent",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="file_links",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "file",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="agent_links",
                                to="skills.contextfile",
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
                            models.UniqueConstraint(fields=("file", "agent"), name="file_once_per_agent")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="AgentSource",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "scope",
                            models.CharField(
                                choices=[
                                    ("both", "Project and home directory"),
                                    ("project", "Project"),
                                    ("home", "Home directory"),
                                ],
                                default="both",
                                max_length=7,
                            ),
                        ),
                        ("location", core.db.fields.LineField(blank=True, max_length=1000)),
                        ("position", models.PositiveSmallIntegerField(default=0)),
                        (
                            "context",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="uses",
                                to="skills.agentcontext",
                            ),
                        ),
                        (
                            "source",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="agent_uses",
                                to="skills.source",
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
                        "ordering": ["position", "pk"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("context", "source"), name="agent_source_once"),
                            models.CheckConstraint(
                                condition=models.Q(("scope__in", ["both", "project", "home"])),
                                name="agent_source_scope_known",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
            ],
        ),
        # The column stays in the database until a release after the first one: backups contain it.
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.RemoveField(
                    model_name="agentcontext",
                    name="source",
                ),
            ],
        ),
    ]
