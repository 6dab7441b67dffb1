"""When to ask again, and how long to wait before."""

import random

from dramatis_client.answers import Answer
from dramatis_client.effects import Lost, Outcome, Pause, Plan, Send
from dramatis_client.problems import Unreachable
from dramatis_client.requests import Request

FIRST_WAIT = 0.25
# Whoever is told to wait longer than this should hear of it rather than hang.
LONGEST_WAIT = 30.0
PASSING = frozenset({429, 502, 503, 504})


def asked(request: Request, attempts: int) -> Plan[Answer]:
    """The answer, asked for again while there is hope; Unreachable when there is none at all."""
    for attempt in range(attempts):
        outcome: Outcome = yield Send(request)
        wait = wait_after(outcome, attempt)
        if wait is None or attempt == attempts - 1:
            break
        yield Pause(wait)
    if isinstance(outcome, Lost):
        raise Unreachable(f"There is no answer from the server: {outcome.why}.") from outcome.why
    return outcome


def wait_after(outcome: Outcome, attempt: int) -> float | None:
    """Seconds until another try is worth it; None when it is not."""
    # Spread, so that many bots do not come back in one moment.
    backoff: float = FIRST_WAIT * 2**attempt * random.uniform(0.5, 1.5)  # noqa: S311  # no secret
    if isinstance(outcome, Lost):
        return backoff
    if outcome.status not in PASSING and not is_still_running(outcome):
        return None
    wait = max(backoff, outcome.retry_after or 0.0)
    return wait if wait <= LONGEST_WAIT else None


def is_still_running(answer: Answer) -> bool:
    """An earlier try of ours, whose answer was lost, is still being carried out."""
    problem = answer.problem() if answer.status == 409 else None
    return problem is not None and problem.code == "in_progress"
