"""Scanner findings are shown on every record page and never block saving."""

import pytest
from django.template import Context, Template

from personas.models import Soul
from skills.models import Skill
from skills.record_scan import scan_record
from skills.scanning import compute_key_checksum
from tests.factories import (
    make_agent,
    make_channel,
    make_identity,
    make_memory,
    make_profile,
    make_responsibility,
    make_skill,
    make_soul,
    make_task,
    make_tool,
)
from tests.processor_time import measure_seconds
from tests.shared_cast import (  # noqa: F401  # fixtures
    shared_alice,
    shared_as_alice,
    shared_as_bob,
    shared_as_mallory,
    shared_bob,
    shared_cast,
    shared_elsewhere,
    shared_mallory,
    shared_workspace,
)
from tests.skills.library.skill_stage import HIDDEN
from tests.skills.seeded_choice import SOME_OR_ALL

pytestmark = pytest.mark.django_db


def render_findings(record):
    return Template("{% load findings %}{% findings record %}").render(Context({"record": record}))


def test_text_without_findings_renders_nothing(workspace):
    assert render_findings(make_soul(workspace, text="Be calm. 👩‍👩‍👧‍👦 שלום")).strip() == ""
    assert render_findings(Soul(workspace=workspace)).strip() == ""


def test_hidden_characters_are_named_by_rule_line_and_field(workspace):
    panel = render_findings(make_soul(workspace, text=f"Be calm.\nAnd{HIDDEN} kind."))
    for text in (
        "invisible-character",
        "Text, line 2",
        "⟦U+200B⟧",
        "Invisible character that no script or emoji needs",
    ):
        assert text in panel
    assert HIDDEN not in panel


@pytest.mark.parametrize("control", ["\u202e", "\u2066", "\U000e0041", "\u200f"])
def test_hidden_characters_are_not_rendered_raw(workspace, control):
    panel = render_findings(make_soul(workspace, text=f"<b>calm{control}</b>"))
    assert control not in panel
    assert "<b>calm" not in panel
    assert "<bdi" in panel


def test_a_secret_is_flagged_but_not_repeated(workspace):
    secret = "drm_bot_" + "a1" * 15
    secret += compute_key_checksum("a1" * 15)
    panel = render_findings(make_soul(workspace, text=f"Use {secret}."))
    assert "secret-" in panel
    assert secret not in panel


def test_a_right_to_left_excerpt_is_isolated(workspace):
    panel = render_findings(make_soul(workspace, text=f"שלום{HIDDEN}{HIDDEN}{HIDDEN} עולם"))
    assert '<bdi class="dr-flag-excerpt dr-mono">' in panel


def test_unrestricted_tools_are_flagged_in_skills(workspace):
    [flag] = scan_record(make_skill(workspace, "tea", allowed_tools="Read Bash(*)"))
    assert (flag.field, flag.finding.rule, flag.finding.line, flag.finding.column) == (
        "allowed_tools",
        "wide-tools",
        1,
        6,
    )
    assert scan_record(make_skill(workspace, "cake", allowed_tools="Read Bash(git add *)")) == []


def test_many_findings_are_cut_and_counted(workspace):
    panel = render_findings(make_soul(workspace, text=f"a{HIDDEN}b\n" * 500))
    assert panel.count("<li>") == 21
    assert "and 81 more" in panel


@pytest.mark.slow
@SOME_OR_ALL
def test_every_kind_of_record_shows_findings(workspace, as_bob, chosen):
    text = f"Hidden{HIDDEN} words"
    agent = make_agent(workspace, "pilot", instructions=text)
    records = [
        ("agents", agent.slug),
        ("identities", make_identity(workspace, text=text).slug),
        ("souls", make_soul(workspace, text=text).slug),
        ("user-profiles", make_profile(workspace, notes=text).slug),
        ("memories", make_memory(workspace, text).pk),
        ("responsibilities", make_responsibility(agent, text=text).pk),
        ("tasks", make_task(workspace, description=text).number),
        ("tools", make_tool(workspace, description=text).name),
        ("channels", make_channel(workspace, formatting=text).slug),
        ("skills", make_skill(workspace, body=text).name),
    ]
    for kind, key in chosen(records):
        page = as_bob.get(f"/w/{workspace.slug}/{kind}/{key}/").content.decode()
        assert "Check this text before you use it" in page, kind
        assert "⟦U+200B⟧" in page, kind


def test_the_largest_record_is_scanned_in_a_second(workspace):
    skill = Skill(
        workspace=workspace, name="tea", description="x " * 512, body=f"Words{HIDDEN} and more. " * 4_400
    )
    assert measure_seconds(lambda: scan_record(skill), 1) < 1
