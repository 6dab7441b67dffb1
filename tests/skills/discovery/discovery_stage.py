"""A source next to a secret folder, and a record of every file that a search opens."""

import fcntl
import os
import pickle
import socket
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self

import pytest

from skills.discovery import DiscoveryResult, discover_files, discover_tree
from skills.discovery.harnesses import OPAL, DiscoveryCaps, Harness

NOBODY = 65534
SECRET = b"SECRET"


@dataclass
class Stage:
    """`inside` may be read, `outside` must not. The other methods change files during a search."""

    top: Path
    opened: list[str] = field(default_factory=list)
    before_open: dict[str, Callable[[], object]] = field(default_factory=dict)
    during_read: list[Callable[[], object]] = field(default_factory=list)
    foreign: set[int] = field(default_factory=set)

    def __post_init__(self):
        self.inside.mkdir()
        self.outside.mkdir()
        (self.outside / "secret.md").write_bytes(SECRET)
        (self.outside / "AGENTS.md").write_bytes(SECRET)
        (self.outside / "SKILL.md").write_bytes(SECRET)
        self.write("OPAL.md", text="good neighbour")

    @property
    def inside(self) -> Path:
        return self.top / "inside"

    @property
    def outside(self) -> Path:
        return self.top / "outside"

    def path(self, name: str) -> Path:
        path = self.inside / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def write(self, *names: str, text: str | bytes = "words") -> Self:
        for name in names:
            self.path(name).write_bytes(text.encode() if isinstance(text, str) else text)
        return self

    def link(self, name: str, target: str | Path) -> Self:
        self.path(name).symlink_to(target)
        return self

    def fifo(self, name: str) -> Self:
        os.mkfifo(self.path(name))
        return self

    def socket(self, name: str) -> None:
        # The path of a socket is limited in length, so it is bound from its own folder.
        here = os.getcwd()
        os.chdir(self.path(name).parent)
        try:
            with socket.socket(socket.AF_UNIX) as server:
                server.bind(Path(name).name)
        finally:
            os.chdir(here)

    def swap(self, name: str, action: Callable[[Path], object]) -> Callable[[], None]:
        """Replace the entry at this path."""

        def work() -> None:
            path = self.inside / name
            path.rename(self.top / "taken")
            action(path)

        return work

    @contextmanager
    def watch(self):
        """Record the resolved path of everything that is opened, and run the planned changes."""
        with pytest.MonkeyPatch.context() as patch:
            real_open, real_read, real_stat, real_fstat = os.open, os.read, os.stat, os.fstat

            def watched_open(path, flags, mode=0o777, *, dir_fd=None):
                self.before_open.pop(path, lambda: None)()
                fd = real_open(path, flags, mode, dir_fd=dir_fd)
                self.opened.append(place_of(fd))
                return fd

            def watched_read(fd, size):
                content = real_read(fd, size)
                if self.during_read:
                    self.during_read.pop()()
                return content

            patch.setattr(os, "open", watched_open)
            patch.setattr(os, "read", watched_read)
            patch.setattr(os, "stat", lambda *names, **more: self.fake_device(real_stat(*names, **more)))
            patch.setattr(os, "fstat", lambda fd: self.fake_device(real_fstat(fd)))
            yield

    def fake_device(self, status):
        """Report another device for some inodes."""
        if status.st_ino not in self.foreign:
            return status
        names = ("st_mode", "st_size", "st_mtime_ns", "st_ctime_ns", "st_ino", "st_nlink")
        return SimpleNamespace(st_dev=-1, **{name: getattr(status, name) for name in names})

    def strayed(self) -> list[str]:
        inside = str(self.inside)
        return [path for path in self.opened if path != inside and not path.startswith(f"{inside}/")]

    def up(self, working_directory: str = "", harness: Harness = OPAL, **more) -> DiscoveryResult:
        with self.watch():
            return discover_files(self.inside, working_directory, harness, **more)

    def tree(self, *harnesses: Harness, **more) -> DiscoveryResult:
        with self.watch():
            return discover_tree(self.inside, harnesses or (OPAL,), **more)


def place_of(fd: int) -> str:
    """Return the path of a descriptor, by /proc or on macOS by F_GETPATH."""
    if os.path.isdir("/proc/self/fd"):
        return os.readlink(f"/proc/self/fd/{fd}")
    return fcntl.fcntl(fd, 50, bytes(1024)).rstrip(b"\0").decode()  # F_GETPATH


def as_nobody(work: Callable[[], object]):
    """Run the work in an unprivileged child process, because root can read everything."""
    if os.getuid():
        return work()
    receiver, sender = os.pipe()
    if not (child := os.fork()):
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            answer = work()
        except BaseException as error:  # noqa: BLE001 - told to the parent
            answer = error
        os.write(sender, pickle.dumps(answer))
        os._exit(0)
    os.close(sender)
    with open(receiver, "rb") as pipe:
        answer = pickle.load(pipe)  # noqa: S301 - our own child wrote it
    os.waitpid(child, 0)
    if isinstance(answer, BaseException):
        raise answer
    return answer


@dataclass(frozen=True)
class Case:
    """An unusual tree, the expected refusals by path and rule, and the expected files besides OPAL.md."""

    name: str
    build: Callable[[Stage], object]
    refused: dict[str, str] = field(default_factory=dict)
    expected: tuple[str, ...] = ()
    harness: Harness = OPAL
    working_directory: str = ""
    folder: str = ""
    caps: DiscoveryCaps | None = None
    clock: Callable[[], Callable[[], float]] | None = None
    # "up", "tree" or both.
    ways: tuple[str, ...] = ("up", "tree")
    is_nobody: bool = False
    allow_hard_links: bool = False
    # The expected notes by path and rule; None if the case is not about them.
    notes: dict[str, str] | None = None
    neighbour: tuple[str, ...] = ("OPAL.md",)


def findings(case: Case, way: str, stage: Stage) -> list[str]:
    """List the differences between the result and the expectation of the case."""
    case.build(stage)
    work = lambda: (run(case, way, stage), stage.strayed())  # noqa: E731 - handed to a child
    result, strayed = as_nobody(work) if case.is_nobody else work()
    files = [*result.files, *result.skills]
    refused = {refusal.path: refusal.rule for refusal in result.refusals}
    notes = {note.path: note.rule for note in result.notes}
    paths = sorted(file.path for file in files)
    expected = sorted({*case.expected, *case.neighbour})
    problems = [f"opened outside: {path}" for path in strayed]
    problems += [f"read a secret: {file.path}" for file in files if SECRET in (file.content or b"")]
    problems += [] if refused == case.refused else [f"refused {refused}, expected {case.refused}"]
    if case.notes is not None and notes != case.notes:
        problems.append(f"noted {notes}, expected {case.notes}")
    problems += [] if paths == expected else [f"found {paths}, expected {expected}"]
    return problems + [
        f"no reason: {refusal}"
        for refusal in (*result.notes, *result.refusals)
        if not is_good_reason(refusal)
    ]


def is_good_reason(refusal) -> bool:
    """Return whether the reason is a sentence and reason and path are printable."""
    return len(refusal.reason) > 15 and (refusal.path + refusal.reason).isprintable()


def run(case: Case, way: str, stage: Stage) -> DiscoveryResult:
    more: dict[str, Any] = {"clock": case.clock()} if case.clock else {}
    more |= {"allow_hard_links": True} if case.allow_hard_links else {}
    if way == "tree":
        return stage.tree(case.harness, caps=case.caps, folder=case.folder, **more)
    working_directory = case.working_directory.replace("INSIDE", str(stage.inside)).replace(
        "OUTSIDE", str(stage.outside)
    )
    return stage.up(working_directory, case.harness, caps=case.caps, folder=case.folder, **more)
