"""What a test does on a page with an explorer."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Page

WIDE, NARROW = 1280, 390


def part(page: Page, name: str) -> Any:
    return page.locator(f'[data-part="{name}"]')


def text(page: Page, name: str) -> str:
    return part(page, name).inner_text()


def changed_since(page: Page, action: Any) -> Any:
    """Do something and wait until the explorer has shown its effect."""
    before = page.locator(".explorer").get_attribute("data-ready")
    result = action()
    page.wait_for_selector(f'.explorer:not([data-ready="{before}"])')
    return result


def move_slider(page: Page, place: int) -> None:
    changed_since(page, lambda: part(page, "slider").fill(str(place)))


def readout(page: Page, side: str) -> dict[str, str]:
    fields = part(page, f"cell-{side}").locator("[data-field]")
    return {field.get_attribute("data-field"): field.inner_text() for field in fields.all()}


def picture(page: Page, side: str) -> str:
    return part(page, f"canvas-{side}").evaluate("canvas => canvas.toDataURL()")
