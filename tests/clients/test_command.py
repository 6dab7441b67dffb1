"""The dramatis command: its output and exit codes."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from dramatis_client import __version__
from dramatis_client.command import build_parser, main
from dramatis_client.command.completion import list_commands
from dramatis_client.command.parser import EXIT_CODES
from tests.clients.drivers import KEY
from tests.clients.stub_server import StubResponse, StubServer, hash_text, problem_response, prompt_response

JSON, MARKDOWN = {"Content-Type": "application/json"}, {"Content-Type": "text/markdown; charset=utf-8"}
NOTHING_WRONG = {"run": {}, "stored": 1, "refused": [], "quarantined": [], "invalid": [], "unused": []}


@pytest.fixture(autouse=True)
def settings(
    stub_server: StubServer, monkeypatch: pytest.MonkeyPatch, short_delays: None, tmp_path: Path
) -> None:
    monkeypatch.setenv("DRAMATIS_URL", stub_server.url)
    monkeypatch.setenv("DRAMATIS_KEY", KEY)
    monkeypatch.setenv("DRAMATIS_CACHE_DIR", str(tmp_path / "copies"))


def json_response(value: object, status: int = 200) -> StubResponse:
    return StubResponse(status, json.dumps(value).encode(), JSON)


def test_fetch_prints_the_exact_text(stub_server, capfdbinary):
    text = "Be brave.\r\n  Ünd frei – 🦊\n\n"
    stub_server.respond_with(prompt_response(text, warnings=["The layout does not use plan."]))
    assert main(["fetch", "pilot", "deck", "--label", "latest"]) == 0
    out, err = capfdbinary.readouterr()
    assert out == text.encode()
    assert err == b"dramatis: note: The layout does not use plan.\n"
    assert stub_server.requests[0].path.endswith("/channels/deck/prompt?label=latest")


def test_fetch_prints_the_last_copy_while_the_server_is_unavailable(stub_server, capfd, monkeypatch):
    stub_server.respond_with(prompt_response("Be brave."))
    assert main(["fetch", "pilot", "deck"]) == 0
    assert main(["fetch", "pilot", "deck", "--version", "1"]) == 0
    assert stub_server.requests[-1].path.endswith("?label=production&version=1")
    # The text of the copy may show an old time, so the server is asked for all of it.
    assert main(["fetch", "pilot", "deck"]) == 0
    assert "if-none-match" not in stub_server.requests[-1].headers
    stub_server.stop()
    capfd.readouterr()
    assert main(["fetch", "pilot", "deck"]) == 0
    output = capfd.readouterr()
    assert output.out == "Be brave."
    assert "The server is unavailable. This is the cached copy of 20" in output.err
    assert main(["fetch", "pilot", "deck", "--no-copy"]) == 3
    assert main(["fetch", "pilot", "mast"]) == 3
    stub_server.start()
    stub_server.respond_with(problem_response(404, "not_found"))
    assert main(["fetch", "pilot", "deck"]) == 1
    stub_server.stop()
    assert main(["fetch", "pilot", "deck"]) == 3


def test_fetch_keeps_no_copy_if_there_is_no_folder(stub_server, capfd, monkeypatch):
    stub_server.respond_with(prompt_response("Be brave."))
    monkeypatch.delenv("DRAMATIS_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/nowhere")
    assert main(["fetch", "pilot", "deck"]) == 0
    assert capfd.readouterr().out == "Be brave."


def test_fetch_prints_all_fields_as_json(stub_server, capfd):
    stub_server.respond_with(prompt_response("Be brave."))
    assert main(["fetch", "pilot", "deck", "--json"]) == 0
    document = json.loads(capfd.readouterr().out)
    assert (document["text"], document["ledger_id"], document["segments"][0]["section"]) == (
        "Be brave.",
        41,
        "soul",
    )


def test_render_takes_facts_as_json_or_text(stub_server, capfd):
    stub_server.respond_with(prompt_response("Be brave."))
    facts = ["--fact", "task=3", "--fact", "append=Be quick.", "--fact", 'host={"os":"linux"}']
    assert main(["render", "pilot", "deck", *facts]) == 0
    body = json.loads(stub_server.requests[0].body)
    assert (body["task"], body["append"], body["host"]) == (3, "Be quick.", {"os": "linux"})
    assert main(["render", "pilot", "deck", "--fact", "task"]) == 2


def skill_entry(name: str, *, kind: str = "skill") -> dict[str, object]:
    return {"name": name, "origin": {"kind": kind}}


def skill_responses(*, channels: Sequence[str] = ("deck",), **texts: str) -> list[StubResponse]:
    """The channels of the key, the skills of version 3, and the files of those that are records."""
    prompts = [{"agent": "pilot", "channel": channel} for channel in channels]
    listed = [*map(skill_entry, texts), skill_entry("found", kind="context_file")]
    files = [StubResponse(200, text.encode(), MARKDOWN) for text in texts.values()]
    return [json_response({"prompts": prompts}), json_response({"version": 3, "items": listed}), *files]


def test_pull_writes_one_folder_per_skill_and_removes_those_that_are_gone(stub_server, capfd, tmp_path):
    folder = tmp_path / "skills"
    stub_server.respond_with(*skill_responses(tea="Boil water.\n", pot="Warm it.\n"))
    assert main(["pull", "pilot", str(folder)]) == 0
    assert capfd.readouterr().err == "dramatis: 2 written, 0 unchanged, 0 removed.\n"
    assert (folder / "tea/SKILL.md").read_bytes() == b"Boil water.\n"
    assert [request.path for request in stub_server.requests] == [
        "/api/v1/me",
        "/api/v1/agents/pilot/channels/deck/skills",
        "/api/v1/agents/pilot/channels/deck/skills/tea/SKILL.md?version=3",
        "/api/v1/agents/pilot/channels/deck/skills/pot/SKILL.md?version=3",
    ]
    (folder / "pot/notes.md").write_text("Mine.")
    stub_server.respond_with(*skill_responses(tea="Boil water.\n"))
    assert main(["pull", "pilot", str(folder)]) == 0
    assert capfd.readouterr().err == "dramatis: 0 written, 1 unchanged, 1 removed.\n"
    assert sorted(path.name for path in (folder / "pot").iterdir()) == ["notes.md"]


def test_pull_names_the_channels_to_choose_from(stub_server, capfd, tmp_path):
    stub_server.respond_with(skill_responses(channels=["deck", "web"])[0])
    assert main(["pull", "pilot", str(tmp_path)]) == 2
    assert "channel is required. This agent has: deck, web." in capfd.readouterr().err
    stub_server.respond_with(*skill_responses(tea="Boil water.\n")[1:])
    options = ["--channel", "web", "--label", "staging"]
    assert main(["pull", "pilot", str(tmp_path), *options]) == 0
    assert stub_server.requests[-2].path == "/api/v1/agents/pilot/channels/web/skills?label=staging"


def test_pull_leaves_other_folders_and_bad_names_alone(stub_server, capfd, tmp_path):
    (tmp_path / "tea").mkdir()
    (tmp_path / "tea/SKILL.md").write_text("Mine.")
    (tmp_path / "linked").symlink_to(tmp_path / "tea")
    stub_server.respond_with(*skill_responses(**{"tea": "x", "../up": "x", "linked": "x"}))
    assert main(["pull", "pilot", str(tmp_path)]) == 1
    err = capfd.readouterr().err
    assert "skipped: tea: The folder already exists and was not written by a pull." in err
    assert "skipped: ../up: The name is not a valid folder name." in err
    assert "skipped: linked: This is a link" in err
    assert (tmp_path / "tea/SKILL.md").read_text() == "Mine."
    stub_server.respond_with(*skill_responses(tea="x"))
    assert main(["pull", "pilot", str(tmp_path / "tea/SKILL.md")]) == 2


def test_push_sends_the_files_of_the_dry_run(stub_server, capfd, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    (tmp_path / "README.md").write_text("Not for agents.")
    assert main(["push", "house", str(tmp_path), "--dry-run"]) == 0
    output = capfd.readouterr()
    assert output.out.split() == ["9", "AGENTS.md"]
    assert "1 files would be pushed. Other files of the source would be removed." in output.err
    assert not stub_server.requests
    stub_server.respond_with(json_response(NOTHING_WRONG, 202))
    assert main(["push", "house", str(tmp_path)]) == 0
    [request] = stub_server.requests
    assert request.path == "/api/v1/sources/house/files:push"
    body = json.loads(request.body)
    assert body == {"files": [{"path": "AGENTS.md", "text": "Be kind.\n"}], "is_complete": True}


@pytest.mark.parametrize("is_partial", [True, False])
def test_an_incomplete_push_removes_nothing(is_partial, stub_server, capfd, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    if not is_partial:
        (tmp_path / "SOUL.md").symlink_to("AGENTS.md")
    stub_server.respond_with(json_response(NOTHING_WRONG, 202))
    exit_code = main(["push", "house", str(tmp_path), *(["--partial"] if is_partial else [])])
    assert exit_code == (0 if is_partial else 1)
    assert not json.loads(stub_server.requests[0].body)["is_complete"]


def test_files_that_will_not_be_used_are_listed(stub_server, capfd, tmp_path):
    (tmp_path / "AGENTS.md").write_text("Be kind.\n")
    quarantined = {"path": "AGENTS.md", "findings": [{"message": "It holds a secret."}]}
    stub_server.respond_with(json_response(NOTHING_WRONG | {"quarantined": [quarantined]}, 202))
    assert main(["push", "house", str(tmp_path)]) == 1
    assert "quarantined: AGENTS.md: It holds a secret." in capfd.readouterr().err


def test_an_empty_folder_is_not_pushed(stub_server, capfd, tmp_path):
    assert main(["push", "house", str(tmp_path)]) == 2
    assert "No context files" in capfd.readouterr().err


def test_replay_prints_the_recorded_text_or_nothing(stub_server, capfd):
    document = {
        "text": "Be brave.",
        "digest": hash_text("Be brave."),
        "recorded_digest": hash_text("Be brave."),
    }
    stub_server.respond_with(json_response(document))
    assert main(["replay", "41"]) == 0
    assert capfd.readouterr().out == "Be brave."
    stub_server.respond_with(json_response(document | {"text": "Be bold."}))
    assert main(["replay", "41"]) == 3
    assert capfd.readouterr().out == ""


def test_diff_prints_changed_lines(stub_server, capfd):
    lines = [
        {"kind": "same", "before": 1, "after": 1, "text": "You are kind."},
        {"kind": "removed", "before": 2, "after": None, "text": "Be brave."},
        {"kind": "added", "before": None, "after": 2, "text": "Be bold.\x1b[2J"},
    ]
    section = {"name": "soul", "status": "changed", "is_moved": False, "lines": lines, "withheld": ""}
    same = {"name": "tools", "status": "same", "is_moved": False, "lines": [], "withheld": ""}
    stub_server.respond_with(json_response({"sections": [section, same]}))
    assert main(["diff", "a" * 64, "b" * 64]) == 0
    assert capfd.readouterr().out == "@@ soul (changed)\n- Be brave.\n+ Be bold.\\u001b[2J\n"
    assert stub_server.requests[0].path == f"/api/v1/prompt-versions/{'b' * 64}/diff?against={'a' * 64}"


def test_a_refusal_is_printed_to_stderr_only(stub_server, capfd):
    stub_server.respond_with(problem_response(404, "not_found"))
    assert main(["fetch", "pilot", "deck"]) == 1
    output = capfd.readouterr()
    assert output.out == ""
    assert output.err.splitlines() == [
        "dramatis: 404 not_found: It is refused.",
        "dramatis:   /text: This field is required.",
        "dramatis: request id: req-7",
    ]


def test_an_unavailable_server_exits_with_3(stub_server, capfd):
    stub_server.stop()
    assert main(["fetch", "pilot", "deck"]) == 3
    assert "No response from the server" in capfd.readouterr().err


@pytest.mark.parametrize("missing", ["DRAMATIS_URL", "DRAMATIS_KEY"])
def test_missing_settings_are_reported(missing, capfd, monkeypatch):
    monkeypatch.delenv(missing)
    assert main(["fetch", "pilot", "deck"]) == 2
    assert "DRAMATIS_URL and DRAMATIS_KEY are required." in capfd.readouterr().err


def test_wrong_arguments_exit_with_2_and_the_key_is_never_shown(stub_server, capfd):
    for arguments in (["fetch"], ["nothing"], ["replay", "x"], ["--url", "ftp://x", "fetch", "a", "b"]):
        with pytest.raises(SystemExit) as result:
            sys.exit(main(arguments))
        assert result.value.code == 2
    with pytest.raises(SystemExit):
        main(["--help"])
    output = capfd.readouterr()
    assert KEY not in output.out + output.err


@pytest.mark.slow
def test_it_runs_as_a_program(stub_server):
    stub_server.respond_with(prompt_response("Be brave."))
    source = Path(__file__).parents[2] / "clients" / "python" / "src"
    command = [sys.executable, "-m", "dramatis_client.command", "fetch", "pilot", "deck"]
    result = subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(source)}, capture_output=True, check=False, timeout=120
    )
    assert (result.returncode, result.stdout) == (0, b"Be brave.")


# --- doctor and completion -----------------------------------------------------------------------------


def test_doctor_checks_settings_server_key_and_prompt(stub_server, capfd):
    stub_server.respond_with(problem_response(403, "out_of_scope"), prompt_response("Be brave."))
    assert main(["doctor", "pilot", "deck"]) == 0
    lines = capfd.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ok"] * 5
    assert lines[-1] == "ok    prompt: version 1, 9 characters, ledger row 41"
    assert KEY not in "".join(lines)


@pytest.mark.parametrize(
    ("response", "exit_code", "found"),
    [
        (problem_response(401, "invalid_key"), 1, "fail  key: 401 invalid_key. Check DRAMATIS_KEY"),
        (
            StubResponse(404, b"<h1>default backend</h1>"),
            3,
            "fail  server: The response (404) did not come from Dramatis",
        ),
        (problem_response(503, "unavailable"), 3, "fail  server: 503 unavailable"),
        (None, 3, "fail  server: No response from the server"),
    ],
)
def test_doctor_names_what_is_wrong(response, exit_code, found, stub_server, capfd):
    stub_server.respond_with(response)
    assert main(["doctor", "pilot", "deck"]) == exit_code
    output = capfd.readouterr().out
    assert found in output
    assert "prompt:" not in output


def test_doctor_warns_of_an_open_address_and_a_folder_that_cannot_be_written(
    stub_server, capfd, monkeypatch, tmp_path
):
    stub_server.respond_with(json_response({"items": []}))
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRAMATIS_CACHE_DIR", str(tmp_path / "file"))
    assert main(["doctor"]) == 1
    assert "fail  copies:" in capfd.readouterr().out
    monkeypatch.setenv("DRAMATIS_CACHE_DIR", str(tmp_path / "copies"))
    monkeypatch.setenv("http_proxy", stub_server.url)
    assert main(["--url", "http://dramatis.example.com", "doctor"]) == 0
    assert "warn  address: http://dramatis.example.com is not encrypted" in capfd.readouterr().out


def complete_in_bash(script: Path, *words: str) -> list[str]:
    """Return what bash offers for the last word."""
    listed = " ".join([f"'{word}'" for word in words])
    program = (
        f"source {script}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _dramatis; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True, timeout=120)
    return done.stdout.split()


def test_bash_completes_commands_options_and_shells(capfd, tmp_path):
    assert main(["completion", "bash"]) == 0
    script = tmp_path / "dramatis.bash"
    script.write_text(capfd.readouterr().out)
    assert complete_in_bash(script, "dramatis", "pu") == ["push", "pull"]
    assert complete_in_bash(script, "dramatis", "--u") == ["--url"]
    assert complete_in_bash(script, "dramatis", "--url", "x", "fetch", "pilot", "--no") == ["--no-copy"]
    assert complete_in_bash(script, "dramatis", "completion", "") == ["bash", "zsh", "fish", "--help"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_command_and_option_is_in_each_script(shell, capfd, tmp_path):
    assert main(["completion", shell]) == 0
    script = capfd.readouterr().out
    commands = list_commands(build_parser())
    assert {command.name for command in commands} >= {"pull", "push", "diff", "replay", "fetch", "doctor"}
    for command in commands:
        assert command.help
        assert command.name in script
        for option in command.options:
            assert option.flag.removeprefix("--") in script
    if program := shutil.which(shell):
        (tmp_path / "script").write_text(script)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True, timeout=120)


def test_help_and_readme_have_the_exit_codes(capfd):
    with pytest.raises(SystemExit):
        main(["--help"])
    shown = capfd.readouterr().out
    readme = (Path(__file__).parents[2] / "clients" / "python" / "README.md").read_text()
    codes = re.findall(r"^  (\d)  (.+)$", EXIT_CODES, re.MULTILINE)
    assert [code for code, _ in codes] == ["0", "1", "2", "3"]
    for code, meaning in codes:
        assert f"  {code}  {meaning}" in shown
        assert f"| {code} | {meaning} |" in readme


def test_the_version_is_printed(capfd):
    with pytest.raises(SystemExit):
        main(["--version"])
    assert capfd.readouterr().out == f"dramatis-client {__version__}\n"
