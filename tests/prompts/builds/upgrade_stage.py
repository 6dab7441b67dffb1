"""Prompts as an older compiler built them; what the tests of upgrades share."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from personas.models import Agent, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.builds import compiler, sweep
from prompts.builds.sweep import request_compiler_rebuilds
from prompts.models import PromptVersion
from prompts.provenance.causes import describe_causes
from prompts.versions.selectors import get_version_text
from tests.factories import make_agent, make_channel, make_soul


def latest(agent: Agent) -> PromptVersion:
    return PromptVersion.unscoped.filter(prompt__agent=agent).latest("number")


def why(agent: Agent) -> str:
    """The causes of the latest version, in the words of its page."""
    version = latest(agent)
    [causes] = describe_causes(version.workspace_id, [version.causes])
    return "; ".join(map(str, causes))


@contextmanager
def older_compiler(monkeypatch: pytest.MonkeyPatch, *, words: bool) -> Iterator[None]:
    """The product before an upgrade: another digest of its code and, if asked for, other words."""
    with monkeypatch.context() as before:
        before.setattr(compiler, "get_compiler_digest", lambda: "older")
        before.setattr(sweep, "get_compiler_digest", lambda: "older")
        if words:
            now = LAYOUTS["dramatis"]
            kept = tuple(part for part in now.parts if part.name != "soul")
            before.setitem(LAYOUTS, "dramatis", replace(now, parts=kept))
        yield


def make_upgraded(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Built by an older compiler in other words; the sweep of that time has seen it."""
    with older_compiler(monkeypatch, words=True):
        channel = make_channel(workspace, "deck")
        soul = make_soul(workspace, text="Be brave.")
        agent = make_agent(workspace, "pilot", soul=soul, channels=[channel])
        assert request_compiler_rebuilds() == []
    assert latest(agent).compiler == "older"
    assert "Be brave." not in get_version_text(latest(agent))
    return agent
