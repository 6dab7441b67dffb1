"""Select the stored files of one agent that reads several sources, such as a home directory and a project."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from skills.discovery.harnesses import HOME_PREFIX, DiscoveryRule, FileKind, Harness
from skills.discovery.lookup import SearchFolders, join_path, list_matching_paths

# A rule that takes all files of one of these kinds lists the source with the highest priority last. For other
# rules the first file wins, so that source comes first.
CUMULATIVE_KINDS = frozenset({"context", "workspace"})


class SearchedSource(NamedTuple):
    """A source in the search for one agent. Sources are ordered by priority, lowest first.

    `folders` are the folders that rules with relative paths apply to. `is_home` tells whether `~/` stands
    for a folder of this source, `global_folder`.
    """

    key: int
    folders: SearchFolders
    is_home: bool = True
    is_project: bool = True
    global_folder: str = ""
    # Skill folders that the agent's settings add, as paths below the source's root.
    extra_skill_folders: tuple[str, ...] = ()
    # The absolute path of the source's root, ending in a slash; empty if unknown. Files with the same
    # absolute path in two sources count as one file.
    root: str = ""


class AgentFile(NamedTuple):
    """A stored file that an agent reads: its kind, the key of its source, and its path in that source."""

    kind: FileKind
    source: int
    path: str


Candidate = tuple[SearchedSource, str]


def list_agent_files(
    harness: Harness, sources: Sequence[SearchedSource], stored: Mapping[int, Collection[str]]
) -> list[AgentFile]:
    """List the stored files that an agent reads, in the order of the harness's rules.

    `stored` maps the keys of sources to paths. For one source that is both home and project, the result is
    that of `list_applicable_files`.
    """
    ranks = {source.key: (source.is_project, index) for index, source in enumerate(sources)}
    chosen: dict[str, AgentFile] = {}
    for kind, candidates, is_first_only in iter_candidate_groups(harness, sources):
        for source, pattern in candidates:
            matches = list_matching_paths(pattern, stored.get(source.key, ()))
            for path in matches:
                file = chosen.setdefault(get_file_key(source, path), AgentFile(kind, source.key, path))
                if ranks[file.source] < ranks[source.key]:
                    chosen[get_file_key(source, path)] = AgentFile(file.kind, source.key, path)
            if matches and is_first_only:
                break
    return list(chosen.values())


def get_file_key(source: SearchedSource, path: str) -> str:
    """Return a key that is equal for one file in two sources. The one of the project or later source wins."""
    return f"{source.root or f'{source.key}:'}{path}"


def iter_candidate_groups(
    harness: Harness, sources: Sequence[SearchedSource]
) -> Iterator[tuple[FileKind, list[Candidate], bool]]:
    for rule in harness.active_rules:
        is_first_only = rule.take == "first"
        if rule.at == "each":
            for folders in list_visited_folders(sources):
                yield rule.kind, list_folder_candidates(rule, folders, sources), is_first_only
        else:
            yield rule.kind, list_project_candidates(rule, sources), is_first_only
    if "skill" not in harness.off:
        extra = [
            (source, join_path(folder, "*/SKILL.md"))
            for source in reversed(sources)
            for folder in source.extra_skill_folders
        ]
        yield "skill", extra, False


def list_visited_folders(sources: Sequence[SearchedSource]) -> list[list[Candidate]]:
    """List the folders that rules visit, in order. One that lies in several sources comes once, with each.

    Its first source decides in a rule that takes the first file: a project before a home directory, then the
    source with the highest priority. Its place in the order is that of this source too.
    """
    visited: dict[str, list[Candidate]] = {}
    for source in sorted(sources, key=lambda source: source.is_project):
        for folder in source.folders.each:
            visited.setdefault(get_file_key(source, folder).rstrip("/"), []).insert(0, (source, folder))
    owners = {(found[0][0].key, found[0][1]): found for found in visited.values()}
    pairs = [(source.key, folder) for source in sources for folder in source.folders.each]
    return [owners[pair] for pair in pairs if pair in owners]


def list_folder_candidates(
    rule: DiscoveryRule, folders: Sequence[Candidate], sources: Sequence[SearchedSource]
) -> list[Candidate]:
    """List the paths of a rule in one folder, for each source that contains it."""
    candidates: list[Candidate] = []
    for is_project in dict.fromkeys([source.is_project for source, _ in folders]):
        same_scope = [pair for pair in folders if pair[0].is_project == is_project]
        for path in rule.paths:
            if path.startswith(HOME_PREFIX):
                candidates += [(home, anchor_home_path(path, home)) for home in sources if home.is_home]
            elif path.startswith("/"):
                candidates += [(source, path[1:]) for source, _ in same_scope if source.is_project]
            else:
                candidates += [(source, join_path(folder, path)) for source, folder in same_scope]
    return candidates


def list_project_candidates(rule: DiscoveryRule, sources: Sequence[SearchedSource]) -> list[Candidate]:
    is_cumulative = rule.kind in CUMULATIVE_KINDS and rule.take == "all"
    ordered = list(sources) if is_cumulative else list(reversed(sources))
    candidates: list[Candidate] = []
    for path in rule.paths:
        for source in ordered:
            if path.startswith(HOME_PREFIX):
                candidates += [(source, anchor_home_path(path, source))] if source.is_home else []
            elif path.startswith("/"):
                candidates += [(source, path[1:])] if source.is_project else []
            elif source.folders.project is not None:
                candidates.append((source, join_path(source.folders.project, path)))
    return candidates


def anchor_home_path(path: str, source: SearchedSource) -> str:
    return join_path(source.global_folder, path.removeprefix(HOME_PREFIX))


def customize_harness(harness: Harness, file_names: Iterable[str], off: Iterable[FileKind] = ()) -> Harness:
    """Replace the names of the context files in each folder, and disable more kinds.

    The names are looked for in the folder itself and in the subfolders that the rule names. Patterns with a
    star stay.
    """
    names = tuple(file_names)
    rules = tuple([replace_file_names(rule, names) if names else rule for rule in harness.rules])
    return replace(harness, rules=rules, off=tuple(dict.fromkeys([*harness.off, *off])))


def replace_file_names(rule: DiscoveryRule, names: Sequence[str]) -> DiscoveryRule:
    if rule.kind != "context" or rule.at != "each":
        return rule
    patterns = [path for path in rule.paths if "*" in path]
    folders = dict.fromkeys([path.rpartition("/")[0] for path in rule.paths if "*" not in path])
    paths = [join_path(folder, name) for name in names for folder in folders]
    return replace(rule, paths=tuple(dict.fromkeys([*paths, *patterns])))


def add_skill_folders(harness: Harness, global_folder: str, folders: Iterable[str]) -> Harness:
    """Return the rules for the refresh of one source: with its home folder and the agent's skill folders."""
    paths = tuple([f"/{join_path(folder, '*/SKILL.md')}" for folder in folders])
    extra = (DiscoveryRule("skill", paths, "project"),) if paths else ()
    return replace(harness, global_folder=global_folder, rules=(*harness.rules, *extra))
