"""The job whose page most tests of the dashboard open; a file with another world has its own."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Page

from tests.browser import opened
from tests.doubles.api import TinyApi
from tests.product.cli.served import TOKEN, one_job, served


@pytest.fixture
async def api() -> AsyncIterator[TinyApi]:
    """An API server with the job ml/train."""
    async with one_job() as tiny:
        yield tiny


@pytest.fixture
async def page(api: TinyApi) -> AsyncIterator[Page]:
    """The page of that job, in a browser."""
    async with served(api) as address, opened(f"{address}/#token={TOKEN}&job=ml/train") as page:
        yield page
