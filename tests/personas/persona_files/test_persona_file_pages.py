"""Pages that import and export IDENTITY.md, SOUL.md and USER.md."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from personas.models import Identity, Soul, UserProfile
from prompts.studio.demo.files import DEMO_FILES_DIR

CASES = {
    "identities": (Identity, "IDENTITY.md"),
    "souls": (Soul, "SOUL.md"),
    "user-profiles": (UserProfile, "USER.md"),
}


@pytest.mark.parametrize("name", CASES)
def test_an_imported_file_is_exported_unchanged(workspace, as_bob, name):
    model, file_name = CASES[name]
    text = (DEMO_FILES_DIR / ".moltis" / file_name).read_text(encoding="utf-8")
    upload = SimpleUploadedFile(file_name, text.encode())
    base = f"/w/{workspace.slug}/{name}/"
    assert as_bob.post(f"{base}import/", {"name": "Taken", "file": upload}).status_code == 302
    record = model.objects.in_workspace(workspace).get()
    exported = as_bob.get(f"{base}{record.slug}/file/")
    assert exported["Content-Disposition"] == f'attachment; filename="{file_name}"'
    again = SimpleUploadedFile(file_name, exported.content)
    as_bob.post(f"{base}import/", {"name": "Again", "file": again})
    second = model.objects.in_workspace(workspace).latest("pk")
    assert second.snapshot() == record.snapshot() | {"name": "Again"}


def test_unknown_keys_are_preserved_exactly(workspace, as_bob):
    text = "---\nname: Ada\n# the team\nteam: 'blue'   # beside\nnumber: 1.10\n---\n\nHello.\n"
    as_bob.post(f"/w/{workspace.slug}/identities/import/", {"name": "Ada", "text": text})
    exported = as_bob.get(f"/w/{workspace.slug}/identities/ada/file/").content.decode()
    assert "# the team\nteam: 'blue'   # beside\nnumber: 1.10\n" in exported


BAD = {
    "a list for a name": b"---\nname: [1]\n---\n",
    "said twice": b"---\nname: A\nname: B\n---\n",
    "not text": b"\xff\xfe\x00",
    "never closed": b"---\nname: A\n",
    "nothing at all": b"",
    "unknown timezone": b"---\ntimezone: Mars/Base\n---\n",
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_file_is_refused_with_a_reason(workspace, as_bob, case):
    upload = SimpleUploadedFile("USER.md", BAD[case])
    answer = as_bob.post(f"/w/{workspace.slug}/user-profiles/import/", {"name": "P", "file": upload})
    assert answer.status_code == 422
    assert answer.context["form"].errors
    assert not UserProfile.objects.in_workspace(workspace).exists()
