"""Types of the facts that a call may give to `render`."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict


class RenderFacts(TypedDict, total=False):
    """Facts of one call. The server's documentation describes each of them."""

    now: datetime | str
    timezone: str
    host: Mapping[str, Any]
    sandbox: Mapping[str, Any]
    session: Mapping[str, str]
    task: int | Mapping[str, Any]
    is_background: bool
    previous_error: Mapping[str, str]
    tools: Sequence[str | Mapping[str, Any]]
    append: str | Sequence[str]
    replace: str
    messages: Sequence[Mapping[str, str]]
    data: Mapping[str, Any]
    signature: str
    hidden: Sequence[str]
    mission: str
    limits: Mapping[str, Any]
    working_directory: str
    directories: Sequence[str]
    mode: Literal["agent", "single_turn"]
    entry: Literal["full", "simple", "minimal"]
    native_tools: bool
