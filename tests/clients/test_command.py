"""The dramatis command: what it prints where, and how it ends."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dramatis_client.command import main
from tests.clients.drivers import KEY
from tests.clients.standing import Said, StandIn, digest_of, problem_said, prompt_said

JSON = {"Content-Type": "application/json"}
NOTHING_WRONG = {"run": {}, "taken": 1, "refused": [], "quarantined": [], "invalid": [], "unused": []}


@pytest.fixture(autouse=True)
def settings(stand_in: StandIn, monkeypatch: pytest.MonkeyPatch, without_waiting: None) -> None:
    monkeypatch.setenv("DRAMATIS_URL", stand_in.url)
    monkeypatch.setenv("DRAMATIS_KEY", KEY)


def answer(value: object, status: int = 200) -> Said:
    return Said(status, json.dumps(value).encode(), JSON)


def test_fetch_prints_the_words_to_the_byte(stand_in, capfdbinary):
    text = "Be brave.\r\n  Ünd frei – 🦊\n\n"
    stand_in.says(prompt_said(text, warnings=["The layout has no place for plan."]))
    assert main(["fetch", "pilot", "deck", "--label", "latest"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == text.encode()
    assert err == b"dramatis: note: The layout has no place for plan.\n"
    assert stand_in.heard[0].path.endswith("?channel=deck&label=latest")


def test_fetch_prints_all_that_is_known_as_json(stand_in, capfd):
    stand_in.says(prompt_said("Be brave."))
    assert main(["fetch", "pilot", "deck", "--json"]) == 0
    said = json.loads(capfd.readouterr().out)
    assert (said["text"], said["ledger_id"], said["segments"][0]["section"]) == ("Be brave.", 41, "soul")


def test_render_takes_facts_as_json_or_text(stand_in, capfd):
    stand_in.says(prompt_said("Be brave."))
    facts = ["--fact", "task=3", "--fact", "append=Be quick.", "--fact", 'host={"os":"linux"}']
    assert main(["render", "pilot", "deck", *facts]) == 0
    said = json.loads(stand_in.heard[0].body)
    assert (said["task"], said["append"], said["host"]) == (3, "Be quick.", {"os": "linux"})
    assert main(["render", "pilot", "deck", "--fact", "task"]) == 2


def test_push_sends_what_it_showed(stand_in, capfd, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    (tmp_path / "README.md").write_text("Not for agents.")
    assert main(["push", "house", str(tmp_path), "--dry-run"]) == 0
    shown = capfd.readouterr()
    assert shown.out.split() == ["9", "AGENTS.md"]
    assert "1 files would be pushed. Files that the source has besides are let go." in shown.err
    assert not stand_in.heard
    stand_in.says(answer(NOTHING_WRONG, 202))
    assert main(["push", "house", str(tmp_path)]) == 0
    [heard] = stand_in.heard
    assert heard.path == "/api/v1/sources/house/files:push"
    said = json.loads(heard.body)
    assert said == {"files": [{"path": "AGENTS.md", "text": "Be kind.\n"}], "is_complete": True}


@pytest.mark.parametrize("is_partial", [True, False])
def test_a_push_that_lacks_something_lets_nothing_go(is_partial, stand_in, capfd, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    if not is_partial:
        (tmp_path / "SOUL.md").symlink_to("AGENTS.md")
    stand_in.says(answer(NOTHING_WRONG, 202))
    ending = main(["push", "house", str(tmp_path), *(["--partial"] if is_partial else [])])
    assert ending == (0 if is_partial else 1)
    assert not json.loads(stand_in.heard[0].body)["is_complete"]


def test_files_that_no_prompt_will_hold_are_named(stand_in, capfd, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    found = {"path": "AGENTS.md", "findings": [{"message": "It holds a secret."}]}
    stand_in.says(answer(NOTHING_WRONG | {"quarantined": [found]}, 202))
    assert main(["push", "house", str(tmp_path)]) == 1
    assert "quarantined: AGENTS.md: It holds a secret." in capfd.readouterr().err


def test_an_empty_folder_is_not_pushed(stand_in, capfd, tmp_path):
    assert main(["push", "house", str(tmp_path)]) == 2
    assert "no context files" in capfd.readouterr().err


def test_replay_prints_what_was_recorded_or_nothing(stand_in, capfd):
    said = {"text": "Be brave.", "digest": digest_of("Be brave."), "recorded_digest": digest_of("Be brave.")}
    stand_in.says(answer(said))
    assert main(["replay", "41"]) == 0
    assert capfd.readouterr().out == "Be brave."
    stand_in.says(answer(said | {"text": "Be bold."}))
    assert main(["replay", "41"]) == 3
    assert capfd.readouterr().out == ""


def test_diff_prints_changed_lines(stand_in, capfd):
    lines = [
        {"kind": "same", "before": 1, "after": 1, "text": "You are kind."},
        {"kind": "removed", "before": 2, "after": None, "text": "Be brave."},
        {"kind": "added", "before": None, "after": 2, "text": "Be bold.\x1b[2J"},
    ]
    section = {"name": "soul", "state": "changed", "is_moved": False, "lines": lines, "withheld": ""}
    same = {"name": "tools", "state": "same", "is_moved": False, "lines": [], "withheld": ""}
    stand_in.says(answer({"sections": [section, same]}))
    assert main(["diff", "a" * 64, "b" * 64]) == 0
    assert capfd.readouterr().out == "@@ soul (changed)\n- Be brave.\n+ Be bold.\\u001b[2J\n"
    assert stand_in.heard[0].path == f"/api/v1/prompt-versions/{'b' * 64}/diff?against={'a' * 64}"


def test_a_refusal_is_told_in_full_and_nothing_is_printed(stand_in, capfd):
    stand_in.says(problem_said(404, "not_found"))
    assert main(["fetch", "pilot", "deck"]) == 1
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.splitlines() == [
        "dramatis: 404 not_found: It is refused.",
        "dramatis:   /text: This is needed.",
        "dramatis: request id: req-7",
    ]


def test_a_server_that_is_away_ends_with_three(stand_in, capfd):
    stand_in.stop()
    assert main(["fetch", "pilot", "deck"]) == 3
    assert "no answer from the server" in capfd.readouterr().err


@pytest.mark.parametrize("missing", ["DRAMATIS_URL", "DRAMATIS_KEY"])
def test_what_is_not_set_is_asked_for(missing, capfd, monkeypatch):
    monkeypatch.delenv(missing)
    assert main(["fetch", "pilot", "deck"]) == 2
    assert "Set DRAMATIS_URL and DRAMATIS_KEY first." in capfd.readouterr().err


def test_a_wrong_call_ends_with_two_and_the_key_is_never_shown(stand_in, capfd):
    for arguments in (["fetch"], ["nothing"], ["replay", "x"], ["--url", "ftp://x", "fetch", "a", "b"]):
        with pytest.raises(SystemExit) as ended:
            sys.exit(main(arguments))
        assert ended.value.code == 2
    with pytest.raises(SystemExit):
        main(["--help"])
    told = capfd.readouterr()
    assert KEY not in told.out + told.err


def test_it_runs_as_a_program(stand_in):
    stand_in.says(prompt_said("Be brave."))
    source = Path(__file__).parents[2] / "clients" / "python" / "src"
    command = [sys.executable, "-m", "dramatis_client.command", "fetch", "pilot", "deck"]
    ended = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, check=False, timeout=30
    )
    assert (ended.returncode, ended.stdout) == (0, b"Be brave.")
