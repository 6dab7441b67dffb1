"""The fixtures of the seed tests: the product with keys, a folder, and the records of the module."""

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
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
from tests.seeds.product import Bot, Product, run_commit_hooks


@pytest.fixture(scope="module")
def stage(
    request: pytest.FixtureRequest,
    django_db_setup: None,
    django_db_blocker: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Product]:
    """The product with what `create_records(product)` of the module creates by REST, once per module."""
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
            request.module.create_records(product)
            run_commit_hooks()
        copytree(top / "files", top / "kept")
        yield product


@pytest.fixture
def product(stage: Product, db: None) -> Iterator[Product]:
    """The product of the module. After a test, its rows are rolled back and its files are removed."""
    workspace = deepcopy(stage.workspace)
    product = replace(stage, workspace=workspace, warnings=[], tools=[], has_written=False)
    yield product
    if product.has_written:
        put_back(stage.folder, stage.folder.parent / "kept")
