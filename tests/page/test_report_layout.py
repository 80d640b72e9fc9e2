"""Reports in a real browser, as wide as a desk and as a phone: nothing leaves its card."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import lookalike as la
from support.cases.report_pages import edited, text_of

OUTSIDE = """() => {
  const found = [];
  for (const one of document.querySelectorAll(".badge, .tile b, .tile span, .id, h3, .typed")) {
    const card = one.closest("td, .file, .tile, .card, article");
    const style = getComputedStyle(card), outer = card.getBoundingClientRect();
    const inner = one.getBoundingClientRect();
    const right = outer.right - parseFloat(style.paddingRight);
    if (inner.width && (inner.right > right + 1 || inner.left < outer.left - 1))
      found.push([one.className, one.textContent, inner.right - right]);
  }
  return found;
}"""

HIDDEN = """() => {
  const found = [];
  for (const cell of document.querySelectorAll(".members .begin")) {
    const mark = cell.querySelector("ins, del, em");
    if (!mark) continue;
    const box = cell.getBoundingClientRect(), at = mark.getClientRects()[0];
    if (at.top >= box.bottom - 4) found.push(cell.textContent);
  }
  return found;
}"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("reports")
    rng = random.Random(5)
    rows = []
    for family in range(4):
        text = text_of(rng, 90)
        for words in range(0, 24, 3):  # chains: each like the one before
            rows.append({"id": f"a rather long id of family {family}/{words}", "text": text})
            text = edited(rng, text, 3)
    late = [f"word{at}" for at in range(300)]
    rows.append({"id": "late", "text": " ".join(late)})
    rows.append({"id": "late, less", "text": " ".join([*late[:250], *late[253:]])})
    found = [folder / "chains.html", folder / "topics.html", folder / "photos.html"]
    la.dedup(rows, text="text", threshold=0.5, grouping="components").report(found[0])
    la.cluster_documents(rows, 3, text="text").report(found[1])
    for at in range(2):
        noise = np.random.default_rng(at).integers(0, 256, (9, 12), np.uint8)
        image = Image.fromarray(noise).resize((240, 180))
        image.save(folder / f"{at} with a rather long name of a photograph.png")
        image.resize((60, 45)).save(folder / f"{at}.jpg")
    la.dedup(folder, kind="images", rotated=True).report(found[2])
    return found


@pytest.mark.parametrize("width", [1180, 640, 390, 320])
def test_nothing_leaves_its_card(width: int, browser: Any, reports: list[Path]) -> None:
    context = browser.new_context(viewport={"width": width, "height": 900})
    page = context.new_page()
    for report in reports:
        page.goto(report.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= width, report
        assert page.evaluate(OUTSIDE) == [], report
        assert page.evaluate(HIDDEN) == [], report
    page.goto(reports[0].as_uri())
    assert page.locator(".badge.low").count() and page.locator(".members del").count()
    context.close()
