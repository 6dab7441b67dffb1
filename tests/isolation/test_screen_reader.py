"""Accessibility of every workspace page: distinct names, heading order, table captions."""

from operator import attrgetter

import pytest

from tests.factories import make_agent, make_memory, make_soul
from tests.isolation.matrix import Cell, address, inside_routes
from tests.isolation.turns import pages_in_turn, turn_of_this_run
from tests.screen_reader import find_problems

pytestmark = pytest.mark.django_db

PLANTED = {
    "two links of one name": '<a href="/a">Edit</a><a href="/b">Edit</a>',
    "two buttons of one name": '<form action="/a"><button type="submit">Archive</button></form>'
    '<form action="/b"><button type="submit">Archive</button></form>',
    "a button without a name": '<button type="button"><svg aria-hidden="true"></svg></button>',
    "a field without a label": '<input name="q">',
    "a heading left out": "<h3>Deep</h3>",
    "a second h1": "<h1>Again</h1>",
    "a table without a caption": '<table><tr><th scope="col">A</th></tr></table>',
    "a head without a scope": "<table><caption>T</caption><tr><th>A</th></tr></table>",
    "a stop without a name": '<pre tabindex="0">text</pre>',
    "an id twice": '<p id="a"></p><p id="a"></p>',
    "a pointer at nothing": '<input aria-label="A" aria-describedby="gone">',
    "two that want the focus": '<p tabindex="-1" autofocus></p><p tabindex="-1" autofocus></p>',
}


def get_page(client, path):
    """The HTML of a page, or an empty string if the response is not a page."""
    answer = client.get(path)
    is_page = answer.status_code == 200 and answer["Content-Type"].startswith("text/html")
    # A streamed file is read completely, or its cursor would be closed during another query.
    body = b"".join(answer.streaming_content) if answer.streaming else answer.content
    text = body.decode() if is_page else ""
    return text if "<html" in text else ""


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_all", [pytest.param(False, id="some"), pytest.param(True, id="all", marks=pytest.mark.hard)]
)
def test_every_page_is_accessible(is_all, stage):
    requester, pages, problems = stage.requesters["owner"], 0, []
    routes = inside_routes()
    turn = turn_of_this_run()
    chosen = routes if is_all else pages_in_turn(routes, turn, attrgetter("name"))[turn % 6 :: 6]
    for route in chosen:
        path = address(stage, Cell(requester, route, "GET", "own"))
        page = get_page(requester.client, path)
        pages += bool(page)
        problems += [f"{path}: {problem}" for problem in find_problems(page)] if page else []
    # Some routes return a redirect, a file or a fragment; the number of chosen routes depends on the seed.
    assert pages > (60 if is_all else 3)
    assert not problems, "\n".join(problems)


def test_errors_of_a_form_are_tied_to_their_fields_and_take_the_focus(as_bob, workspace):
    page = as_bob.post(f"/w/{workspace.slug}/souls/new/", {"name": "", "text": ""}).content.decode()
    assert not find_problems(page)
    assert 'role="alert" tabindex="-1" autofocus' in page
    assert 'aria-describedby="id_name_error"' in page.replace("id_name_helptext ", "")


def test_a_filtered_list_announces_the_number_of_matches(as_bob, workspace):
    for label in ("Calm", "Quick"):
        make_soul(workspace, label)
    base = f"/w/{workspace.slug}/souls/"
    assert "data-tell>1 row matches the filters." in as_bob.get(base, {"q": "quick"}).content.decode()
    assert "data-tell>0 rows match the filters." in as_bob.get(base, {"q": "zzz"}).content.decode()
    assert "data-tell" not in as_bob.get(base).content.decode()


def test_row_buttons_name_their_record(as_alice, workspace):
    for text in ("Likes tea.", "Likes jam."):
        make_memory(workspace, text, status="proposed")
    for page in ("memories/", "memories/board/"):
        html = as_alice.get(f"/w/{workspace.slug}/{page}").content.decode()
        assert not find_problems(html)
        assert 'Approve<span class="sr-only"> “Likes tea.”</span>' in html


def test_an_empty_list_links_to_the_next_step(as_bob, workspace):
    make_agent(workspace, "pilot")
    for page in ("tools/", "channels/", "versions/"):
        html = as_bob.get(f"/w/{workspace.slug}/agents/pilot/{page}").content.decode()
        empty = html.split('class="dr-empty"')[1]
        assert f'href="/w/{workspace.slug}/agents/pilot/edit/' in empty.split("</div>\n")[1], page


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_accessibility_fault_is_found(fault):
    page = "<main><h1>Page</h1>{}</main>"
    assert not find_problems(page.format('<h2>Part</h2><a href="/a">Edit</a>'))
    assert len(find_problems(page.format(PLANTED[fault]))) == 1, fault
