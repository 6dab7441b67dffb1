"""A backup contains no usable secret: planted ones are searched for in its bytes, in each of its forms."""

import gzip
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from django.contrib.sessions.models import Session
from django.core import mail
from django.db import connection

from personas.accounts import second_factors
from personas.accounts.encryption import decrypt_secret
from personas.actors import Actor
from personas.members.services import build_invitation_token, invite_member
from personas.models import Membership
from project.backup import pg_dump
from project.backup.create import create_backup
from tests.factories import PASSWORD
from tests.personas.accounts.sign_in import browser_at, give_password, give_totp, sign_in
from tests.project.backup.backup_stage import programs
from tests.prompts.serving.serving_stage import make_stage

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]
GZIP = b"\x1f\x8b"
FORMS = ("pg_dump", "copy") if connection.vendor == "postgresql" else ("sqlite",)


def read_backup(folder: Path) -> bytes:
    """Return the bytes of all files, uncompressed; a dump of pg_dump is converted to SQL."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    content = [path.read_bytes() for path in files]
    content = [gzip.decompress(part) if part[:2] == GZIP else part for part in content]
    for path in files:
        if path.name == pg_dump.DUMP_FILE:
            program = Path(programs()) / "pg_restore"
            done = subprocess.run([program, "--file=-", path], capture_output=True, check=True)
            content.append(done.stdout)
    return b"\n".join(content)


@pytest.fixture
def stage(workspace, settings, tmp_path):
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    settings.DRAMATIS_POSTGRES_PROGRAMS = programs()
    return make_stage(workspace)


@pytest.fixture
def plant_secrets(stage, alice, admin, settings) -> Callable[[], dict[str, str]]:
    return lambda: create_secrets(stage, alice, admin, settings)


def create_secrets(stage, alice, admin, settings) -> dict[str, str]:
    """Create one secret of every kind, through the pages and the API, and return them."""
    totp = give_totp(give_password(alice))
    codes = RecoveryCodes.activate(alice)
    sign_in(alice, secret=totp)
    # The second browser is in the middle of the setup of a factor, whose seed is in the session.
    other = sign_in(give_password(Membership.objects.in_workspace(stage.workspace).get(role="editor").user))
    other.get("/accounts/2fa/totp/activate/")
    other.post("/accounts/reauthenticate/?next=/accounts/2fa/totp/activate/", {"password": PASSWORD})
    other.get("/accounts/2fa/totp/activate/")
    browser_at().post("/accounts/password/reset/", {"email": alice.email})
    reset = re.search(r"/accounts/password/reset/key/([^/\s]+)/", str(mail.outbox[-1].body))
    assert reset is not None
    key = admin.post("keys", {"name": "Planted", "kind": "bot"}, Idempotency_Key="planted")
    invitation = invite_member(stage.workspace, "new@example.com", "viewer", by=Actor.person(alice))
    sessions = {f"session {row.pk}": row.session_key for row in Session.objects.all()}
    drafts = {
        f"seed in {row.pk}": row.get_decoded().get("mfa.totp.secret", "") for row in Session.objects.all()
    }
    assert len(sessions) >= 2
    assert any(drafts.values())
    return {
        "SECRET_KEY": settings.SECRET_KEY,
        "signing key": "PRIVATE KEY",
        "password": PASSWORD,
        "API key": stage.secret,
        "API key made with an idempotency key": key.json()["secret"],
        "TOTP seed": totp,
        "recovery seed": decrypt_secret(codes.instance.data["seed"]),
        **{f"recovery code {number}": code for number, code in enumerate(codes.get_unused_codes())},
        "reset link": reset[1].partition("-")[2],
        "invitation link": build_invitation_token(invitation),
        **sessions,
        **{name: value for name, value in drafts.items() if value},
    }


def find_secrets(secrets: dict[str, str], content: bytes) -> list[str]:
    return [name for name, value in secrets.items() if value.encode() in content]


@pytest.mark.parametrize("form", FORMS)
def test_no_usable_secret_is_in_a_backup(form, stage, plant_secrets, settings, tmp_path):
    secrets = plant_secrets()
    if form == "copy":
        settings.DRAMATIS_POSTGRES_PROGRAMS = str(tmp_path)
    assert create_backup(tmp_path / "backup").database["form"] == form
    content = read_backup(tmp_path / "backup")
    assert stage.key.prefix.encode() in content, "it can be read"
    assert Authenticator.objects.get(type="totp").data["secret"].encode() in content, "factors are in it"
    assert not find_secrets(secrets, content)


@pytest.mark.planted
def test_a_seed_in_clear_is_found(plant_secrets, tmp_path, monkeypatch):
    monkeypatch.setattr(second_factors, "encrypt_secret", lambda text: text)
    secrets = plant_secrets()
    create_backup(tmp_path / "backup")
    found = find_secrets(secrets, read_backup(tmp_path / "backup"))
    assert {"TOTP seed", "recovery seed"} <= set(found)
