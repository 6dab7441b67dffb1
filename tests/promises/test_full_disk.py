"""R19: a full disk refuses writes with the reason, loses nothing acknowledged, and ends without a restart.

The database lies on a real file system of a few megabytes, which the test fills.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.promises.installation import Installation, Web, migrated_database
from tests.promises.load import LoadRequest, RequestFactory
from tests.promises.small_disk import SmallDisk, small_disk

DISK_BYTES = 24 * 1024**2
LARGE_TEXT = "Ask for the order number. " * 2_000
ATTEMPTS = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("full")


@pytest.fixture(scope="module")
def mounted_disk(folder):
    mount = folder / "disk"
    mount.mkdir()
    with small_disk(mount, DISK_BYTES) as disk:
        yield disk


@pytest.fixture
def disk(mounted_disk):
    yield mounted_disk
    mounted_disk.free()


@pytest.fixture(scope="module")
def installation(mounted_disk, folder):
    """An installation that was built elsewhere and then copied to the small disk."""
    with migrated_database(folder, "sqlite") as url:
        built = Installation(folder, url)
        built.build()
        file = Path(url.removeprefix("sqlite:///"))
        for path in file.parent.glob(f"{file.name}*"):
            shutil.copy(path, mounted_disk.outside / path.name)
        moved = Installation(
            folder,
            f"sqlite:///{mounted_disk.folder / file.name}",
            prefix=mounted_disk.prefix,
            facts=built.facts,
        )
        yield moved
        moved.close()


class Editor:
    """Sends edits and fetches, and remembers what was acknowledged."""

    def __init__(self, installation: Installation, web: Web) -> None:
        self.requests, self.client = RequestFactory(installation.facts), httpx.Client(base_url=web.url)
        self.folder, self.port = installation.folder, installation.port
        self.fetches: dict[str, str] = {}
        self.edits: list[tuple[str, int, str]] = []

    def send(self, request: LoadRequest) -> httpx.Response:
        spec = request.spec
        response = self.client.request(
            spec.method, spec.path, headers=dict(spec.headers), content=spec.body, timeout=20
        )
        if response.status_code == 200 and request.kind == "edit":
            self.edits.append((request.target, response.json()["revision"], request.text))
        if response.status_code == 200 and request.kind == "fetch":
            self.fetches[response.headers["X-Request-Id"]] = response.headers["Dramatis-Digest"]
        return response

    def edit(self, turn: int, text: str = LARGE_TEXT) -> httpx.Response:
        return self.send(self.requests.edit(turn % 6, f"{turn} {text}".strip()))

    def fetch(self, turn: int = 0) -> httpx.Response:
        return self.send(self.requests.fetch(turn))


def check_nothing_is_lost(installation: Installation, editor: Editor, disk: SmallDisk) -> dict[str, Any]:
    """Check a copy of the database after the disk was full."""
    acknowledged = {"fetches": editor.fetches, "edits": editor.edits}
    (installation.folder / "acknowledged.json").write_text(json.dumps(acknowledged))
    copy = installation.folder / "after"
    shutil.copytree(disk.outside, copy)
    name = Path(installation.database.removeprefix("sqlite:///")).name
    facts: dict[str, Any] = Installation(
        installation.folder, f"sqlite:///{copy / name}", prefix=installation.prefix
    ).scene("check")
    return facts


def fill_until_refused(disk: SmallDisk, editor: Editor) -> httpx.Response:
    """Fill the disk and edit until an edit is refused: the database may use the room that it has already."""
    disk.fill()
    for turn in range(ATTEMPTS):
        response = editor.edit(turn)
        if response.status_code != 200:
            return response
        disk.fill()
    raise AssertionError("The disk never was full.")


@pytest.mark.hard
@pytest.mark.promise("R19")
def test_a_full_disk_refuses_writes_and_loses_nothing(installation, disk, record_property):
    with installation.web(DRAMATIS_BUILD_AT_ONCE="20") as web:
        editor, processes = Editor(installation, web), web.processes()
        assert [editor.edit(turn, "Be calm.").status_code for turn in range(3)] == [200] * 3
        assert [editor.fetch(turn).status_code for turn in range(3)] == [200] * 3
        refused = fill_until_refused(disk, editor)
        statuses = {editor.edit(turn).status_code for turn in range(10)}
        fetched = {editor.fetch(turn).status_code for turn in range(10)}
        read = editor.send(editor.requests.read()).status_code
        page = editor.client.get("/w/harbour/agents/", headers={"Cookie": installation.facts["cookie"]})
        disk.free()
        assert editor.edit(0, "Be calm again.").status_code == 200
        text = editor.fetch().text
        assert web.processes() == processes
        findings = check_nothing_is_lost(installation, editor, disk)
    record_property(
        "measured",
        f"disk full: edits {sorted(statuses)}, fetches {sorted(fetched)}, reads {read}; {len(editor.edits)} "
        f"edits and {len(editor.fetches)} fetches acknowledged, {findings['missing']} missing; written "
        "again as soon as there is room",
    )
    assert (refused.status_code, refused.json()["code"]) == (503, "storage_full")
    assert refused.headers["Retry-After"] == "30"
    assert refused.headers["Content-Type"].startswith("application/problem+json")
    assert "disk" in refused.json()["detail"]
    assert statuses == {503}
    assert fetched == {503}
    assert read == 200
    assert page.status_code == 200
    assert "Be calm again." in text
    for name in ("missing", "wrong digests", "missing edits", "broken links", "bad rows"):
        assert findings[name] == 0, findings
    assert findings["torn"] == []


@pytest.mark.hard
@pytest.mark.planted
@pytest.mark.promise("R19")
def test_a_full_disk_that_is_not_translated_is_found(installation, disk):
    with installation.web("without_translation") as web:
        refused = fill_until_refused(disk, Editor(installation, web))
    assert refused.status_code == 500
