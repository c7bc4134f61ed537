"""The playground in Chromium: Python's numbers, usable by keyboard, nothing on the console."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import playground_reference as reference
import pytest

MOST_BYTES = 1_000_000
MOST_SECONDS = 2.0
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


class Quiet(SimpleHTTPRequestHandler):
    """Files of the repository, without a line for each."""

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 (the base class's name)
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with ThreadingHTTPServer(
        ("127.0.0.1", 0), partial(Quiet, directory=str(reference.ROOT))
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Page:
    """A page of the playground with what went wrong on it, and what it asked for."""

    def __init__(self, browser: Any, address: str, hash_: str = "", **options: Any) -> None:
        options = {"viewport": DESK, "reduced_motion": "reduce", **options}
        self.tab = browser.new_context(**options).new_page()
        self.faults: list[str] = []
        self.asked: list[str] = []
        self.tab.on("console", lambda line: self.faults.append(f"{line.type}: {line.text}"))
        self.tab.on("pageerror", lambda error: self.faults.append(str(error)))
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.session = self.tab.context.new_cdp_session(self.tab)
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.tab.goto(f"{address}/docs/playground/#{hash_}")
        self.tab.wait_for_function("globalThis.playground && document.querySelector('.bar.first')")

    def text(self, selector: str) -> str:
        return self.tab.inner_text(selector)

    def metrics(self) -> list[dict[str, Any]]:
        return self.session.send("Performance.getMetrics")["metrics"]

    def close(self) -> None:
        self.tab.context.close()


@pytest.fixture
def open_page(browser, address) -> Iterator[Any]:
    """Open the page; whatever a test did on it, the console must have stayed empty."""
    pages: list[Page] = []

    def opened(hash_: str = "", **options: Any) -> Page:
        pages.append(Page(browser, address, hash_, **options))
        return pages[-1]

    yield opened
    for page in pages:
        page.close()
        assert page.faults == []


STEPPED = """async ([solver, steps, module]) => {
  const { Trace } = await import(module);
  const trace = new Trace(playground.runs[solver]);
  for (let step = 0; step < steps; step++) {
    document.getElementById("step").click();
    trace.record();
  }
  return trace.whole();
}"""


@pytest.mark.parametrize("number", [0, 3, 5, 8])
def test_fifty_steps_of_the_page_are_pythons(open_page, address, number):
    case = reference.CASES[number]
    page = open_page(case.hash)
    module = f"{address}/tests/playground/trace.mjs"
    found = page.tab.evaluate(STEPPED, [case.solver, reference.STEPS, module])
    last = found["rows"][-1]
    status = page.text("#status")
    assert f"Step {reference.STEPS}." in status
    assert f"{last['count']} " in status
    assert page.tab.text_content("#rose .count") == str(last["count"])
    reference.agree(found, case)


def test_the_page_is_light_and_quick_and_asks_for_nothing_from_elsewhere(open_page, address):
    page = open_page()
    assert all(url.startswith((address, "data:")) for url in page.asked)
    # its thread's own time, which does not depend on what else the machine does
    seconds = {part["name"]: part["value"] for part in page.metrics()}["ThreadTime"]
    assert seconds < MOST_SECONDS
    files = [path for path in reference.PLAYGROUND.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= MOST_BYTES


def test_everything_fits_the_width_in_either_scheme(open_page):
    page = open_page()
    page.tab.click("#step")
    for viewport in (DESK, PHONE):
        page.tab.set_viewport_size(viewport)
        assert page.tab.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
    shades = {}
    for scheme in ("light", "dark"):
        page.tab.emulate_media(color_scheme=scheme)
        colour = page.tab.evaluate("getComputedStyle(document.body).backgroundColor")
        shades[scheme] = sum(int(part) for part in colour.strip("rgb()").split(","))
    assert shades["dark"] < 200 < 600 < shades["light"]


def test_the_window_works_by_keyboard(open_page):
    page = open_page("seed=4")
    page.tab.focus("#play")
    page.tab.keyboard.press("Tab")
    page.tab.keyboard.press("Enter")
    page.tab.keyboard.press("s")
    assert "Step 2." in page.text("#status")
    page.tab.keyboard.press("r")
    assert "Nothing has been said yet." in page.text("#status")
    page.tab.focus("#damping")
    page.tab.keyboard.press("ArrowRight")
    assert page.text("#damping-value") == "0.55"
    assert "damping=0.55" in page.tab.evaluate("location.hash")
    page.tab.focus(".medallion[tabindex='0']")
    page.tab.keyboard.press("ArrowRight")
    assert page.tab.get_attribute(".medallion.selected", "aria-label").startswith("weight 3:")
    assert page.text(".watched") == "3"


def test_playing_stops_at_the_optimum_and_can_be_paused(open_page):
    page = open_page("seed=1")
    page.tab.click("#play")
    page.tab.wait_for_function("document.getElementById('play').textContent === 'Play'")
    counts = page.tab.evaluate(
        "Object.values(playground.runs).map((run) => [run.count, run.graph.optimum()])"
    )
    assert all(count == optimum for count, optimum in counts)
    page.tab.click("#play")
    assert page.text("#play") == "Pause"
    page.tab.click("#play")
    assert page.text("#play") == "Play"


def test_settings_can_be_turned_while_it_runs(open_page):
    page = open_page()
    for name, value in (("surveySamples", 2), ("beta", 1), ("samples", 7), ("damping", 0)):
        page.tab.click("#step")
        page.tab.evaluate(
            "([name, value]) => { const slider = document.getElementById(name);"
            "slider.value = value; slider.dispatchEvent(new Event('input')); }",
            [name, str(value)],
        )
    page.tab.click("#step")
    assert "Step 5." in page.text("#status")
    assert "settings were changed on the way" in page.tab.text_content("#python")
    for solver in ("bp", "s4p"):
        page.tab.check(f"input[name=solver][value={solver}]", force=True)
    page.tab.check("input[name=data][value=stained]", force=True)
    assert "Nothing has been said yet." in page.text("#status")


STROKES = {  # as shares of the pad
    1: [[(0.5, 0.15), (0.5, 0.85)]],
    7: [[(0.2, 0.2), (0.8, 0.2), (0.4, 0.85)]],
    0: [[(0.5, 0.1), (0.25, 0.3), (0.2, 0.6), (0.4, 0.9), (0.7, 0.8), (0.8, 0.4), (0.5, 0.1)]],
}


def test_drawn_digits_are_read(open_page):
    page = open_page(reduced_motion="reduce")  # a page that still scrolls moves the pad away
    for digit, strokes in STROKES.items():
        page.tab.click("#clear")
        assert page.text("#answer") == "?"
        box = page.tab.locator("#pad").bounding_box()
        for stroke in strokes:
            first, *others = [
                (box["x"] + x * box["width"], box["y"] + y * box["width"]) for x, y in stroke
            ]
            page.tab.mouse.move(*first)
            page.tab.mouse.down()
            for place in others:
                page.tab.mouse.move(*place, steps=5)
            page.tab.mouse.up()
        assert page.text("#answer") == str(digit)
        votes = page.tab.locator("#votes span").all_inner_texts()
        assert len(votes) == 100
        assert f"{votes.count(str(digit))} of 100 networks say {digit}." in page.text("#sure")


def test_bits_can_be_set_by_keyboard(open_page):
    page = open_page()
    page.tab.click("#clear")
    page.tab.focus("#bits")
    for _ in range(6):
        page.tab.keyboard.press("Space")
        page.tab.keyboard.press("ArrowUp")
    assert page.text("#answer") != "?"
    page.tab.click("#hard")
    assert "networks say" in page.text("#sure")
