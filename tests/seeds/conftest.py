"""The fixture of the seed tests: the product with keys and a folder."""

from pathlib import Path
from typing import Any

import pytest

from personas.models import Workspace
from tests.api_client import Api
from tests.seeds.product import Product


@pytest.fixture
def product(workspace: Workspace, admin: Api, bot: Api, tmp_path: Path, settings: Any) -> Product:
    settings.DRAMATIS_SOURCE_ROOTS = [str(tmp_path)]
    return Product(workspace, admin, bot, tmp_path)
