"""The fixtures of the seed tests: the product with keys, a folder, and the records of the module."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from functools import partial
from shutil import copytree
from typing import Any

import pytest
from django.test import Client, override_settings

from personas.actors import Actor
from personas.api_keys.format import ADMIN, BOT
from personas.api_keys.services import create_key
from tests.api_client import Api
from tests.factories import make_user, make_workspace
from tests.module_fixtures import put_back, rows_of_a_module
from tests.seeds.library import render_in_library
from tests.seeds.product import Bot, Product, run_commit_hooks
from tests.seeds.records import create_agents, render_by_rest
from tests.seeds.seed import Renderer

# What tests change in their copy of the product.
PRODUCT_STATE = ("workspace", "stored_tools", "sources", "settings")


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest,
    django_db_setup: None,
    django_db_blocker: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Product]:
    """The product with the agents of the module's `SEED`, and what its `create_records(product)` adds."""
    top = tmp_path_factory.mktemp("sources")
    (top / "files").mkdir()
    with rows_of_a_module(django_db_blocker), override_settings(DRAMATIS_SOURCE_ROOTS=[str(top)]):
        with django_db_blocker.unblock():
            alice = make_user("Alice")
            workspace = make_workspace("Harbour", owner=alice)
            admin, bot = [
                create_key(workspace, kind, {}, by=Actor.person(alice), kind=kind)[1] for kind in (ADMIN, BOT)
            ]
            product = Product(workspace, Api(admin, Client()), Bot(bot, Client()), top / "files")
            create_agents(product, request.module.SEED)
            if hasattr(request.module, "create_records"):
                request.module.create_records(product)
            run_commit_hooks()
        copytree(top / "files", top / "kept")
        yield product


@pytest.fixture
def product(stage: Product, db: None) -> Iterator[Product]:
    """The product of the module. After a test, its rows are rolled back and its files are removed."""
    own = {name: deepcopy(getattr(stage, name)) for name in PRODUCT_STATE}
    product = replace(stage, **own, has_written=False)
    yield product
    if product.has_written:
        put_back(stage.folder, stage.folder.parent / "kept")


@pytest.fixture
def library(request: pytest.FixtureRequest) -> Renderer:
    """Render prompts with the library alone. A test with values that the API rejects requests only this."""
    seed = request.module.SEED
    return partial(render_in_library, replace(seed, agents=dict(seed.agents)))


@pytest.fixture(params=["library", "rest"])
def render(request: pytest.FixtureRequest, product: Product, library: Renderer) -> Renderer:
    """Render prompts of the module's seed: a test runs once with the library alone and once by REST."""
    return library if request.param == "library" else partial(render_by_rest, product, request.module.SEED)
