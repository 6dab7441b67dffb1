"""What will come of a push, told at once: the same rules judge it that the look behind it goes by."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from personas.api.schema import Shape, listed, shape, whole
from skills.api_helpers import FINDINGS, PROBLEMS, TEXT, findings_told, problems_told
from skills.archives import discover_pushed
from skills.archives.bundle import label
from skills.discovery import Refusal
from skills.files.evaluate import Judged
from skills.files.policy import house_of
from skills.files.store import judge_found
from skills.models import ContextFile, Source
from skills.refresh.api import REFUSAL, RUN
from skills.rule_sets.effective import harnesses_of

MOST = 100_000
POINTED = {"pointer": TEXT | {"description": "Where it stands in the body."}}
REFUSED = shape({**POINTED, **REFUSAL["properties"]})
OUTCOME: Shape = shape(
    {
        "run": RUN,
        "taken": whole(description="How many files were stored."),
        "refused": listed(
            REFUSED, most=MOST, description="Files that were not stored; an earlier one stays."
        ),
        "quarantined": listed(
            shape({"path": TEXT, "digest": TEXT, "findings": FINDINGS}),
            most=MOST,
            description="Stored, but kept from every prompt until someone waives the findings.",
        ),
        "invalid": listed(
            shape({"path": TEXT, "problems": PROBLEMS}),
            most=MOST,
            description="Stored, but no prompt can use it as it is.",
        ),
        "unused": listed(REFUSAL, most=MOST, description="Stored, but named by no rule of the source."),
    }
)


def outcome_of(source: Source, files: Mapping[str, bytes]) -> dict[str, Any]:
    """What the look will make of these files; unchanged ones are judged again, so a retry says the same."""
    found = discover_pushed(files, harnesses_of(source.workspace_id, source.harnesses))
    verdicts = judge_found(source, found, lambda *_: None)
    digests = {entry.path: entry.stamp.digest for entry in (*found.files, *found.skills)}
    waived = waived_contents(source)
    return {
        "quarantined": [
            {"path": path, "digest": digests[path], "findings": findings_told(judged.findings)}
            for path, judged in of_verdict(verdicts, "blocked")
            if (path, digests[path]) not in waived
        ],
        "invalid": [
            {"path": path, "problems": problems_told(judged.problems)}
            for path, judged in of_verdict(verdicts, "invalid")
        ],
        "unused": [refusal._asdict() for refusal in found.refusals],
    }


def of_verdict(verdicts: Mapping[str, Judged], verdict: str) -> list[tuple[str, Judged]]:
    return [(path, judged) for path, judged in verdicts.items() if judged.verdict == verdict]


def waived_contents(source: Source) -> set[tuple[str, str]]:
    """Path and digest of what someone has vouched for."""
    waived = house_of(source).waived
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(pk__in=[pk for pk, _ in waived])
    paths = dict(rows.values_list("pk", "path"))
    return {(paths[pk], digest) for pk, digest in waived if pk in paths}


def refusals_placed(refusals: Sequence[Refusal], sent: Sequence[str]) -> list[dict[str, Any]]:
    """Each refusal with the places of its file in the body; what is said of the whole stands at the list."""
    places: dict[str, list[str]] = defaultdict(list)
    for place, path in enumerate(sent):
        places[label(path)].append(f"/files/{place}")
    return [
        {"pointer": pointer, **refusal._asdict()}
        for refusal in refusals
        for pointer in places.get(refusal.path) or ["/files"]
    ]
