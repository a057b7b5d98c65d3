"""A browser, and pages in it that must not complain."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.report.pages.explorer_page import WIDE

PATIENCE_MILLISECONDS = 120_000
expect.set_options(timeout=PATIENCE_MILLISECONDS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.fail("chromium is not installed, and the page is tested in a real browser: run make browser")
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not start for root, as in most containers; the pages are ours.
        browser = playwright.chromium.launch(
            executable_path=chromium, args=["--no-sandbox"], timeout=PATIENCE_MILLISECONDS
        )
        yield browser
        browser.close()


@pytest.fixture
def visit(browser: Browser) -> Iterator[Any]:
    """Opens pages; at the end of the test nothing may have gone wrong in any of them, nor left the machine."""
    contexts, troubles, requests = [], [], []

    def open_page(path: Path, view: str = "", width: int = WIDE, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MILLISECONDS)
        page.on("console", lambda message: troubles.append(message.text))
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(path.as_uri() + view)
        if page.locator(".explorer").count():
            page.wait_for_selector(".explorer[data-ready]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert not troubles
    assert not [url for url in requests if not url.startswith(("file:", "data:"))]
