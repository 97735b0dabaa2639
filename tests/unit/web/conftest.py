"""One running server for all tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tests.fakes.model_server import ModelServer
from tests.fakes.runtime import Served, serving, write_home


@pytest.fixture(scope="package")
def model() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest_asyncio.fixture(scope="package", loop_scope="package")
async def served(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> AsyncIterator[Served]:
    home = write_home(tmp_path_factory.mktemp("web") / "home", model.url)
    async with serving(home) as running:
        yield running
