"""Installations of tests are shared, and repeated only if they have to be."""

from pathlib import Path

import pytest

from tests.installs import install_once


class Installation:
    """Counts how often it is installed, and can fail."""

    def __init__(self) -> None:
        self.count, self.error = 0, ""

    def __call__(self, folder: Path) -> None:
        self.count += 1
        (folder / "package").write_text(str(self.count))
        if self.error:
            raise RuntimeError(self.error)


def test_a_second_use_installs_nothing(tmp_path: Path) -> None:
    lock, install = tmp_path / "lock.json", Installation()
    lock.write_text("{}")
    first = install_once("tools", [lock], install, root=tmp_path / "installs")
    assert install_once("tools", [lock], install, root=tmp_path / "installs") == first
    assert install.count == 1


def test_another_lock_file_replaces_the_installation(tmp_path: Path) -> None:
    lock, install = tmp_path / "lock.json", Installation()
    lock.write_text("{}")
    first = install_once("tools", [lock], install, root=tmp_path / "installs")
    lock.write_text('{"version": 2}')
    second = install_once("tools", [lock], install, root=tmp_path / "installs")
    assert (install.count, first.exists(), (second / "package").read_text()) == (2, False, "2")


def test_an_installation_that_failed_is_repeated(tmp_path: Path) -> None:
    lock, install = tmp_path / "lock.json", Installation()
    lock.write_text("{}")
    install.error = "no registry"
    with pytest.raises(RuntimeError, match="no registry"):
        install_once("tools", [lock], install, root=tmp_path / "installs")
    install.error = ""
    folder = install_once("tools", [lock], install, root=tmp_path / "installs")
    assert (folder / "package").read_text() == "2"
