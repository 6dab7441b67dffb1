"""The documentation: every link has a target, and every command works."""

import ast
import os
import re
import subprocess

import pytest
from django.core.management import call_command, get_commands

import dev
from personas.actors import Actor
from personas.api_keys.services import create_key
from personas.models import Agent, Channel, Workspace
from prompts.publishing.builds.services import rebuild_agents
from prompts.studio.demo.load import read_demo_data as cast
from tests.curl import curl_beside
from tests.factories import make_agent, make_workspace
from tests.project.deployment.production_settings import ROOT
from tests.project.docs.documented_commands import simple_commands, wrong_with
from tests.project.docs.markdown_pages import (
    PAGES,
    CommandLine,
    anchors,
    dead_links,
    links,
    name_of,
    named_in_passing,
    shell_lines,
    split_commands,
)

ALL = [command_line for page in PAGES for command_line in shell_lines(page)]

# Run by the tests below.
HERE = {
    r"python3? manage\.py (list_layouts|render_prompt|rebuild_prompts|doctor|backup)\b": "in this process",
    r"python manage\.py create_key ": "in this process",
    r"python manage\.py restore \S+ --only-check": "in this process",
    r"curl .*127\.0\.0\.1:8000/": "at a running server",
    r"export DRAMATIS_KEY=": "with a key of the test",
}
# Run by other tests: the documentation file, the command, and the test.
ELSEWHERE = {
    (
        "docs/api.md",
        r"curl |export ",
    ): "tests/personas/api/test_api_guide.py::test_every_command_of_the_guide_works",
    ("docs/evidence.md", r"openssl "): (
        "tests/prompts/proof/test_golden.py::test_the_page_leads_openssl_to_the_same_verdict"
    ),
    ("docs/evidence.md", r"python manage\.py verify_chain --against \S+$"): (
        "tests/prompts/evidence/integrity/test_trusted_keys.py"
        "::test_a_rewrite_with_the_own_key_is_found_against_a_copy"
    ),
    ("docs/deployment.md", r"mkdir |head |openssl |chmod "): (
        "tests/project/deployment/test_deployment_guide.py"
        "::test_the_commands_of_the_guide_make_secrets_that_production_takes"
    ),
    ("docs/operations.md", r"python manage\.py restore \S+$"): (
        "tests/project/backup/test_backup.py::test_a_backup_is_restored_whole_and_proved"
    ),
    ("", r"python3 dev\.py run$"): (
        "tests/project/supervisor/test_up.py::test_it_stops_cleanly_and_a_killed_one_leaves_nothing_behind"
    ),
    ("docs/operations.md", r"python manage.py reencrypt_secrets$"): (
        "tests/personas/accounts/test_second_factors.py::"
        "test_a_rotation_is_reported_carried_out_and_leaves_the_old_key_unneeded"
    ),
    ("docs/releasing.md", r"python3 dev\.py release "): (
        "tests/project/deployment/test_release.py::test_a_release_has_packages_notes_sbom_and_checksums"
    ),
    ("docs/releasing.md", r"TEST_IMAGE=\S+ python3 dev\.py test --hard tests/\S+/test_image\.py"): (
        "tests/project/deployment/test_image.py"
        "::test_every_service_starts_is_well_serves_bots_is_backed_up_and_ends_when_asked"
    ),
    ("clients/python/README.md", r"dramatis fetch "): (
        "tests/clients/test_command.py::test_fetch_prints_the_exact_text"
    ),
    ("clients/python/README.md", r"dramatis render "): (
        "tests/clients/test_command.py::test_render_takes_facts_as_json_or_text"
    ),
    ("clients/python/README.md", r"dramatis push "): (
        "tests/clients/test_command.py::test_push_sends_the_files_of_the_dry_run"
    ),
    ("clients/python/README.md", r"dramatis replay "): (
        "tests/clients/test_command.py::test_replay_prints_the_recorded_text_or_nothing"
    ),
    ("clients/python/README.md", r"dramatis pull "): (
        "tests/clients/test_command.py::test_pull_writes_one_folder_per_skill_and_removes_those_that_are_gone"
    ),
    ("clients/python/README.md", r"dramatis diff "): (
        "tests/clients/test_command.py::test_diff_prints_changed_lines"
    ),
    ("clients/python/README.md", r"dramatis doctor "): (
        "tests/clients/test_command.py::test_doctor_checks_settings_server_key_and_prompt"
    ),
    ("clients/python/README.md", r"dramatis completion "): (
        "tests/clients/test_command.py::test_bash_completes_commands_options_and_shells"
    ),
}
# Not run; names and options are checked nevertheless (documented_commands.py).
NOWHERE = {
    r"docker compose |git pull && docker": "no container engine; test_compose_starts runs what is inside",
    r"docker build |docker buildx |buildah |tests/\S+/make_base_image\.sh ": "test_image tests its result",
    r"(PROMISES=docs/promises\.md )?python3 dev\.py test( --full| --hard| tests/\w+ -k \w+)?$": "it is this",
    r"cd frontend$|npm ": "it fetches packages; what the build made is committed",
    r"pip install ./clients": "it fetches packages",
    r"export DRAMATIS_URL=\S+ DRAMATIS_KEY=": "an address that is nobody's",
    r"([\d*]+ ){5}": "cron runs it; its words are those of the backup above it",
}


def is_known(command_line: CommandLine) -> bool:
    plain = [*HERE, *NOWHERE, *(command for file, command in ELSEWHERE if file in {"", command_line.file})]
    return any(re.match(command, typed(command_line)) for command in plain)


def typed(command_line: CommandLine) -> str:
    """Return the command without its comment."""
    return re.sub(r"\s+#.*$", "", command_line.text)


def faults(lines: list[CommandLine]) -> list[str]:
    """Return a message for each command that no test runs, or that its program would reject."""
    unknown = [
        f"{command_line.place}: nobody runs “{command_line.text}”"
        for command_line in lines
        if not is_known(command_line)
    ]
    return unknown + [
        f"{command_line.place}: {why}" for command_line in lines if (why := wrong_with(command_line.text))
    ]


# --- links ---------------------------------------------------------------------------------------------


def test_every_link_leads_to_a_file_and_a_heading_that_are_there():
    assert [fault for page in PAGES for fault in dead_links(page)] == []


def test_the_index_leads_to_every_page_and_the_readme_to_the_index():
    index = ROOT / "docs" / "README.md"
    reached = {(index.parent / target.partition("#")[0]).resolve() for _, target in links(index)}
    pages = {page for page in PAGES if page.name != "README.md" and page.parent.name != "decisions"}
    assert {name_of(page) for page in pages - reached} == set()
    assert "docs/README.md" in {target for _, target in links(ROOT / "README.md")}
    decisions = {page.name for page in PAGES if page.parent.name == "decisions"}
    targets = {target for _, target in links(ROOT / "docs" / "decisions" / "README.md")}
    assert decisions - targets == {"README.md"}


def test_files_named_in_passing_are_there():
    """Paths from the root, such as `tests/curl.py`, or of templates."""
    named = re.compile(
        r"`((?:docs|tests|screens|benches|core|project|personas|prompts|skills|requirements)/[\w./-]+)`"
    )
    lost = [
        f"{name_of(page)}: {path}"
        for page in PAGES
        for path in named.findall(page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists() and not (ROOT / "templates" / path).exists()
    ]
    assert lost == []


def test_anchors_are_made_as_github_makes_them(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# What runs, and why?\n\n## The `manage.py` way\n\n## Twice\n\n## Twice\n")
    assert anchors(page) == {"what-runs-and-why", "the-managepy-way", "twice", "twice-1"}


@pytest.mark.planted
def test_a_dead_link_a_dead_anchor_and_a_lost_picture_are_named(tmp_path):
    (tmp_path / "there.md").write_text("# Here\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[well](there.md#here), [out](https://example.org)\n[lost](gone.md)\n\n| a |\n|---|\n"
        "| [dead](there.md#nowhere) |\n\n![picture](img/gone.png) [up](#top)\n"
    )
    assert dead_links(page) == [
        "page.md:2: gone.md: there is no such file",
        "page.md:6: there.md#nowhere: there is no such heading",
        "page.md:8: img/gone.png: there is no such file",
        "page.md:8: #top: there is no such heading",
    ]


# --- commands ------------------------------------------------------------------------------------------


def test_every_command_is_run_by_a_test_and_accepted_by_its_program():
    assert len(ALL) >= 40
    assert faults(ALL) == []


def test_commands_in_the_middle_of_a_sentence_are_taken_too():
    """Names of commands must exist; if arguments follow, they must be accepted."""
    commands = [command_line for page in PAGES for command_line in named_in_passing(page)]
    alone = {
        command_line.text.split()[1]
        for command_line in commands
        if re.fullmatch(r"manage\.py \w+", command_line.text)
    }
    assert alone <= set(get_commands())
    rest = [
        command_line for command_line in commands if not re.fullmatch(r"manage\.py \w+", command_line.text)
    ]
    assert len(rest) >= 30
    assert [
        f"{command_line.place}: {why}" for command_line in rest if (why := wrong_with(command_line.text))
    ] == []


def test_every_command_and_bench_of_ours_is_documented():
    ours = {
        name for name, app in get_commands().items() if app in {"project", "personas", "skills", "prompts"}
    }
    table = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8").partition("## All commands")[2]
    assert ours == set(re.findall(r"`manage\.py (\w+)", table.partition("## ")[0]))
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [name for name in dev.BENCHES if f"`{name}`" not in guide] == []


def test_no_row_of_the_tables_is_left_over():
    """Each row needs a documented command and an existing test."""
    lines = [(command_line.file, typed(command_line)) for command_line in ALL]
    plain = [("", command) for command in (*HERE, *NOWHERE)]
    for file, command in [*plain, *ELSEWHERE]:
        assert any(file in {"", at} and re.match(command, line) for at, line in lines), (file, command)
    assert [test for test in ELSEWHERE.values() if not exists(test)] == []


def exists(test: str) -> bool:
    path, _, name = test.partition("::")
    tree = ast.parse((ROOT / path).read_text())
    return any(isinstance(node, ast.FunctionDef) and node.name == name for node in tree.body)


@pytest.mark.planted
@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("systemctl restart dramatis", "nobody runs"),
        ("systemctl restart dramatis", "nobody knows “systemctl”"),
        ("python manage.py heal", "manage.py has no command “heal”"),
        ("python manage.py rebuild_prompts --agnet juniper", "unrecognized arguments: --agnet"),
        ("python manage.py backup", "required: folder"),
        ("python3 dev.py run --prot 80", "unknown argument: --prot"),
        ("python3 dev.py bench nothing", "no bench “nothing”"),
        ("docker compose up -d wbe", "wbe is neither"),
        ("docker compose exec web python manage.py docter", "no command “docter”"),
        ("dramatis fetch pilot", "required: channel"),
        ("docker build --build-arg PYTHON=3.13 .", "no argument PYTHON"),
        ("buildah bud --secret id=ca,src=ca.pem .", "no secret ca"),
        ("npm run biuld", "no such script"),
        ("make gold", "no target “gold”"),
        ("cd fronted && npm ci", "no folder fronted"),
    ],
)
def test_a_command_that_nobody_knows_or_that_is_refused_is_named_with_its_place(line, why):
    messages = faults(split_commands(f"# first\n{line} \\\n  # and a word\n", "docs/page.md:", 7))
    assert any(fault.startswith("docs/page.md:8: ") and why in fault for fault in messages), messages


# --- commands run by this module -----------------------------------------------------------------------


def run_here(command: str) -> list[str]:
    lines = [typed(command_line) for command_line in ALL if re.match(command, typed(command_line))]
    assert lines
    return lines


def test_agents_of_the_examples_are_in_the_demo():
    """So that a newcomer can copy the commands unchanged."""
    demo = {agent["slug"]: agent["channels"] for agent in cast("agents")}
    named = re.findall(
        r"--agent (\S+)|:8000/api/v1/agents/([\w-]+)/channels/([\w-]+)/prompt", join_commands(ALL)
    )
    assert len(named) >= 3
    for by_option, by_address, channel in named:
        assert channel in [*demo[by_option or by_address], ""]
    assert {cast("workspace")["slug"]} == set(re.findall(r"--workspace (\S+)", join_commands(ALL)))


def join_commands(lines: list[CommandLine]) -> str:
    return "\n".join(command_line.text for command_line in lines)


def make_speaking_agent(workspace: Workspace, agent: str, channel: str) -> Agent:
    return make_agent(workspace, agent, channels=[Channel.objects.in_workspace(workspace).get(slug=channel)])


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_commands_of_manage_run_as_documented(alice, monkeypatch, tmp_path, settings, capfd):
    """In the order of the pages, on a workspace with the names they use."""
    make_speaking_agent(make_workspace("Larkfell", owner=alice), "bench-tests", "slack")
    settings.DRAMATIS_CHECKPOINT_DIR = tmp_path / "checkpoints"
    monkeypatch.chdir(ROOT)
    for line in run_here("|".join(command for command in HERE if "manage" in command)):
        [[_, _, name, *arguments]] = simple_commands(line.replace("/backups", str(tmp_path)))
        # No worker is running, so the doctor fails.
        assert get_exit_code(name, arguments) == (1 if name == "doctor" else 0), line
        assert capfd.readouterr().out, line


def get_exit_code(name: str, arguments: list[str]) -> int:
    try:
        call_command(name, *arguments)
    except SystemExit as ended:
        return int(ended.code or 0)
    return 0


@pytest.mark.django_db(transaction=True)
def test_a_bot_fetches_as_documented_in_readme_and_tour(alice, live_server, tmp_path):
    workspace = make_workspace("Larkfell", owner=alice)
    rebuild_agents(workspace, [make_speaking_agent(workspace, "bench-tests", "api").pk])
    _, secret = create_key(workspace, "Docs", {}, by=Actor.person(alice))
    lines = [line for line in run_here(r"curl .*127\.0\.0\.1:8000/") if "…" not in line]
    for line in lines:
        command = line.replace("http://127.0.0.1:8000", live_server.url)
        env = {"PATH": f"{curl_beside(tmp_path)}:{os.environ['PATH']}", "DRAMATIS_KEY": secret}
        done = subprocess.run(  # what the page tells one to type
            ["sh", "-c", command], env=env, capture_output=True, text=True, timeout=120, check=True
        )
        assert '"ledger_id"' in done.stdout, line
