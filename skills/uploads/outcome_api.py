"""Predict the outcome of a push for the response, with the same rules as the refresh that follows."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from personas.api.schema import Schema, array_schema, integer_schema, object_schema
from skills.api_helpers import FINDINGS_SCHEMA, PROBLEMS_SCHEMA, TEXT_SCHEMA, findings_json, problems_json
from skills.archives import discover_pushed_files
from skills.archives.bundle import format_refusal_path
from skills.discovery import Refusal
from skills.files.discovered_changes import evaluate_discovered_files
from skills.files.evaluate import FileEvaluation
from skills.files.policy import policy_for
from skills.models import ContextFile, Source
from skills.refresh.api import REFUSAL_SCHEMA, RUN_SCHEMA
from skills.sources.readers import list_source_harnesses

MAX_OUTCOME_ITEMS = 100_000
POINTER_PROPERTIES = {"pointer": TEXT_SCHEMA | {"description": "Its position in the body."}}
PUSH_REFUSAL_SCHEMA = object_schema(
    {**POINTER_PROPERTIES, **REFUSAL_SCHEMA["properties"]}, title="PushRefusal"
)
PUSH_OUTCOME_SCHEMA: Schema = object_schema(
    {
        "run": RUN_SCHEMA,
        "stored": integer_schema(description="Number of files stored."),
        "refused": array_schema(
            PUSH_REFUSAL_SCHEMA,
            most=MAX_OUTCOME_ITEMS,
            description="Files that were not stored. Earlier content is kept.",
        ),
        "quarantined": array_schema(
            object_schema(
                {"path": TEXT_SCHEMA, "digest": TEXT_SCHEMA, "findings": FINDINGS_SCHEMA},
                title="QuarantinedFile",
            ),
            most=MAX_OUTCOME_ITEMS,
            description="Stored, but not used in prompts until someone waives the findings.",
        ),
        "invalid": array_schema(
            object_schema({"path": TEXT_SCHEMA, "problems": PROBLEMS_SCHEMA}, title="InvalidFile"),
            most=MAX_OUTCOME_ITEMS,
            description="Stored, but invalid, so no prompt can use it.",
        ),
        "unused": array_schema(
            REFUSAL_SCHEMA,
            most=MAX_OUTCOME_ITEMS,
            description=("Stored, but no rule of the source matches it."),
        ),
    },
    title="PushOutcome",
)


def push_outcome_json(source: Source, files: Mapping[str, bytes]) -> dict[str, Any]:
    """Evaluate the pushed files and list those that are quarantined, invalid or not matched by any rule.

    Unchanged files are evaluated too, so that a repeated request returns the same outcome.
    """
    result = discover_pushed_files(files, list_source_harnesses(source))
    verdicts = evaluate_discovered_files(source, result, lambda *_: None)
    digests = {entry.path: entry.stamp.digest for entry in (*result.files, *result.skills)}
    waived = get_waived_contents(source)
    return {
        "quarantined": [
            {"path": path, "digest": digests[path], "findings": findings_json(evaluation.findings)}
            for path, evaluation in filter_by_verdict(verdicts, "blocked")
            if (path, digests[path]) not in waived
        ],
        "invalid": [
            {"path": path, "problems": problems_json(evaluation.problems)}
            for path, evaluation in filter_by_verdict(verdicts, "invalid")
        ],
        "unused": [refusal._asdict() for refusal in result.refusals],
    }


def filter_by_verdict(
    verdicts: Mapping[str, FileEvaluation], verdict: str
) -> list[tuple[str, FileEvaluation]]:
    return [(path, evaluation) for path, evaluation in verdicts.items() if evaluation.verdict == verdict]


def get_waived_contents(source: Source) -> set[tuple[str, str]]:
    """Return path and digest of each file content of the source that has a valid waiver."""
    waived = policy_for(source).waived
    rows = ContextFile.objects.in_workspace(source.workspace_id).filter(pk__in=[pk for pk, _ in waived])
    paths = dict(rows.values_list("pk", "path"))
    return {(paths[pk], digest) for pk, digest in waived if pk in paths}


def push_refusals_json(refusals: Sequence[Refusal], paths: Sequence[str]) -> list[dict[str, Any]]:
    """Serialize refusals, each with a JSON pointer to the refused file in the request body.

    `paths` are the paths of the files in the request. A refusal of the whole push points to the file list.
    """
    pointers: dict[str, list[str]] = defaultdict(list)
    for index, path in enumerate(paths):
        pointers[format_refusal_path(path)].append(f"/files/{index}")
    return [
        {"pointer": pointer, **refusal._asdict()}
        for refusal in refusals
        for pointer in pointers.get(refusal.path) or ["/files"]
    ]
