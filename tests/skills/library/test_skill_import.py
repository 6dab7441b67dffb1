"""Import of SKILL.md files: pasted, uploaded, copied from a discovered skill, or by the command."""

import io
import os
import zipfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import CommandError, call_command

from personas.models import Revision
from skills.files.services import ignore_file
from skills.library.services import InvalidSkillFile, import_skill
from skills.models import Skill
from tests.factories import BY, make_skill, make_source, refreshed
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
from tests.skills.library.skill_stage import HIDDEN, get_skill_file, skill_text, trust_skill, write_skill
from tests.skills.seeded_choice import SOME_OR_ALL
from tests.skills.skill_format.skill_corpus import SOUND

pytestmark = pytest.mark.django_db

EMPTY = {"no body", "nothing after the fence"}
COMPLETE_SKILL = """---
name: tea
description: |
  Makes tea.
  Well.
license: MIT
compatibility: any kettle
allowed-tools: Read Write
metadata:
  version: "1.10"
  no: no
disable-model-invocation: true
---

# Boil

water
"""


def post_import(browser, workspace, text="", file=None):
    return browser.post(
        f"/w/{workspace.slug}/skills/import/", {"text": text} | ({"file": file} if file else {})
    )


def only_skill(workspace):
    return Skill.objects.in_workspace(workspace).get()


def test_a_pasted_skill_is_stored_completely_and_assigned_to_no_agent(workspace, as_bob):
    assert post_import(as_bob, workspace, COMPLETE_SKILL.replace("\n", "\r\n")).status_code == 302
    skill = only_skill(workspace)
    assert (skill.name, skill.description, skill.body) == ("tea", "Makes tea.\nWell.", "# Boil\n\nwater")
    assert (skill.license, skill.compatibility, skill.allowed_tools) == ("MIT", "any kettle", "Read Write")
    assert (skill.metadata, skill.disable_model_invocation) == ({"version": "1.10", "no": "no"}, True)
    assert skill.agent_ids() == []


def test_an_uploaded_skill_is_read_as_bytes(workspace, as_bob):
    file = SimpleUploadedFile("SKILL.md", b"\xef\xbb\xbf" + COMPLETE_SKILL.encode())
    assert post_import(as_bob, workspace, file=file).status_code == 302
    assert only_skill(workspace).name == "tea"


def test_an_exported_skill_is_imported_unchanged(workspace, elsewhere, as_bob, as_mallory):
    post_import(as_bob, workspace, COMPLETE_SKILL)
    archive = as_bob.get(f"/w/{workspace.slug}/skills/tea/export/").content
    with zipfile.ZipFile(io.BytesIO(archive)) as opened:
        text = opened.read("tea/SKILL.md").decode()
    assert post_import(as_mallory, elsewhere, text).status_code == 302
    assert only_skill(elsewhere).snapshot() == only_skill(workspace).snapshot()


REFUSED = {
    "no front matter": ("just words", [(1, "", "must start with front matter")]),
    "bad yaml": ("---\nname: [\n---\nx\n", [(3, "", "")]),
    "bad name": (skill_text("Bad Name"), [(2, "name", "lowercase letters")]),
    "letters beyond ASCII": (skill_text("tée"), [(2, "name", "lowercase letters")]),
    "reserved": (skill_text("import"), [(2, "name", "reserved")]),
    "taken": (skill_text("taken"), [(2, "name", "Another skill")]),
    "unknown key": (skill_text("tea", more="model: big\n"), [(4, "model", "is not a field")]),
    "license": (skill_text("tea", more=f"license: {'x' * 201}\n"), [(4, "license", "200")]),
    "license of two lines": (
        skill_text("tea", more="license: |\n  a\n  b\n"),
        [(4, "license", "single line")],
    ),
    "tools": (skill_text("tea", more=f"allowed-tools: {'x' * 1_001}\n"), [(4, "allowed-tools", "1000")]),
    "body": (skill_text("tea", body="x" * 100_001), [(6, "body", "100000")]),
    "no body": ("---\nname: tea\ndescription: Makes tea.\n---\n", [(4, "body", "instructions are missing")]),
    "control character": (skill_text("tea", body="bell \x07"), [(6, "body", "U+0007")]),
    "metadata of two lines": (
        skill_text("tea", more="metadata:\n  a: |\n    b\n    c: d\n"),
        [(4, "metadata", "one “key: value” pair per line")],
    ),
    "several": (
        skill_text("Bad Name", "x" * 1_025, more=f"license: {'x' * 201}\nmodel: big\n", body="x" * 100_001),
        [
            (2, "name", "lowercase"),
            (3, "description", "1025"),
            (4, "license", "200"),
            (5, "model", "is not a field"),
            (8, "body", "100000"),
        ],
    ),
}


@SOME_OR_ALL
def test_a_rejected_file_lists_every_problem_with_field_and_line(workspace, as_bob, chosen):
    make_skill(workspace, "taken")
    before = Revision.unscoped.count()
    for case, (text, expected) in chosen(REFUSED.items()):
        response = post_import(as_bob, workspace, text)
        problems = response.context["problems"]
        assert response.status_code == 422, case
        places = [(line, field) for line, field, _ in expected]
        assert [(problem.line, problem.field) for problem in problems] == places, case
        for problem, (_, _, message) in zip(problems, expected, strict=True):
            assert message in problem.message, case
    assert Revision.unscoped.count() == before


def test_a_rejected_upload_is_shown_in_the_text_box(workspace, as_bob):
    file = SimpleUploadedFile("SKILL.md", skill_text("Bad Name", "<b>Makes tea.</b>").encode())
    page = post_import(as_bob, workspace, file=file).content.decode()
    assert "name: Bad Name" in page
    assert "&lt;b&gt;Makes tea.&lt;/b&gt;" in page


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "not UTF-8"), (b"x" * 262_145, "larger than 256 KiB"), (b"", "empty")],
)
def test_bytes_that_are_not_text_are_rejected(workspace, as_bob, content, message):
    response = post_import(as_bob, workspace, file=SimpleUploadedFile("SKILL.md", content))
    assert response.status_code == 422
    assert message in response.content.decode()


def test_an_empty_import_is_rejected(workspace, as_bob):
    assert "Choose a file or paste its text" in post_import(as_bob, workspace, " \n").content.decode()


def test_values_stored_in_another_form_cause_warnings(workspace, as_bob):
    text = skill_text("tea", more="allowed-tools:\n- Read\n- Write\nmetadata:\n  a:\n    b: c\n")
    response = as_bob.post(f"/w/{workspace.slug}/skills/import/", {"text": text}, follow=True)
    page = response.content.decode()
    assert "Line 4:" in page
    assert "Line 7:" in page
    assert only_skill(workspace).allowed_tools == "Read Write"


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.title)
def test_every_valid_sample_is_imported_or_rejected_with_messages(workspace, case):
    """All samples are valid by the reference; here a name must also be ASCII and the body not empty."""
    is_ours = case.folder.isascii() and case.title not in EMPTY
    if is_ours:
        skill, _ = import_skill(workspace, case.source, by=BY, folder=case.folder)
        assert skill.name == case.folder
        return
    with pytest.raises(InvalidSkillFile) as refused:
        import_skill(workspace, case.source, by=BY, folder=case.folder)
    assert all(problem.message and problem.line for problem in refused.value.problems)


def test_only_editors_import_skills(workspace, bob, as_bob, as_mallory):
    assert post_import(as_mallory, workspace, COMPLETE_SKILL).status_code == 404
    bob.memberships.update(role="reviewer")
    assert as_bob.get(f"/w/{workspace.slug}/skills/import/").status_code == 403
    assert post_import(as_bob, workspace, COMPLETE_SKILL).status_code == 403


# --- copies ---------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    return tmp_path


def make_refreshed_source(workspace, tree, text, path=".agents/skills/tea"):
    write_skill(tree, path, text)
    source = make_source(workspace, tree)
    refreshed(source)
    return source


def post_copy(browser, workspace, file):
    return browser.post(f"/w/{workspace.slug}/skills/copy/{file.pk}/")


def test_a_discovered_skill_is_copied_with_its_origin_in_the_history(workspace, tree, as_bob):
    source = make_refreshed_source(workspace, tree, skill_text("tea", "Makes tea.", f"Boil{HIDDEN}."))
    copied = post_copy(as_bob, workspace, get_skill_file(source, ".agents/skills/tea"))
    # A quarantined skill cannot be copied.
    assert copied.status_code == 302
    assert not Skill.objects.in_workspace(workspace).exists()
    write_skill(tree, ".agents/skills/tea", skill_text("tea", "Makes tea.", "Boil."))
    refreshed(source)
    response = post_copy(as_bob, workspace, get_skill_file(source, ".agents/skills/tea"))
    assert response["Location"] == f"/w/{workspace.slug}/skills/tea/"
    assert only_skill(workspace).body == "Boil."
    revision = Revision.objects.in_workspace(workspace).get(kind="skill")
    assert revision.message == "Copied from house-files/.agents/skills/tea/SKILL.md"


def test_a_copy_has_the_text_in_force(workspace, tree, as_bob):
    source = make_refreshed_source(workspace, tree, skill_text("tea", body="Boil."))
    trust_skill(source, ".agents/skills/tea")
    write_skill(tree, ".agents/skills/tea", skill_text("tea", body=f"Spill{HIDDEN}."))
    refreshed(source)
    post_copy(as_bob, workspace, get_skill_file(source, ".agents/skills/tea"))
    assert only_skill(workspace).body == "Boil."


def test_a_copy_names_the_files_that_its_instructions_refer_to(workspace, tree, as_bob):
    body = (
        "See [the leaves](references/leaves.md#green) and run `scripts/boil.py`.\n"
        "Not these: [home](https://tea.example/a.md), [below](#below), [up](../other/SKILL.md), `a/b`."
    )
    write_skill(tree, ".agents/skills/tea", skill_text("tea", body=body))
    source = make_source(workspace, tree, approval="automatic")
    refreshed(source)
    response = as_bob.post(
        f"/w/{workspace.slug}/skills/copy/{get_skill_file(source, '.agents/skills/tea').pk}/", follow=True
    )
    page = response.content.decode()
    assert "Not copied: references/leaves.md and scripts/boil.py." in page
    assert "tea.example" not in page.partition("Not copied")[2].partition("</")[0]


def test_a_copy_of_a_nonstandard_skill_opens_in_the_import_form(workspace, tree, as_bob):
    source = make_refreshed_source(
        workspace, tree, skill_text("tea", more="model: big\n"), ".agents/skills/tea"
    )
    response = post_copy(as_bob, workspace, get_skill_file(source, ".agents/skills/tea"))
    assert response.status_code == 422
    assert [problem.field for problem in response.context["problems"]] == ["model"]
    assert "model: big" in response.content.decode()


def test_only_skills_are_copied(workspace, tree, as_bob):
    (tree / "AGENTS.md").write_text("Be kind.\n")
    source = make_refreshed_source(workspace, tree, skill_text("tea"))
    other = source.files.get(path="AGENTS.md")
    assert post_copy(as_bob, workspace, other).status_code == 404
    ignore_file(get_skill_file(source, ".agents/skills/tea"), by=BY)
    assert post_copy(as_bob, workspace, get_skill_file(source, ".agents/skills/tea")).status_code == 302
    assert only_skill(workspace).name == "tea"


# --- by command -----------------------------------------------------------------------------------------


def run_command(workspace, folder):
    out, err = io.StringIO(), io.StringIO()
    try:
        call_command("import_skills", workspace, str(folder), stdout=out, stderr=err)
    except SystemExit as ended:
        return ended.code, out.getvalue(), err.getvalue()
    return 0, out.getvalue(), err.getvalue()


def test_the_command_imports_a_folder_of_skills(workspace, tmp_path):
    for name in ("tea", "cake"):
        write_skill(tmp_path, name, skill_text(name))
    (tmp_path / "README.md").write_text("Ours.")
    (tmp_path / "empty").mkdir()
    code, out, err = run_command("harbour", tmp_path)
    assert (code, err) == (0, "")
    assert "2 imported or already present, 0 rejected." in out
    assert run_command("harbour", tmp_path)[0] == 0
    assert list(Skill.objects.in_workspace(workspace).order_by("name").values_list("name", "revision")) == [
        ("cake", 1),
        ("tea", 1),
    ]


def test_the_command_reports_each_problem_and_fails(workspace, tmp_path):
    write_skill(tmp_path, "good", skill_text("good"))
    write_skill(tmp_path, "bad", skill_text("other", more="model: big\n"))
    make_skill(workspace, "changed")
    write_skill(tmp_path, "changed", skill_text("changed", body="Otherwise."))
    outside = tmp_path.parent / "outside"
    write_skill(outside, "secret", skill_text("secret"))
    os.symlink(outside / "secret", tmp_path / "secret")
    code, out, err = run_command("harbour", tmp_path)
    assert code == 1
    assert "1 imported or already present, 3 rejected." in out
    assert "bad/SKILL.md:2 (name): The name must equal its folder's name" in err
    assert "bad/SKILL.md:4 (model):" in err
    assert "changed/SKILL.md:2 (name): Another skill" in err
    assert "secret: " in err
    names = set(Skill.objects.in_workspace(workspace).values_list("name", flat=True))
    assert names == {"good", "changed"}


def test_the_command_rejects_an_unknown_workspace_or_folder(workspace, tmp_path):
    with pytest.raises(CommandError, match="not found"):
        run_command("nowhere", tmp_path)
    code, _, err = run_command("harbour", tmp_path / "nothing")
    assert code == 1
    assert "cannot be opened" in err
