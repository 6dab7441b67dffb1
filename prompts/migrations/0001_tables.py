"""Create the tables of prompts, versions, labels, releases and the ledger."""

import django.core.validators
import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models

import core.db.create_models
import core.db.fields
import core.db.line_lists


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("personas", "0002_tables"),
    ]

    operations = [
        core.db.create_models.CreateModels(
            models=[
                migrations.CreateModel(
                    name="AgentPrompt",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("last_number", models.PositiveIntegerField(default=0)),
                        ("last_hash", models.CharField(blank=True, max_length=64)),
                        ("last_move", models.PositiveIntegerField(default=0)),
                        ("last_move_hash", models.CharField(blank=True, max_length=64)),
                        ("is_active", models.BooleanField(default=True)),
                        ("built_at", models.DateTimeField(null=True)),
                        ("changes_at", models.DateTimeField(null=True)),
                        ("problem", models.CharField(blank=True, max_length=1000)),
                        ("is_pinned", models.BooleanField(default=False)),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="prompts",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "channel",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="prompts",
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
                        (
                            "latest",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
                            ),
                        ),
                        ("compiler", models.CharField(blank=True, max_length=20)),
                        ("report", models.CharField(blank=True, db_default="", default="", max_length=64)),
                        ("is_review_kept", models.BooleanField(db_default=False, default=False)),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(
                                condition=models.Q(("changes_at__isnull", False)),
                                fields=["changes_at"],
                                name="prompts_by_change",
                            )
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("agent", "channel"), name="one_prompt_per_pair"),
                            models.UniqueConstraint(fields=("workspace", "id"), name="prompts_by_workspace"),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="BuildCause",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("cause", models.JSONField()),
                        ("at", models.DateTimeField(auto_now_add=True)),
                        (
                            "agent",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
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
                        ("sent_at", models.DateTimeField(null=True)),
                    ],
                    options={
                        "ordering": ["pk"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="LedgerBlock",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("sequence", models.PositiveIntegerField()),
                        ("first_id", models.BigIntegerField()),
                        ("last_id", models.BigIntegerField()),
                        ("count", models.PositiveIntegerField()),
                        ("rows", models.CharField(max_length=64)),
                        ("first_at", models.DateTimeField()),
                        ("last_at", models.DateTimeField()),
                        ("at", models.DateTimeField()),
                        ("previous_hash", models.CharField(blank=True, max_length=64)),
                        ("hash", models.CharField(max_length=64)),
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
                        "ordering": ["-sequence"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["workspace", "last_id"], name="ledger_blocks_by_row")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "sequence"), name="ledger_blocks_numbered_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="LedgerExpiry",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("first_id", models.BigIntegerField()),
                        ("last_id", models.BigIntegerField()),
                        ("months", models.PositiveSmallIntegerField()),
                        ("at", models.DateTimeField()),
                        (
                            "block",
                            models.OneToOneField(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="expiry",
                                to="prompts.ledgerblock",
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
                        ("previous_hash", models.CharField(blank=True, max_length=64)),
                        ("hash", models.CharField(max_length=64)),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["workspace", "first_id", "last_id"], name="ledger_expiries")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="PromptSettings",
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
                        ("mission", core.db.fields.ProseField(blank=True, max_length=20000)),
                        (
                            "entry",
                            models.CharField(
                                blank=True,
                                choices=[("full", "Full"), ("simple", "Simple"), ("minimal", "Minimal")],
                                max_length=7,
                            ),
                        ),
                        (
                            "mode",
                            models.CharField(
                                blank=True,
                                choices=[("agent", "Agent"), ("single_turn", "Single turn")],
                                max_length=11,
                            ),
                        ),
                        ("native_tools", models.BooleanField(blank=True, null=True)),
                        ("total_characters", models.PositiveIntegerField(blank=True, null=True)),
                        ("token_budget", models.PositiveIntegerField(blank=True, null=True)),
                        (
                            "agent",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="prompt_settings",
                                to="personas.agent",
                            ),
                        ),
                        (
                            "channel",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="prompt_settings",
                                to="personas.channel",
                            ),
                        ),
                        (
                            "identity",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.identity",
                            ),
                        ),
                        (
                            "soul",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.soul",
                            ),
                        ),
                        (
                            "user_profile",
                            models.ForeignKey(
                                blank=True,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
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
                        (
                            "signature",
                            core.db.fields.ProseField(blank=True, db_default="", default="", max_length=4000),
                        ),
                        (
                            "sample_data",
                            core.db.fields.ProseField(
                                blank=True, db_default="", default="", max_length=60000
                            ),
                        ),
                        ("hidden", core.db.line_lists.LineListField(blank=True, null=True)),
                        ("list_sample", models.PositiveIntegerField(blank=True, null=True)),
                        ("string_truncate", models.PositiveIntegerField(blank=True, null=True)),
                        ("per_file", models.PositiveIntegerField(blank=True, null=True)),
                        ("all_files", models.PositiveIntegerField(blank=True, null=True)),
                        ("omit_reference", models.BooleanField(blank=True, null=True)),
                        ("section_limits", models.JSONField(blank=True, null=True)),
                    ],
                    options={
                        "verbose_name_plural": "prompt settings",
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                condition=models.Q(("agent", None), ("channel", None)),
                                fields=("workspace",),
                                name="one_set_of_defaults",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("channel", None)),
                                fields=("agent",),
                                name="settings_once_per_agent",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("agent", None)),
                                fields=("channel",),
                                name="settings_once_per_channel",
                            ),
                            models.UniqueConstraint(
                                condition=models.Q(("agent__isnull", False), ("channel__isnull", False)),
                                fields=("agent", "channel"),
                                name="settings_once_per_prompt",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="PromptVersion",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveIntegerField()),
                        ("digest", models.CharField(max_length=64)),
                        ("text_digest", models.CharField(max_length=64)),
                        ("layout", models.CharField(max_length=40)),
                        ("compiler", models.CharField(max_length=20)),
                        ("segments", models.JSONField()),
                        ("tools", models.CharField(blank=True, max_length=64)),
                        ("characters", models.PositiveIntegerField()),
                        ("tokens", models.PositiveIntegerField()),
                        ("sizes", core.db.fields.CompactJSONField()),
                        ("report", models.CharField(max_length=64)),
                        ("lockfile", core.db.fields.CompactJSONField()),
                        ("causes", core.db.fields.CompactJSONField()),
                        ("author_label", models.CharField(max_length=254)),
                        ("message", models.CharField(blank=True, max_length=200)),
                        ("created_at", models.DateTimeField()),
                        ("previous_hash", models.CharField(blank=True, max_length=64)),
                        ("hash", models.CharField(max_length=64)),
                        (
                            "prompt",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="versions",
                                to="prompts.agentprompt",
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
                        ("skill_files", core.db.fields.CompactJSONField(db_default=[], default=list)),
                    ],
                    options={
                        "ordering": ["-number"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["prompt", "-created_at"], name="versions_by_time"),
                            models.Index(fields=["workspace", "digest"], name="versions_by_digest"),
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("prompt", "number"), name="versions_numbered_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="PromptLabel",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "name",
                            models.SlugField(
                                db_index=False,
                                max_length=40,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    )
                                ],
                            ),
                        ),
                        ("moved_at", models.DateTimeField()),
                        (
                            "prompt",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="labels",
                                to="prompts.agentprompt",
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
                            "version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="labels",
                                to="prompts.promptversion",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["name"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(fields=("prompt", "name"), name="label_once_per_prompt"),
                            models.UniqueConstraint(fields=("workspace", "id"), name="labels_by_workspace"),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="LedgerEntry",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("reader_label", models.CharField(max_length=254)),
                        ("label", models.CharField(blank=True, max_length=40)),
                        ("slots", models.JSONField()),
                        ("served_digest", models.CharField(max_length=64)),
                        ("size", models.PositiveIntegerField()),
                        ("status", models.PositiveSmallIntegerField()),
                        ("request_id", models.CharField(max_length=64)),
                        ("at", models.DateTimeField()),
                        ("seal", models.CharField(max_length=64)),
                        (
                            "key",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.apikey",
                            ),
                        ),
                        (
                            "prompt",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.agentprompt",
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                db_constraint=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
                            ),
                        ),
                        ("traceparent", models.CharField(max_length=55, null=True)),
                        ("skill", models.CharField(max_length=255, null=True)),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["workspace", "-at"], name="ledger_by_time"),
                            models.Index(fields=["prompt", "-at"], name="ledger_by_prompt"),
                            models.Index(fields=["workspace", "request_id"], name="ledger_by_request"),
                            models.Index(fields=["key", "-at"], name="ledger_by_key"),
                            models.Index(fields=["workspace", "id"], name="ledger_in_order"),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Release",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("number", models.PositiveIntegerField()),
                        ("label", models.CharField(max_length=40)),
                        ("message", core.db.fields.LineField(max_length=300)),
                        (
                            "status",
                            models.CharField(
                                choices=[
                                    ("requested", "Waiting for approval"),
                                    ("approved", "Approved"),
                                    ("released", "Released"),
                                    ("rejected", "Rejected"),
                                    ("withdrawn", "Withdrawn"),
                                    ("voided", "Out of date"),
                                ],
                                default="requested",
                                max_length=9,
                            ),
                        ),
                        ("requested_label", models.CharField(max_length=254)),
                        ("requested_at", models.DateTimeField(auto_now_add=True)),
                        ("decided_label", models.CharField(blank=True, max_length=254)),
                        ("decided_at", models.DateTimeField(null=True)),
                        ("reason", core.db.fields.LineField(blank=True, max_length=500)),
                        ("is_override", models.BooleanField(default=False)),
                        ("released_at", models.DateTimeField(null=True)),
                        (
                            "decided_by",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        (
                            "requested_by",
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
                        ("cache_prefixes", models.JSONField(default=dict)),
                    ],
                    options={
                        "ordering": ["-number"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "number"), name="releases_numbered_once"
                            ),
                            models.CheckConstraint(
                                condition=models.Q(
                                    (
                                        "status__in",
                                        [
                                            "requested",
                                            "approved",
                                            "released",
                                            "rejected",
                                            "withdrawn",
                                            "voided",
                                        ],
                                    )
                                ),
                                name="release_status_known",
                            ),
                            models.CheckConstraint(
                                condition=models.Q(("is_override", True), ("reason", ""), _negated=True),
                                name="an_override_has_a_reason",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="LabelMove",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("sequence", models.PositiveIntegerField()),
                        ("label", models.CharField(max_length=40)),
                        ("reason", models.CharField(max_length=20)),
                        ("note", models.CharField(blank=True, max_length=500)),
                        ("author_label", models.CharField(max_length=254)),
                        ("at", models.DateTimeField()),
                        ("previous_hash", models.CharField(blank=True, max_length=64)),
                        ("hash", models.CharField(max_length=64)),
                        (
                            "prompt",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="label_moves",
                                to="prompts.agentprompt",
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
                            "previous_version",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
                            ),
                        ),
                        (
                            "release",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="moves",
                                to="prompts.release",
                            ),
                        ),
                    ],
                    options={
                        "ordering": ["-pk"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["prompt", "label", "-at"], name="label_moves_by_time")
                        ],
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("prompt", "sequence"), name="label_moves_numbered_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="ReleaseItem",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("digest", models.CharField(max_length=64)),
                        (
                            "before",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
                            ),
                        ),
                        (
                            "prompt",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.agentprompt",
                            ),
                        ),
                        (
                            "release",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="items",
                                to="prompts.release",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
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
                                fields=("release", "prompt"), name="prompt_once_per_release"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Checkpoint",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("sequence", models.PositiveIntegerField()),
                        ("body", models.JSONField()),
                        ("at", models.DateTimeField()),
                        ("previous_hash", models.CharField(blank=True, max_length=64)),
                        ("hash", models.CharField(max_length=64)),
                        ("key_id", models.CharField(max_length=16)),
                        ("signature", models.CharField(max_length=128)),
                        (
                            "workspace",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.workspace",
                            ),
                        ),
                        ("heads", models.JSONField()),
                    ],
                    options={
                        "ordering": ["-sequence"],
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "constraints": [
                            models.UniqueConstraint(
                                fields=("workspace", "sequence"), name="checkpoints_numbered_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="LabelRule",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        (
                            "name",
                            models.SlugField(
                                db_index=False,
                                max_length=40,
                                validators=[
                                    django.core.validators.RegexValidator(
                                        "\\A[a-z0-9]+(?:-[a-z0-9]+)*\\Z",
                                        "Use lowercase letters, digits and single hyphens.",
                                        code="slug",
                                    )
                                ],
                            ),
                        ),
                        ("is_protected", models.BooleanField(default=False)),
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
                            models.UniqueConstraint(fields=("workspace", "name"), name="label_rule_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="VersionPart",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("kind", models.CharField(max_length=20)),
                        ("object_id", models.BigIntegerField()),
                        ("revision", models.PositiveIntegerField(null=True)),
                        (
                            "prompt",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.agentprompt",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
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
                                fields=["workspace", "kind", "object_id", "prompt", "version"],
                                name="parts_by_record",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="SigningKey",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("key_id", models.CharField(max_length=16)),
                        ("public_key", models.CharField(max_length=200)),
                        ("first_used_at", models.DateTimeField()),
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
                            models.UniqueConstraint(fields=("workspace", "key_id"), name="signing_key_once")
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="VerificationRun",
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
                                    ("queued", "Waiting for a worker"),
                                    ("running", "Running"),
                                    ("done", "Done"),
                                    ("failed", "Not finished"),
                                ],
                                default="queued",
                                max_length=7,
                            ),
                        ),
                        ("requested_label", models.CharField(max_length=254)),
                        ("requested_at", models.DateTimeField(auto_now_add=True)),
                        ("started_at", models.DateTimeField(null=True)),
                        ("ended_at", models.DateTimeField(null=True)),
                        ("result", models.JSONField(default=dict)),
                        ("problem", models.CharField(blank=True, max_length=300)),
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
                                condition=models.Q(("status__in", ["queued", "running"])),
                                fields=("workspace",),
                                name="one_open_verification",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="DigestReport",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("client_label", models.CharField(max_length=254)),
                        ("digest", models.CharField(max_length=64)),
                        ("ledger_id", models.BigIntegerField(null=True)),
                        ("request_id", models.CharField(blank=True, max_length=64)),
                        ("is_last_served", models.BooleanField()),
                        ("at", models.DateTimeField(auto_now_add=True)),
                        (
                            "key",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.apikey",
                            ),
                        ),
                        (
                            "prompt",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.agentprompt",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                db_index=False,
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
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
                        ("details", models.JSONField()),
                    ],
                    options={
                        "abstract": False,
                        "default_manager_name": "unscoped",
                        "indexes": [
                            models.Index(fields=["prompt", "-at"], name="reports_by_prompt"),
                            models.Index(
                                condition=models.Q(("version", None)),
                                fields=["workspace", "prompt", "key"],
                                name="reports_never_released",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="CallContent",
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
                        ("last_used_on", models.DateField()),
                        ("created_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "workspace",
                            models.ForeignKey(
                                db_index=False,
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
                        "indexes": [
                            models.Index(fields=["workspace", "last_used_on"], name="call_contents_by_use")
                        ],
                        "constraints": [
                            models.UniqueConstraint(fields=("workspace", "digest"), name="call_content_once"),
                            models.UniqueConstraint(
                                condition=models.Q(("plain_digest__isnull", False)),
                                fields=("workspace", "plain_digest"),
                                name="salted_call_content_once",
                            ),
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="ReleaseComment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("author_label", models.CharField(max_length=254)),
                        ("text", core.db.fields.ProseField(max_length=4000)),
                        ("is_change_request", models.BooleanField(default=False)),
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
                            "release",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="comments",
                                to="prompts.release",
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
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="ReleaseReviewer",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("requested_label", models.CharField(max_length=254)),
                        ("requested_at", models.DateTimeField(auto_now_add=True)),
                        (
                            "release",
                            models.ForeignKey(
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="reviewers",
                                to="prompts.release",
                            ),
                        ),
                        (
                            "user",
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
                                fields=("workspace", "release", "user"), name="release_reviewer_once"
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
                migrations.CreateModel(
                    name="Comment",
                    fields=[
                        (
                            "id",
                            models.BigAutoField(
                                auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                            ),
                        ),
                        ("line", models.PositiveIntegerField(null=True)),
                        ("author_label", models.CharField(max_length=254)),
                        ("text", core.db.fields.ProseField(max_length=4000)),
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
                            "memory",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="personas.memory",
                            ),
                        ),
                        (
                            "version",
                            models.ForeignKey(
                                null=True,
                                on_delete=django.db.models.deletion.PROTECT,
                                related_name="+",
                                to="prompts.promptversion",
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
                            models.CheckConstraint(
                                condition=models.Q(
                                    models.Q(("line", None), ("memory__isnull", False), ("version", None)),
                                    models.Q(("line__gte", 1), ("memory", None), ("version__isnull", False)),
                                    _connector="OR",
                                ),
                                name="comment_has_one_subject",
                            )
                        ],
                    },
                    managers=[
                        ("unscoped", django.db.models.manager.Manager()),
                    ],
                ),
            ],
        ),
    ]
