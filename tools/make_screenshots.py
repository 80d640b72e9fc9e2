"""Make the screenshots of the documentation: `python tools/make_screenshots.py`.

The web page shows the example collection of `lookalike serve`, which is made from the
documentation of the Python installation. The report is that of `lookalike dedup` over the
docstrings of the standard library. Images and recordings are the drawn scenes and the composed
music of the benchmarks. Needs Playwright and Chromium, as the tests of the page do.
"""

from __future__ import annotations

import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import soundfile
from PIL import Image
from playwright.sync_api import sync_playwright

import lookalike as la

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.images.scenes import scene
from benchmarks.recordings.sounds import music

DOCS = Path(__file__).parent.parent / "docs"
LOOKALIKE = Path(sys.executable).parent / "lookalike"
SIZES = {"": (1200, 800), "-phone": (390, 994)}
"""Width and height of the window, by what is added to the name of a picture."""
COPIES = {"images": "copy.jpg", "recordings": "snippet.ogg"}
"""Files that are searched for, by the collection."""
COLORS, LARGEST = 128, 150_000
QUERY = (
    "Open the file that this path points to and return a file object, "
    "as the built-in function open() does."
)


def main() -> int:
    """Make all screenshots; return 1 if there is no browser."""
    browser = os.environ.get("LOOKALIKE_CHROMIUM") or shutil.which("chromium")
    if browser is None:
        print("Chromium is missing: install it, or set LOOKALIKE_CHROMIUM", file=sys.stderr)
        return 1
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        TemporaryDirectory() as folder,
        sync_playwright() as playwright,
        service() as address,
        service(make_files(Path(folder))) as of_files,
    ):
        report = make_report(Path(folder))
        chromium = playwright.chromium.launch(executable_path=browser, args=arguments)
        for suffix, (width, height) in SIZES.items():
            context = chromium.new_context(
                viewport={"width": width, "height": height}, reduced_motion="reduce"
            )
            context.set_default_timeout(120_000)
            page = context.new_page()
            for name, show in VIEWS.items():
                page.goto(address)
                page.wait_for_selector("#text")
                show(page)
                save(page, DOCS / "serving" / f"{name}{suffix}.png")
            for name, copy in COPIES.items():
                page.goto(f"{of_files}#/{name}/search")
                page.set_input_files("#file", Path(folder, copy))
                page.wait_for_selector(".match")
                save(page, DOCS / "serving" / f"{name}{suffix}.png")
            page.goto(report.as_uri())
            save(page, DOCS / "deduplicating" / f"report{suffix}.png")
            page.click("a:has-text('Largest groups')")
            save(page, DOCS / "deduplicating" / f"groups{suffix}.png")
    return 0


@contextmanager
def service(*places: Path) -> Iterator[str]:
    """Start a service, by default with the example collection, and return its address."""
    process = subprocess.Popen(
        [LOOKALIKE, "serve", *places, "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        lines = iter(process.stdout or [])
        yield next(found[0] for line in lines if (found := re.search(r"http://\S+/", line)))
    finally:
        process.terminate()
        process.wait(60)


def search(page: Any) -> None:
    """Search, and show the differing words of the first match."""
    page.fill("#text", QUERY)
    page.keyboard.press("Control+Enter")
    page.click("text=Show differences >> nth=0")
    page.wait_for_selector(".sides")
    page.evaluate("document.activeElement.blur()")


def groups(page: Any) -> None:
    """Show the largest groups of near-duplicates."""
    page.click("nav >> text=Groups")
    page.wait_for_selector("section.card")


def overview(page: Any) -> None:
    """Show the map."""
    page.click("nav >> text=Map")
    page.wait_for_selector(".atlas circle")


VIEWS: dict[str, Callable[[Any], None]] = {"search": search, "groups": groups, "map": overview}


def make_files(folder: Path) -> Path:
    """Make collections of images and recordings, and a copy to search for of each."""
    (folder / "data").mkdir()
    with la.open_collection(
        folder / "data" / "images.db", "images", signer=la.ImageHash(256)
    ) as docs:
        for number in range(24):
            made = io.BytesIO()
            scene(number, 600).save(made, "PNG")
            docs.add_file(f"scene {number}.png", made.getvalue())
    scene(3, 600).resize((300, 200)).save(folder / COPIES["images"], quality=50)
    signer = la.AudioHash()
    with la.open_collection(folder / "data" / "recordings.db", "recordings", signer=signer) as docs:
        for number in range(6):
            made = io.BytesIO()
            sound = music(number, 30 + 10 * number)
            soundfile.write(made, sound, 8000, format="FLAC")
            docs.add_file(f"piece {number}.flac", made.getvalue(), metadata={"year": 1980 + number})
            if number == 3:
                snippet = sound[24 * 8000 : 33 * 8000] / 2
    soundfile.write(folder / COPIES["recordings"], snippet, 8000)
    return folder / "data"


def make_report(folder: Path) -> Path:
    """Remove near-duplicates from the docstrings and return the path of the report."""
    rows = "".join(json.dumps(row) + "\n" for row in docstrings())
    (folder / "docstrings.jsonl").write_text(rows)
    command = "dedup docstrings.jsonl --threshold 0.6 -o unique.jsonl --report report.html --quiet"
    subprocess.run([LOOKALIKE, *command.split()], cwd=folder, check=True)
    return folder / "report.html"


def docstrings() -> list[dict[str, str]]:
    """Return the docstrings of functions in the standard library, with their names as ids."""
    found = {}
    for path in sorted(Path(sysconfig.get_path("stdlib")).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                text = ast.get_docstring(node) or ""
                if len(text.split()) >= 20:
                    found[f"{path.stem}.{node.name}:{node.lineno}"] = text
    return [{"id": id, "text": text} for id, text in found.items()]


def save(page: Any, path: Path) -> None:
    """Write what the window shows, with few colors."""
    path.parent.mkdir(exist_ok=True)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    picture.quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path.relative_to(DOCS)}: {size:,} bytes")
    if size > LARGEST:
        raise SystemExit(f"{path} is larger than {LARGEST:,} bytes")


if __name__ == "__main__":
    sys.exit(main())
