"""How tests read the fleet: one look at the page, several questions to it."""

from typing import Any

from django.test import Client

HOME = "/w/harbour/"
BULK = "/w/harbour/fleet/bulk/"
MOST_QUERIES = 12


def look(client: Client, asked: str = "") -> Any:
    answer = client.get(f"{HOME}{asked}")
    assert answer.status_code == 200
    return answer


def words_of(answer: Any) -> str:
    return str(answer.content.decode())


def names_on(answer: Any) -> list[str]:
    """The agents on the page, in their order."""
    return [row.agent.name for row in answer.context["rows"]] if "rows" in answer.context else []


def shown(client: Client, asked: str = "") -> list[str]:
    return names_on(look(client, asked))


def cell(answer: Any, slug: str, channel: str = "deck") -> Any:
    [row] = [row for row in answer.context["rows"] if row.agent.slug == slug]
    return next(cell for place, cell in row.cells if place.slug == channel)


def flags(answer: Any, slug: str, channel: str = "deck") -> list[str]:
    return [flag.label for flag in cell(answer, slug, channel).flags]


def told(answer: Any) -> str:
    return " ".join(str(message) for message in answer.context["messages"])


def bulk(client: Client, verb: str, *prompts: Any, follow: bool = True, **more: Any) -> Any:
    data = {"verb": verb, "chosen": [getattr(one, "pk", one) for one in prompts]} | more
    return client.post(BULK, data, follow=follow)
