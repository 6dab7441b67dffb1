"""R3: thousands of edits by sixteen connections, each built in its own transaction.

3,000 by default; `DRAMATIS_EDITS=10000` runs more.
"""

import json
import os
from pathlib import Path

import pytest

from tests.promises.installation import Installation, Web, migrated_database
from tests.promises.load import LoadGenerator, LoadRequest, RequestFactory

pytestmark = [pytest.mark.hard, pytest.mark.promise("R3")]
EDITS, THREADS, SOULS = int(os.environ.get("DRAMATIS_EDITS", "3000")), 16, 16
# After so many edits all caches of the process are in use.
WARM_EDITS = 1_000
TIMEOUT = 600.0
# What a web process may grow by in the remaining edits. A leak of 8 kilobytes per edit would be 16 MiB.
MAX_GROWTH = 12 * 2**20


@pytest.fixture
def installation(tmp_path, monkeypatch):
    monkeypatch.setenv("SCENE_AGENTS", str(SOULS))
    with migrated_database(tmp_path, "postgresql") as url:
        installation = Installation(tmp_path, url)
        installation.build()
        yield installation
        installation.close()


def measure_memory(web: Web) -> int:
    """The resident memory of the largest process of the server, in bytes."""
    pages = [int(Path(f"/proc/{pid}/statm").read_text().split()[1]) for pid in web.processes()]
    return max(pages) * 4_096


def test_thousands_of_edits_leave_no_gap_and_no_fault(installation, record_property):
    requests = RequestFactory(installation.facts)

    def make_request(who: int, turn: int) -> LoadRequest:
        return requests.edit(who, f"Be {who}, for the {turn}th time.")

    with installation.web() as web, LoadGenerator(web.url, make_request, THREADS, timeout=30) as load:
        load.is_open.set()
        assert load.wait_until_served(WARM_EDITS, TIMEOUT), web.log.read_text()[-2_000:]
        warm = measure_memory(web)
        assert load.wait_until_served(EDITS, TIMEOUT), web.log.read_text()[-2_000:]
        load.is_open.clear()
        growth = measure_memory(web) - warm
        log = web.log.read_text()
    failed = [response for response in load.responses if not response.is_served]
    edits = [
        (one.request.target, json.loads(one.body)["revision"], one.request.text)
        for one in load.responses
        if one.is_served
    ]
    (installation.folder / "acknowledged.json").write_text(json.dumps({"fetches": {}, "edits": edits}))
    result = installation.scene("check")
    seconds = load.responses[-1].ended - load.responses[0].began
    record_property(
        "measured",
        f"{len(edits):,} edits by {THREADS} connections, {len(edits) / seconds:.0f} a second, "
        f"{result['versions']:,} versions, {growth / 2**20:+.0f} MiB",
    )
    assert [response.status for response in failed] == []
    assert "deadlock" not in log
    assert "inline_build_failed" not in log
    assert {name: result[name] for name in ("missing edits", "torn", "broken links", "bad rows")} == {
        "missing edits": 0,
        "torn": [],
        "broken links": 0,
        "bad rows": 0,
    }
    # One version per agent at the start, and one per edit: the build of each edit is part of it.
    assert result["versions"] == len(edits) + SOULS
    assert result["left to the sweep"] == 0
    assert growth <= MAX_GROWTH
