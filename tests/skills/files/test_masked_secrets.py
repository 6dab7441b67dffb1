"""Secrets in files are masked on every page and in the API; who may approve can download the file."""

# ruff: noqa: F811  # fixtures are imported and requested by name

from datetime import timedelta

import pytest
from django.utils import timezone

from personas.roles import Role
from skills.agent_context.services import choose_context
from skills.files.services import waive_findings
from skills.library.services import SkillNotCopyable, copy_found_skill
from skills.models import Source
from tests.api_client import admin, bot, full_budgets, key_for  # noqa: F401  # fixtures
from tests.factories import BY, join, make_agent, make_source, make_user, refreshed, signed_in
from tests.skills.files.file_samples import GOOD, approve_file_at, file_at, write

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
TOKEN = "ghp" + "_" + "Zr8Kq2Vx7Lm4Nw9Tb3Yc6Hd1Jf5Sg0PaQeRu"
PASSWORD = "hunter" + "-zwei"
SECRETS = f"Use {TOKEN} here.\nAnd postgres://app:{PASSWORD}@db.internal/app there.\n"
TEA = ".agents/skills/tea/SKILL.md"


@pytest.fixture
def root(tmp_path, settings):
    settings.DRAMATIS_SOURCE_ROOTS = [tmp_path]
    write(tmp_path / "AGENTS.md", GOOD)
    return tmp_path


@pytest.fixture
def source(workspace, root) -> Source:
    """A source with a good file that got two secrets in its second revision."""
    source = make_source(workspace, root)
    refreshed(source)
    approve_file_at(source)
    write(root / "AGENTS.md", GOOD + SECRETS)
    refreshed(source)
    return source


@pytest.fixture
def as_reviewer(workspace):
    user = make_user("Rita")
    join(workspace, user, Role.REVIEWER)
    return signed_in(user)


def url(workspace, file, rest=""):
    return f"/w/{workspace.slug}/files/{file.pk}/{rest}"


def has_secret(text: str) -> bool:
    return TOKEN in text or PASSWORD in text


def waive(file):
    day = timezone.now().date() + timedelta(days=3)
    waive_findings(file, digest=file.latest.digest, reason="A sample.", until=day, by=BY)


def test_no_page_of_a_quarantined_file_shows_its_secrets(source, workspace, as_alice):
    file = file_at(source)
    assert file.status == "quarantined"
    for rest in ("", "peek/", "revisions/2/"):
        page = as_alice.get(url(workspace, file, rest)).content.decode()
        assert "Use ghp_" in page
        assert "•••" in page
        assert not has_secret(page), rest
    assert not has_secret(as_alice.get(f"/w/{workspace.slug}/inbox/").content.decode())


def test_lines_stay_where_they_were_when_a_secret_spans_several(source, workspace, root, as_alice):
    key = "\n".join(["Zr8Kq2Vx7Lm4Nw9Tb3Yc6Hd1Jf5Sg0PaQeRu/Zr8Kq2Vx7Lm4Nw9Tb3Yc6Hd1Jf5S"] * 3)
    begin = f"-----BEGIN PRIVATE {'KEY'}-----"
    write(root / "AGENTS.md", f"One.\n{begin}\n{key}\n-----END PRIVATE {'KEY'}-----\nLast.\n")
    refreshed(source)
    page = as_alice.get(url(workspace, file_at(source), "revisions/3/")).content.decode()
    assert key.partition("\n")[0][10:] not in page
    assert 'id="L7"><span class="dr-diff-no">7</span>' in page
    assert 'id="L8"' not in page


def test_a_waived_file_is_masked_on_pages_and_stays_exact_in_force(source, workspace, as_alice):
    agent = make_agent(workspace, "pilot", layout="dramatis")
    choose_context(agent, source, "plain", working_directory="", expected=agent.revision, by=BY)
    waive(file_at(source))
    file = file_at(source)
    assert has_secret(file.active.content.text)
    for page in (url(workspace, file), f"/w/{workspace.slug}/agents/{agent.slug}/context/"):
        text = as_alice.get(page).content.decode()
        assert "Use ghp_" in text
        assert not has_secret(text), page


def test_the_api_masks_secrets_and_says_so(source, workspace, admin):
    file = file_at(source)
    body = admin.get(f"context-files/{file.pk}/revisions/2").json()
    assert body["is_masked"] is True
    assert "Use ghp_" in body["text"]
    assert not has_secret(body["text"])
    assert admin.get(f"context-files/{file.pk}").json()["is_masked"] is False
    waive(file)
    body = admin.get(f"context-files/{file.pk}").json()
    assert body["is_masked"] is True
    assert not has_secret(body["text"])


def test_only_members_who_may_approve_download_a_file_with_secrets(source, workspace, as_bob, as_reviewer):
    file = file_at(source)
    assert as_bob.get(url(workspace, file, "revisions/2/raw/")).status_code == 403
    assert as_bob.get(url(workspace, file, "revisions/1/raw/")).status_code == 200
    response = as_reviewer.get(url(workspace, file, "revisions/2/raw/"))
    assert has_secret(b"".join(response.streaming_content).decode())
    assert "revisions/2/raw/" not in as_bob.get(url(workspace, file, "revisions/2/")).content.decode()
    assert "revisions/2/raw/" in as_reviewer.get(url(workspace, file, "revisions/2/")).content.decode()


def test_a_page_says_when_only_masked_text_differs(source, workspace, root, as_alice):
    write(root / "AGENTS.md", GOOD + SECRETS.replace(PASSWORD, "another" + "-one"))
    refreshed(source)
    page = as_alice.get(url(workspace, file_at(source), "revisions/3/")).content.decode()
    assert "Only masked text differs." in page


def test_a_skill_with_a_secret_is_masked_listed_and_neither_copied_nor_exported_by_editors(
    workspace, root, as_bob, as_reviewer
):
    # The unknown key makes the skill invalid for the plain rules, and invalid outranks quarantined.
    write(root / TEA, f"---\nname: tea\nflavour: mint\ndescription: Use {TOKEN}.\n---\n\nBoil {TOKEN}.\n")
    source = make_source(workspace, root, harnesses=["plain"])
    refreshed(source)
    file = file_at(source, TEA)
    assert file.status == "invalid"
    for page in (
        url(workspace, file),
        f"/w/{workspace.slug}/skills/",
        f"/w/{workspace.slug}/skills/?format=csv",
    ):
        text = as_bob.get(page).getvalue().decode()
        assert "Use ghp_" in text
        assert not has_secret(text), page
    with pytest.raises(SkillNotCopyable):
        copy_found_skill(file, by=BY)
    assert as_bob.get(url(workspace, file, "export/")).status_code == 403
    assert as_reviewer.get(url(workspace, file, "export/")).status_code == 200
