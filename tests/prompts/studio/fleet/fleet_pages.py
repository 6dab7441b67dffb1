"""Helpers that request the fleet page and read its context."""

from typing import Any

from django.test import Client

HOME = "/w/harbour/"
BULK = "/w/harbour/fleet/bulk/"
MOST_QUERIES = 15


def get_fleet_page(client: Client, query: str = "") -> Any:
    response = client.get(f"{HOME}{query}")
    assert response.status_code == 200
    return response


def get_html(response: Any) -> str:
    return str(response.content.decode())


def list_agent_names(response: Any) -> list[str]:
    """List the agents on the page in their order."""
    return [row.agent.name for row in response.context["rows"]] if "rows" in response.context else []


def get_agent_names(client: Client, query: str = "") -> list[str]:
    return list_agent_names(get_fleet_page(client, query))


def find_cell(response: Any, slug: str, channel: str = "deck") -> Any:
    [row] = [row for row in response.context["rows"] if row.agent.slug == slug]
    return next(cell for column, cell in row.cells if column.slug == channel)


def list_flag_labels(response: Any, slug: str, channel: str = "deck") -> list[str]:
    return [flag.label for flag in find_cell(response, slug, channel).flags]


def get_messages_text(response: Any) -> str:
    return " ".join(str(message) for message in response.context["messages"])


def post_bulk_action(client: Client, action: str, *prompts: Any, follow: bool = True, **extra: Any) -> Any:
    data = {"verb": action, "chosen": [getattr(prompt, "pk", prompt) for prompt in prompts]} | extra
    return client.post(BULK, data, follow=follow)
