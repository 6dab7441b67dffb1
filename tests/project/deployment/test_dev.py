"""dev.py: clear messages for every problem of a machine or its arguments."""

import ast
import os
import subprocess
import sys

import pytest

import dev
from tests.project.deployment.production_settings import ROOT


def run_dev(*arguments, **environment):
    command = [sys.executable, "dev.py", *arguments]
    env = os.environ | environment
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=300
    )


def test_old_pythons_can_read_the_file():
    ast.parse((ROOT / "dev.py").read_text(), feature_version=(3, 9))


def test_a_wrong_python_gets_one_clear_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert dev.main(["run"]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("Dramatis needs Python 3.11 or newer; this is 3.9.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["run", "--port", "abc"], "'abc' is not a port"),
        (["run", "--port", "70000"], "'70000' is not a port"),
        (["run", "--fast"], "unknown argument: --fast"),
        (["fly"], "invalid choice: 'fly'"),
        ([], "required: COMMAND"),
        (["bench", "nothing"], "no bench named 'nothing'"),
    ],
)
def test_wrong_arguments_are_explained(arguments, message):
    done = run_dev(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


def test_the_whole_suite_uses_all_cores_and_a_chosen_few_tests_one():
    assert dev.is_whole_suite([])
    assert dev.is_whole_suite(["-q", "--durations=30"])
    assert not dev.is_whole_suite(["-k", "memories"])
    assert not dev.is_whole_suite(["tests/project"])


def test_pytest_gets_its_own_arguments():
    choice, rest = dev.parse_arguments(
        ["test", "-k", "memories", "-m", "not browser", "tests/project", "--hard"]
    )
    assert choice.hard
    assert rest == ["-k", "memories", "tests/project"]


@pytest.mark.parametrize(
    ("arguments", "markers"),
    [
        ([], "not hard and not slow"),
        (["--full"], "not hard"),
        (["tests/project"], "not hard"),
        (["--full", "-m", "not browser"], "(not hard) and (not browser)"),
        (["--hard", "-mpromise"], "(hard or promise) and (promise)"),
    ],
)
def test_slow_tests_run_with_full_or_if_they_are_selected(arguments, markers):
    assert dev.get_markers(*dev.parse_arguments(["test", *arguments])) == markers


@pytest.mark.parametrize(("codes", "code"), [((5, 0), 0), ((0, 0), 0), ((1, 0), 1), ((0, -9), 1)])
def test_proofs_that_need_the_machine_run_first_and_a_failure_of_either_run_counts(monkeypatch, codes, code):
    commands: list[list[str]] = []

    def run(command, env, check):
        commands.append(command)
        return subprocess.CompletedProcess(command, codes[len(commands) - 1])

    monkeypatch.setattr(subprocess, "run", run)
    assert dev.run_proofs("hard", []) == code
    alone, others = commands
    assert alone[-1] == "(hard) and alone"
    assert others[others.index("-m", 3) + 1 :][:2] == ["(hard) and not alone", "-n"]


@pytest.fixture
def poor_machine(monkeypatch):
    """Simulate a machine without root and Chromium; return the commands that would be executed."""
    monkeypatch.setattr(dev, "has_chromium", lambda: False)
    monkeypatch.setattr(dev, "is_root_with_apt", lambda: False)
    monkeypatch.setattr(dev, "install_requirements", lambda lock_name: None)
    started = []
    monkeypatch.setattr(dev, "exec_python", lambda *arguments: started.append(arguments))
    return started


def test_no_chromium_stops_loudly(poor_machine, capsys):
    assert dev.main(["test"]) == 1
    assert "The browser tests need Chromium" in capsys.readouterr().err
    assert poor_machine == []


def test_leaving_the_browser_out_takes_a_word(poor_machine):
    dev.main(["test", "-m", "not browser"])
    assert "(not hard and not slow) and (not browser)" in poor_machine[0]


def test_the_product_writes_bytecode_files_whatever_the_shell_says(poor_machine, monkeypatch):
    """Without them a start takes twice as long, because each process compiles every module again."""
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    dev.main(["run"])
    assert poor_machine == [("manage.py", "up", "--port", 8000)]
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


@pytest.mark.parametrize("name", dev.BENCHES)
def test_a_bench_is_a_module_that_runs_by_its_name(poor_machine, monkeypatch, name):
    monkeypatch.setattr(dev, "has_chromium", lambda: True)
    dev.main(["bench", name])
    assert poor_machine == [("-m", f"benches.{name}")]
    assert (ROOT / "benches" / f"{name}.py").exists()


def test_pictures_need_chromium_and_may_be_chosen_by_name(poor_machine, monkeypatch):
    assert dev.main(["shots"]) == 1
    assert dev.main(["bench", "pages"]) == 1
    monkeypatch.setattr(dev, "has_chromium", lambda: True)
    dev.main(["shots", "fleet", "studio"])
    assert poor_machine == [("-m", "screens", "fleet", "studio")]


@pytest.fixture
def venv_calls(monkeypatch, tmp_path):
    """Record what create_venv would run on a machine without any tool."""
    calls = []
    monkeypatch.setattr(dev, "VENV", tmp_path / "venv")
    monkeypatch.setattr(dev, "run_or_exit", lambda *arguments: calls.append(" ".join(map(str, arguments))))
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setattr(dev, "is_root_with_apt", lambda: False)
    return calls


def test_uv_makes_the_venv_when_it_is_there(venv_calls, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: name)
    dev.create_venv()
    assert venv_calls[0].startswith("uv venv")


def test_pip_fills_a_venv_when_ensurepip_is_missing(venv_calls, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name == "pip" or None)
    dev.create_venv()
    assert "--without-pip" in venv_calls[0]
    assert "pip --python" in venv_calls[1]


def test_root_installs_venv_from_debian(venv_calls, monkeypatch):
    packages: list[str] = []
    monkeypatch.setattr(dev, "is_root_with_apt", lambda: True)

    def apt_install(*names):
        packages.extend(names)
        return True

    monkeypatch.setattr(dev, "apt_install", apt_install)
    dev.create_venv()
    assert packages == ["python3-venv"]
    assert len(venv_calls) == 1


def test_a_machine_without_venv_and_pip_gets_a_message(venv_calls, capsys):
    with pytest.raises(SystemExit) as stopped:
        dev.create_venv()
    assert stopped.value.code == 1
    assert "sudo apt-get install python3-venv" in capsys.readouterr().err


def test_a_changed_lock_is_installed_again(monkeypatch, tmp_path):
    for lock_name in dev.LOCK_NAMES:
        (tmp_path / f"{lock_name}.txt").write_text(lock_name)
    monkeypatch.setattr(dev, "LOCKS", tmp_path)
    before = dev.get_stamp_path("run")
    (tmp_path / "run.txt").write_text("changed")
    assert dev.get_stamp_path("run") != before
