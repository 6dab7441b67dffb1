"""Every call as a plan: what to ask and what to make of it, with no thread, task or socket."""

import time
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from dramatis_client import requests
from dramatis_client.answers import Answer
from dramatis_client.copies import Name, moment
from dramatis_client.disk import CopyFiles
from dramatis_client.effects import Plan
from dramatis_client.keeping import BAD_KEY, Keeper
from dramatis_client.problems import Problem, Unreachable
from dramatis_client.prompts import Prompt, read_prompt
from dramatis_client.records import Memory, Skill
from dramatis_client.requests import Request, segment
from dramatis_client.retrying import asked

Files = Mapping[str, str] | Iterable[tuple[str, str]]
PRODUCTION = "production"
T = TypeVar("T")


class Core:
    """What both clients know; a client only carries the plans out."""

    def __init__(
        self,
        url: str,
        key: str,
        cache_dir: str | Path | None,
        attempts: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not key.strip():
            raise ValueError("A key is needed.")
        if attempts < 1:
            raise ValueError("At least one attempt is needed.")
        self.url = requests.server_address(url)
        files = (
            CopyFiles(Path(cache_dir).expanduser(), self.url, key.strip()) if cache_dir is not None else None
        )
        self.headers = {
            "Accept": requests.JSON_TYPE,
            "Authorization": f"Bearer {key.strip()}",
            "User-Agent": "dramatis-client/0.1.0",
        }
        self.attempts = attempts
        self.clock = clock
        self.keeper = Keeper(files, attempts, clock)

    def prompt(self, agent: str, channel: str, label: str) -> Plan[Prompt]:
        return self.keeper.prompt(Name(agent, channel, label))

    def render(self, agent: str, channel: str, label: str, facts: Mapping[str, Any]) -> Plan[Prompt]:
        body = {"channel": channel, "label": label, **facts}
        answer = yield from self.call(requests.post(f"agents/{segment(agent)}/prompt:render", body))
        return read_prompt(answer.content, answer.headers.get("etag", ""), moment(self.clock()))

    def remember(self, text: str, agent: str | None, facts: Mapping[str, Any]) -> Plan[Memory]:
        body = {"text": text, "agent": agent, **facts}
        answer = yield from self.call(requests.post("memories", body))
        return read_as(Memory.read, answer)

    def tick(self, task: int, step: int, is_done: bool) -> Plan[dict[str, Any]]:
        path = f"tasks/{segment(task)}/steps/{segment(step)}:tick"
        answer = yield from self.call(requests.post(path, {"is_done": is_done}))
        return answer.json()

    def skill(self, agent: str, name: str) -> Plan[Skill]:
        request = requests.get(f"agents/{segment(agent)}/skills/{segment(name)}")
        answer = yield from self.call(request)
        return read_as(Skill.read, answer)

    def report(self, prompt: Prompt, text: str | None, request_id: str) -> Plan[dict[str, Any]]:
        used = prompt.text if text is None else text
        body: dict[str, Any] = {
            "agent": prompt.agent,
            "channel": prompt.channel,
            "digest": sha256(used.encode()).hexdigest(),
            "ledger_id": prompt.ledger_id,
        }
        said = body | {"request_id": request_id} if request_id else body
        answer = yield from self.call(requests.post("prompts:report", said))
        return answer.json()

    def push(self, source: str, files: Files, is_complete: bool) -> Plan[dict[str, Any]]:
        pairs = files.items() if isinstance(files, Mapping) else files
        listed = [{"path": path, "text": text} for path, text in pairs]
        body = {"files": listed, "is_complete": is_complete}
        answer = yield from self.call(requests.post(f"sources/{segment(source)}/files:push", body))
        return answer.json()

    def replay(self, ledger_id: int) -> Plan[dict[str, Any]]:
        answer = yield from self.call(requests.get(f"ledger/{segment(ledger_id)}/replay"))
        said = answer.json()
        if sha256(str(said.get("text")).encode()).hexdigest() != said.get("recorded_digest"):
            raise Unreachable("These are not the words that were recorded: their digest does not fit.")
        return said

    def diff(self, digest: str, against: str) -> Plan[dict[str, Any]]:
        request = requests.get(f"prompt-versions/{segment(digest)}/diff", against=against)
        answer = yield from self.call(request)
        return answer.json()

    def call(self, request: Request) -> Plan[Answer]:
        """A good answer, or the problem raised; a key that is refused anywhere keeps no copies."""
        answer = yield from asked(request, self.attempts)
        if answer.is_good:
            return answer
        failure = answer.failure()
        if isinstance(failure, Problem) and failure.status == BAD_KEY:
            yield from self.keeper.forgotten()
        raise failure


def read_as(read: Callable[[Mapping[str, Any]], T], answer: Answer) -> T:
    try:
        return read(answer.json())
    except (KeyError, TypeError, ValueError) as error:
        raise Unreachable("The answer is not what was asked for.") from error
