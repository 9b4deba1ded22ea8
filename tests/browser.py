"""A real browser: Debian's chromium, driven by playwright.

Without it tests are skipped, and say so.
"""

import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from playwright.async_api import Page, async_playwright, expect

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not there: apt-get install chromium"
)
# It refuses to run as root in its sandbox.
ARGUMENTS = ["--no-sandbox"] if os.geteuid() == 0 else []
# Milliseconds that anything may take on a busy machine: a start, an action, and until it is seen.
PATIENCE = 180_000


@asynccontextmanager
async def opened(url: str, **context: Any) -> AsyncIterator[Page]:
    """Give the page behind a link; whatever its scripts complain of fails the test."""
    complaints: list[str] = []
    expect.set_options(timeout=PATIENCE)
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=CHROMIUM, args=ARGUMENTS, timeout=PATIENCE
        )
        try:
            tabs = await browser.new_context(**context)
            tabs.set_default_timeout(PATIENCE)
            page = await tabs.new_page()
            page.on("pageerror", lambda error: complaints.append(str(error)))
            page.on("dialog", lambda dialog: complaints.append(f"dialog: {dialog.message}"))
            page.on(
                "console",
                lambda said: (
                    complaints.append(said.text) if "Security Policy" in said.text else None
                ),
            )
            await page.goto(url)
            yield page
        finally:
            await browser.close()
    assert complaints == []
