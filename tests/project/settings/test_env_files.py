"""Variables whose value is in a file (NAME_FILE), such as secrets of containers."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from project import env
from project.database.config import build_database_config
from tests.project.deployment.production_settings import COMPLETE, run_settings, settings_under


@pytest.fixture(autouse=True)
def fresh_notes(monkeypatch):
    monkeypatch.setattr(env, "environment_problems", [])
    monkeypatch.setattr(env, "requested_names", set())


def test_a_file_replaces_its_variable(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text(" quiet words\n")
    monkeypatch.setenv("A_SECRET", "")
    monkeypatch.setenv("A_SECRET_FILE", str(tmp_path / "secret"))
    assert env.env_secret("A_SECRET", needed=True) == "quiet words"
    env.check_environment()


def test_a_variable_and_its_file_together_are_refused_without_either_value(monkeypatch, tmp_path):
    (tmp_path / "secret").write_text("from the file")
    monkeypatch.setenv("A_SECRET", "from the variable")
    monkeypatch.setenv("A_SECRET_FILE", str(tmp_path / "secret"))
    env.env_secret("A_SECRET", needed=True)
    with pytest.raises(ImproperlyConfigured, match="A_SECRET and A_SECRET_FILE are both set") as refusal:
        env.check_environment()
    assert "from the" not in str(refusal.value)


def test_with_an_empty_file_the_variable_counts(monkeypatch, tmp_path):
    (tmp_path / "secret").touch()
    monkeypatch.setenv("A_SECRET", "from the variable")
    monkeypatch.setenv("A_SECRET_FILE", str(tmp_path / "secret"))
    assert env.env_secret("A_SECRET", needed=True) == "from the variable"
    env.check_environment()


@pytest.mark.parametrize("content", [None, b"\xff\xfe\x00words"])
def test_a_file_that_cannot_be_read_is_named_and_not_quoted(monkeypatch, tmp_path, content):
    if content:
        (tmp_path / "secret").write_bytes(content)
    monkeypatch.setenv("A_SECRET_FILE", str(tmp_path / "secret"))
    assert env.env_secret("A_SECRET", needed=False) == ""
    with pytest.raises(ImproperlyConfigured, match="A_SECRET_FILE cannot be read") as refusal:
        env.check_environment()
    assert "words" not in str(refusal.value)


def test_production_may_keep_every_secret_in_a_file(tmp_path):
    files = {}
    for name, value in COMPLETE.items():
        (tmp_path / name).write_text(value + "\n")
        files[f"{name}_FILE"] = str(tmp_path / name)
    assert settings_under(files, "SECRET_KEY", "REDIS_URL", "ALLOWED_HOSTS") == {
        "SECRET_KEY": COMPLETE["SECRET_KEY"],
        "REDIS_URL": COMPLETE["REDIS_URL"],
        "ALLOWED_HOSTS": ["dramatis.example"],
    }


def test_production_rejects_a_secret_that_is_set_twice(tmp_path):
    (tmp_path / "key").write_text("k" * 60)
    done = run_settings({**COMPLETE, "SECRET_KEY_FILE": str(tmp_path / "key")})
    assert done.returncode != 0
    assert "SECRET_KEY and SECRET_KEY_FILE are both set" in done.stderr


def test_the_database_password_can_be_separate_and_contain_any_character():
    apart = build_database_config("postgresql://u@db/d", pool_size=1, statement_ms=0, password="p@ss/w:rd")
    assert (apart["USER"], apart["HOST"], apart["PASSWORD"]) == ("u", "db", "p@ss/w:rd")
    inside = build_database_config(
        "postgresql://u:inside@db/d", pool_size=1, statement_ms=0, password="apart"
    )
    assert inside["PASSWORD"] == "inside"
