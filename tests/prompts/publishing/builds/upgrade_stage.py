"""Shared helpers of the upgrade tests: prompts built by an older compiler."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from personas.models import Agent, Workspace
from prompts.assembly.layouts import LAYOUTS
from prompts.models import PromptVersion
from prompts.publishing.builds import compiler, sweep
from prompts.publishing.builds.sweep import request_compiler_rebuilds
from prompts.publishing.provenance.causes import describe_causes
from prompts.publishing.versions.selectors import get_version_text
from tests.factories import make_agent, make_channel, make_soul


def latest(agent: Agent) -> PromptVersion:
    return PromptVersion.unscoped.filter(prompt__agent=agent).latest("number")


def why(agent: Agent) -> str:
    """Return the causes of the latest version as its page shows them."""
    version = latest(agent)
    [causes] = describe_causes(version.workspace_id, [version.causes])
    return "; ".join(map(str, causes))


@contextmanager
def older_compiler(monkeypatch: pytest.MonkeyPatch, *, changes_text: bool) -> Iterator[None]:
    """Simulate an older compiler: another code digest and, with `changes_text`, another text."""
    with monkeypatch.context() as before:
        before.setattr(compiler, "get_compiler_digest", lambda: "older")
        before.setattr(sweep, "get_compiler_digest", lambda: "older")
        if changes_text:
            now = LAYOUTS["dramatis"]
            kept = tuple(part for part in now.parts if part.name != "soul")
            before.setitem(LAYOUTS, "dramatis", replace(now, parts=kept))
        yield


def make_upgraded(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Agent:
    """Create an agent built by an older compiler with another text, after that compiler's sweep."""
    with older_compiler(monkeypatch, changes_text=True):
        channel = make_channel(workspace, "deck")
        soul = make_soul(workspace, text="Be brave.")
        agent = make_agent(workspace, "pilot", soul=soul, channels=[channel])
        assert request_compiler_rebuilds() == []
    assert latest(agent).compiler == "older"
    assert "Be brave." not in get_version_text(latest(agent))
    return agent
