"""The command render_prompt: the exact text on standard output, errors on standard error."""

import io
import json
import subprocess
import sys

import pytest
from django.core.management import CommandError, call_command

from personas.models import LAYOUTS as KNOWN
from prompts.assembly.layouts import LAYOUTS
from tests.prompts.assembly.goldens import ROOT, examples

ALL = list(examples())


def arguments(example):
    slots = ["--slots", str(example.slots)] if example.slots.exists() else []
    return ["--layout", example.layout, "--inputs", str(example.inputs), *slots]


@pytest.mark.parametrize("example", ALL, ids=str)
def test_the_command_prints_the_golden_text_byte_for_byte(example, capsysbinary):
    call_command("render_prompt", *arguments(example))
    assert capsysbinary.readouterr().out == example.golden.read_bytes()


@pytest.mark.hard
def test_a_shell_gets_the_same_bytes_and_no_added_newline():
    example = next(example for example in ALL if str(example) == "dramatis/full")
    command = [sys.executable, "manage.py", "render_prompt", *arguments(example)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=300)
    assert answer.stdout == example.golden.read_bytes()


def test_inputs_may_come_from_standard_input(capsysbinary, monkeypatch):
    stdin = io.TextIOWrapper(io.BytesIO(b'{"identity": {"text": "You are Nova."}}'))
    monkeypatch.setattr(sys, "stdin", stdin)
    call_command("render_prompt", "--layout", "nova", "--inputs", "-")
    assert capsysbinary.readouterr().out == b"<Identity>\nYou are Nova.\n</Identity>"


def test_the_report_lists_parts_and_sizes(capsysbinary):
    example = next(example for example in ALL if str(example) == "nova/full")
    call_command("render_prompt", *arguments(example), "--report")
    report = json.loads(capsysbinary.readouterr().out)
    assert report["characters"] == len(example.golden.read_text(encoding="utf-8"))
    assert 0 < report["tokens"] < report["characters"]
    assert sum(row["characters"] for row in report["sizes"]) == report["characters"]
    assert [part["name"] for part in report["report"]["parts"]][:2] == ["identity", "instructions"]


BAD = {
    "an unknown layout": (["--layout", "opel", "--inputs", "x.json"], "opel: unknown layout"),
    "a file that is not there": (
        ["--layout", "nova", "--inputs", "nowhere.json"],
        "nowhere.json: No such file",
    ),
    "both from standard input": (
        ["--layout", "nova", "--inputs", "-", "--slots", "-"],
        "can be read only once",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_invalid_input_is_reported_with_exit_code_2(case):
    arguments, reason = BAD[case]
    with pytest.raises(CommandError, match=reason) as caught:
        call_command("render_prompt", *arguments)
    assert caught.value.returncode == 2


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"{", "invalid JSON"),
        (b"\xff", "invalid JSON"),
        (b"[" * 100_000, "nested too deeply|not JSON"),
        (b'{"memories": [{"txet": ""}]}', r"memories\[0\]\.txet: is not a known key"),
        (b'{"tools": [{"name": ""}]}', r"tools\[0\]\.name: must not be empty"),
        (b'{"limits": {"total": 0}}', "limits.total: must be at least 1"),
        (b'{"memories": [{"text": "\\ud800"}]}', "half of a pair"),
    ],
)
def test_bad_inputs_are_named_with_exit_2(tmp_path, text, reason):
    file = tmp_path / "inputs.json"
    file.write_bytes(text)
    with pytest.raises(CommandError, match=reason) as caught:
        call_command("render_prompt", "--layout", "nova", "--inputs", str(file))
    assert caught.value.returncode == 2


@pytest.mark.hard
def test_errors_go_to_standard_error_and_the_exit_is_2(tmp_path):
    file = tmp_path / "inputs.json"
    file.write_text('{"mission": {"text": "{{user._token}}"}, "data": {"values": {"user": {"_token": "x"}}}}')
    command = [sys.executable, "manage.py", "render_prompt", "--layout", "ptc", "--inputs", str(file)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, check=False, timeout=300)
    assert (answer.returncode, answer.stdout) == (2, b"")
    assert b"Traceback" not in answer.stderr
    assert b"_token" in answer.stderr


def test_the_layouts_are_listed_with_their_parts_in_order(capsys):
    call_command("list_layouts")
    output = capsys.readouterr().out
    places = [output.index(f"{name}: ") for name in LAYOUTS]
    assert places == sorted(places)
    assert " 1. identity (release)" in output
    assert "filled per call" in output


def test_agents_may_choose_exactly_the_layouts_that_exist():
    assert tuple(LAYOUTS) == KNOWN
