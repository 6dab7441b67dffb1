"""Pages and lists are compressed; prompts, records with an ETag, exports and account pages are not."""

import gzip
import json
import re

import pytest
from django.test import Client

from tests.api_client import admin, bot, key_for  # noqa: F401  # fixtures
from tests.factories import make_memory
from tests.project.deployment.production_settings import COMPLETE, settings_under
from tests.prompts.serving.fetch_stage import both_entry_points, send_fetch
from tests.prompts.serving.serving_stage import make_stage

pytestmark = pytest.mark.django_db
GZIP = {"Accept-Encoding": "gzip, deflate, br"}


def vary_of(response):
    return {name.strip() for name in response.get("Vary", "").split(",")}


def test_a_page_is_compressed_for_browsers_that_accept_gzip(as_alice, workspace):
    path = f"/w/{workspace.slug}/agents/"
    plain, compressed = as_alice.get(path), as_alice.get(path, headers=GZIP)
    assert "Content-Encoding" not in plain
    assert compressed["Content-Encoding"] == "gzip"
    assert len(compressed.content) < len(plain.content) / 2
    assert int(compressed["Content-Length"]) == len(compressed.content)
    assert b"</html>" in gzip.decompress(compressed.content)
    for response in (plain, compressed):
        assert {"Accept-Encoding", "Cookie"} <= vary_of(response)
        assert "no-store" in response["Cache-Control"]


@pytest.mark.slow
def test_the_length_of_a_compressed_page_is_random_and_its_token_is_masked(as_alice, workspace):
    """Otherwise the length would reveal a secret in the page (BREACH)."""
    pages = [as_alice.get(f"/w/{workspace.slug}/agents/new/", headers=GZIP).content for _ in range(12)]
    token = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')
    assert len({len(page) for page in pages}) > 3
    assert len({token.findall(gzip.decompress(page))[0] for page in pages}) == len(pages)


def test_account_pages_are_not_compressed_because_they_show_secrets(client):
    response = client.get("/accounts/login/", headers=GZIP)
    assert len(response.content) > 200
    assert "Content-Encoding" not in response


@pytest.mark.slow
def test_a_list_of_the_api_is_compressed(admin, workspace):  # noqa: F811  # fixture
    for number in range(20):
        make_memory(workspace, f"Ship {number} lies at berth {number % 7}.")
    plain, compressed = admin.get("memories"), admin.get("memories", **GZIP)
    assert compressed["Content-Encoding"] == "gzip"
    assert json.loads(gzip.decompress(compressed.content)) == plain.json()
    assert "Accept-Encoding" in vary_of(plain) & vary_of(compressed)


def test_a_record_keeps_its_strong_etag_which_if_match_accepts(admin, workspace):  # noqa: F811  # fixture
    """GZipMiddleware would make the ETag weak, and a weak one never matches."""
    memory = make_memory(workspace, "The tide is low at six. " * 30)
    response = admin.get(f"memories/{memory.pk}", **GZIP)
    assert "Content-Encoding" not in response
    assert response["ETag"].startswith(f'"{memory.revision}.')
    edited = admin.call(
        "PATCH", f"memories/{memory.pk}", {"text": "The tide is high."}, If_Match=response["ETag"], **GZIP
    )
    assert edited.status_code == 200
    assert edited["ETag"] == f'"{memory.revision + 1}"'


@pytest.mark.usefixtures("stopped_clock")
@both_entry_points
def test_a_prompt_for_a_bot_is_not_changed(workspace, entry_point):
    stage = make_stage(workspace)
    stage.edit("Be brief and exact. " * 50)
    plain = send_fetch(entry_point, stage)
    accepting = send_fetch(entry_point, stage, ACCEPT_ENCODING="gzip")
    for name in ("ETag", "Vary"):
        assert accepting.headers[name] == plain.headers[name]
    assert "Content-Encoding" not in accepting.headers
    assert json.loads(accepting.body)["text"] == json.loads(plain.body)["text"]


def test_a_rendered_prompt_is_not_compressed(bot, workspace):  # noqa: F811  # fixture
    stage = make_stage(workspace)
    stage.edit("Be brief and exact. " * 50)
    response = bot.post("agents/pilot/channels/deck/prompt:render", {"append": "Be brief."}, **GZIP)
    assert response.status_code == 200
    assert len(response.content) > 200
    assert "Content-Encoding" not in response


def test_a_streamed_export_is_not_compressed(as_alice, workspace):
    response = as_alice.get(f"/w/{workspace.slug}/audit/export/?format=jsonl", headers=GZIP)
    assert response.streaming
    assert "Content-Encoding" not in response
    # Read to the end: the cursor of an abandoned export would be closed in the middle of another test.
    assert list(response.streaming_content)


@pytest.mark.slow
def test_the_api_reference_is_revalidated_by_its_weak_etag():
    client = Client()
    first = client.get("/api/v1/docs/", headers=GZIP)
    assert first["Content-Encoding"] == "gzip"
    assert first["ETag"].startswith('W/"')
    second = client.get("/api/v1/docs/", headers=GZIP | {"If-None-Match": first["ETag"]})
    assert second.status_code == 304


@pytest.mark.slow
def test_static_files_of_production_are_compressed_by_the_build():
    storage = settings_under(COMPLETE, "STORAGES")["STORAGES"]["staticfiles"]["BACKEND"]
    assert storage == "whitenoise.storage.CompressedManifestStaticFilesStorage"
