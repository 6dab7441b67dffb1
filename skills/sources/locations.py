"""Absolute paths on the machine of a bot: check, join and compare them as text.

The server cannot open these paths. They are POSIX paths or Windows paths with a drive letter.
"""

import re

from django.utils.translation import gettext

WINDOWS_PATTERN = re.compile(r"[A-Za-z]:[\\/]")
HOME = "~"


def is_absolute_path(path: str) -> bool:
    return path.startswith("/") or WINDOWS_PATTERN.match(path) is not None


def is_home_path(path: str) -> bool:
    return path == HOME or path.startswith(f"{HOME}/")


def split_names(path: str) -> list[str]:
    """Split an absolute path into names. The root of a POSIX path is an empty first name."""
    is_windows = WINDOWS_PATTERN.match(path) is not None
    names = path.replace("\\", "/").split("/") if is_windows else path.split("/")
    return [names[0].upper() if is_windows else names[0], *[name for name in names[1:] if name]]


def find_location_problem(location: str) -> str:
    """Return why this is not an absolute path, or an empty string. An empty location is valid."""
    if not location:
        return ""
    if not is_absolute_path(location):
        return gettext("Enter an absolute path, such as /home/user/project or C:\\Users\\user\\project.")
    if not location.isprintable() or (location.startswith("/") and "\\" in location):
        return gettext(
            "A path cannot contain unprintable characters. If it starts with /, it cannot contain \\ either."
        )
    if {".", ".."} & set(split_names(location)):
        return gettext("A path cannot contain folders named “.” or “..”.")
    return ""


def normalize_location(location: str) -> str:
    """Remove slashes at the end, except those of a root folder, and repeated slashes."""
    if not is_absolute_path(location):
        return location
    first, *names = split_names(location)
    separator = get_separator(location)
    return separator.join([first, *names]) if names else f"{first}{separator}"


def get_separator(location: str) -> str:
    """Return the separator that the path uses: a backslash only on Windows, if its first one is one."""
    match = WINDOWS_PATTERN.match(location)
    return match.group()[-1] if match else "/"


def join_location(location: str, *paths: str) -> str:
    """Join an absolute path and relative paths, which are written with slashes."""
    names = [name for path in paths for name in path.split("/") if name]
    if not names:
        return location
    separator = get_separator(location)
    return separator.join([location.rstrip(separator), *names])


def get_comparable_path(location: str) -> str:
    """Return an absolute path as text that is equal for equal folders and ends with a slash."""
    return "/".join([*split_names(location), ""]) if location else ""


def get_path_below(location: str, path: str) -> str | None:
    """Return the part of an absolute path below a location, with slashes; None if it is not below it.

    The result is empty for the location itself.
    """
    if not location or not is_absolute_path(path):
        return None
    above, names = split_names(location), split_names(path)
    return "/".join(names[len(above) :]) if names[: len(above)] == above else None
