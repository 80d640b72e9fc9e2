"""A real browser for these tests: Debian's Chromium, driven by Playwright, and a real service."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import lookalike as la

NAME = "notes"
HOSTILE = '<img src=x onerror="window.harmed=1"><script>window.harmed=1</script>\u202egnp.exe'
HOW_TO_GET_CHROMIUM = (
    "there is no Chromium, which the page is tested in: `apt-get install chromium` as root, or set "
    "LOOKALIKE_CHROMIUM to the program"
)


def chromium() -> str | None:
    """Return the browser's program, if there is one."""
    return os.environ.get("LOOKALIKE_CHROMIUM") or shutil.which("chromium")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The browser; skipped without one, unless it was said to be needed.

    No longer than these tests last: Playwright has an event loop in this thread, beside which no
    other can be run.
    """
    program = chromium()
    if program is None:
        if os.environ.get("LOOKALIKE_BROWSER") == "needed":
            pytest.fail(HOW_TO_GET_CHROMIUM)
        pytest.skip(HOW_TO_GET_CHROMIUM)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=120_000)  # a busy machine is slow, and what is right does not wait
    with sync_playwright() as playwright:
        # No sandbox where the tests run as root: Chromium refuses to start with one.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        yield playwright.chromium.launch(executable_path=program, args=arguments)


def texts() -> dict[str, str]:
    """Three families of near-duplicates, some strangers, and one that means harm."""
    words = [f"w{number}" for number in range(400)]
    found = {}
    for begin, (family, size) in zip((0, 100, 200), (("a", 6), ("b", 4), ("c", 3)), strict=True):
        base = words[begin : begin + 60]
        for number in range(size):
            changed = [*base[: 10 * number], f"changed{family}{number}", *base[10 * number + 1 :]]
            found[f"{family}/{number}"] = " ".join(changed)
    for number in range(30):
        found[f"stranger {number}"] = " ".join(f"s{number}x{place}" for place in range(40))
    found[HOSTILE] = f"{HOSTILE} is what this document says, and nothing of it may run"
    return found


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A collection to look at."""
    path = tmp_path / "notes.db"
    documents = texts()
    with la.open_collection(path, NAME, signer=la.SimHash(bits=128), durable=False) as docs:
        docs.upsert(
            list(documents),
            list(documents.values()),
            metadata=[{"family": id[0], "place": place} for place, id in enumerate(documents)],
        )
    return path


Serve = Callable[..., str]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Starts services, each until the test has ended, and returns their addresses."""
    with services(tmp_path) as start:
        yield start


@contextmanager
def services(folder: Path) -> Iterator[Serve]:
    """Starts services that run until the end of the block, with temporary files in a folder.

    `first` is done in the process before anything else.
    """
    running = []

    def start(place: Path, *options: str, first: str = "") -> str:
        program = f"{first}\nfrom lookalike.cli import main\nraise SystemExit(main())"
        variables = {"TMPDIR": str(folder), "PYTHONPATH": str(Path(__file__).parents[1])}
        process = subprocess.Popen(
            [sys.executable, "-c", program, "serve", str(place), "--port", "0",
             "--log-level", "error", *options],
            stdout=subprocess.PIPE, text=True, env={**os.environ, **variables},
        )  # fmt: skip
        running.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        match = re.search(r"at (http://\S+/)", line)
        assert match, line
        return match[1]

    yield start
    for process in running:
        process.send_signal(signal.SIGTERM)
    for process in running:
        process.wait(120)
        assert process.stdout is not None
        process.stdout.close()


@pytest.fixture
def open_page(browser: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages; they may ask nobody but the service, and nothing in them may fail unheard."""
    contexts, wrong = [], []

    def opened(address: str, **options: Any) -> Any:
        # Nothing moves: what is measured is where it will be.
        usual = {"viewport": {"width": 1100, "height": 800}, "reduced_motion": "reduce"}
        context = browser.new_context(**{**usual, **options})
        context.set_default_timeout(120_000)
        contexts.append(context)
        page = context.new_page()

        def asked(request: Any) -> None:
            if not request.url.startswith((address, "data:")):
                wrong.append(f"asked {request.url}")

        def heard(message: Any) -> None:
            # What the service refuses is shown on the page, and Chromium counts it as an error.
            if message.type == "error" and "Failed to load resource" not in message.text:
                wrong.append(message.text)

        page.on("request", asked)
        page.on("console", heard)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert not wrong
