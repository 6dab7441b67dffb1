"""Reading the environment: typed values, and all mistakes in one message."""

import re

import pytest
from django.core.exceptions import ImproperlyConfigured

from project import env
from tests.project.deployment.production_settings import COMPLETE, ROOT, run_settings

# Read by docker-compose.yml, never by the settings.
COMPOSE_ONLY = {
    *("SECRETS_FOLDER", "SOURCES_FOLDER", "DRAMATIS_IMAGE", "WEB_ADDRESS", "DATABASE_OWNER_URL"),
}


@pytest.fixture(autouse=True)
def fresh_notes(monkeypatch):
    monkeypatch.setattr(env, "environment_problems", [])
    monkeypatch.setattr(env, "requested_names", set())


@pytest.mark.parametrize(
    ("text", "value"), [("1", True), ("TRUE", True), ("off", False), ("no", False), ("", True)]
)
def test_a_switch_takes_the_usual_words(monkeypatch, text, value):
    monkeypatch.setenv("SOME_SWITCH", text)
    assert env.env_bool("SOME_SWITCH", True) is value
    env.check_environment()


def test_a_list_loses_its_blanks(monkeypatch):
    monkeypatch.setenv("SOME_LIST", " a, b ,,c ")
    assert env.env_list("SOME_LIST") == ["a", "b", "c"]


def test_every_mistake_is_named_in_one_message(monkeypatch):
    for name, value in {"A_SWITCH": "maybe", "A_NUMBER": "-3", "A_CHOICE": "purple", "A_SECRET": " "}.items():
        monkeypatch.setenv(name, value)
    env.env_bool("A_SWITCH", False)
    env.env_int("A_NUMBER", 1)
    env.env_choice("A_CHOICE", ("red", "blue"))
    env.env_secret("A_SECRET", needed=True)
    with pytest.raises(ImproperlyConfigured) as refusal:
        env.check_environment()
    for name in ("A_SWITCH", "A_NUMBER", "A_CHOICE", "A_SECRET"):
        assert name in str(refusal.value)


@pytest.mark.slow
def test_production_names_all_it_misses_at_once():
    done = run_settings({"DRAMATIS_ENV": "production"})
    assert done.returncode != 0
    for name in COMPLETE.keys() - {"DRAMATIS_ENV"}:
        assert f"{name} is not set" in done.stderr


@pytest.mark.parametrize("name", sorted(COMPLETE.keys() - {"DRAMATIS_ENV"}))
def test_production_refuses_to_start_without(name):
    done = run_settings({key: value for key, value in COMPLETE.items() if key != name})
    assert done.returncode != 0
    assert f"{name} is not set" in done.stderr


def test_production_starts_when_complete():
    assert run_settings(COMPLETE).returncode == 0


def test_a_misspelt_mode_does_not_open_development():
    done = run_settings({"DRAMATIS_ENV": "prodution"})
    assert done.returncode != 0
    assert "DRAMATIS_ENV must be one of" in done.stderr


def test_a_public_address_needs_its_scheme():
    done = run_settings({**COMPLETE, "PUBLIC_URL": "dramatis.example"})
    assert done.returncode != 0
    assert "PUBLIC_URL must start with" in done.stderr


def test_development_needs_no_variable():
    assert run_settings({}).returncode == 0


def test_the_example_lists_exactly_what_is_read():
    result = run_settings({}, "ENVIRONMENT_NAMES")
    names = set(re.findall(r'"(\w+)"', result.stdout)) - {"ENVIRONMENT_NAMES"}
    listed = re.findall(r"^([A-Z_]+)=", (ROOT / ".env.example").read_text(), re.MULTILINE)
    assert set(listed) - COMPOSE_ONLY == names
    assert len(listed) == len(set(listed))
