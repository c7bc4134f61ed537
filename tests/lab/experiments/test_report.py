"""The page in a browser: nothing wider than the screen, all drawings there, light and dark."""

import json
import shutil
import subprocess

import pytest

from vitrail.lab.experiments.claims import Claim, Verdict
from vitrail.lab.experiments.experiment import Experiment, ResultTable
from vitrail.lab.experiments.report import write_report
from vitrail.lab.experiments.reproduce import FigurePlan, Result
from vitrail.lab.plots import Line, Panel, line_figure, save

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
in_browser = pytest.mark.skipif(BROWSER is None, reason="no Chromium installed")

# measured in the page itself and left in its title, which the browser prints with the document
PROBE = """<script>
addEventListener("load", () => {
  const shown = [...document.images].filter(i => i.offsetParent !== null);
  const style = getComputedStyle(document.body);
  document.title = "PROBE" + JSON.stringify({
    wide: document.documentElement.scrollWidth, screen: innerWidth,
    images: shown.length, loaded: shown.every(i => i.naturalWidth > 0),
    classes: shown.map(i => i.className), ink: style.color, ground: style.backgroundColor,
    outside: performance.getEntriesByType("resource").filter(e => !/^data:/.test(e.name)).length
  }) + "END";
});
</script>"""


def result(folder, name, quick=False):
    line = Line("SBP", [1.0, 2.0, 3.0], [0.9, 0.8, 0.7], ([0.8, 0.7, 0.6], [1.0, 0.9, 0.8]))
    panels = [Panel(f"panel {n}", "α = M/N", "accuracy", (line,)) for n in range(4)]
    wide, narrow = (line_figure(panels, columns) for columns in (4, 1))
    experiment = Experiment(
        name=name,
        title="A title with <angle> & ampersand",
        about="About. " * 40,
        full={"seed": 1},
        quick={"seed": 1},
        units=lambda config: [],
        draw=lambda config, rows, columns: wide,
        tables=lambda config, rows: [],
        claims=lambda config, rows: [],
    )
    verdicts = [Claim(f"Claim {v}. " * 8, "Measured. " * 20, v) for v in Verdict]
    columns = tuple(f"column number {n}" for n in range(12))
    return Result(
        FigurePlan(experiment, quick, ()),
        [],
        tuple(verdicts),
        (ResultTable("Wide table", columns, (tuple("0.123456789" for _ in columns),)),),
        12.0,
        save(wide, folder / f"{name}.svg"),
        save(narrow, folder / f"{name}-narrow.svg"),
    )


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    path = write_report([result(folder, "fig1"), result(folder, "fig2")], folder / "report.html")
    probed = path.with_name("probed.html")
    text = path.read_text(encoding="utf-8").replace("<details>", "<details open>")
    probed.write_text(text.replace("</body>", PROBE + "</body>"), encoding="utf-8")
    return probed


def look(path, width, dark, tmp_path):
    """What the page says about itself at a width, in the light or in the dark."""
    assert BROWSER is not None
    # a window of headless Chromium is 500 pixels wide at the least, so the page goes into a frame
    frame = path.with_name(f"frame-{width}-{dark}.html")
    frame.write_text(
        f'<iframe src="{path.name}" style="width:{width}px;height:900px;border:0"></iframe>'
        '<script>addEventListener("load", () => setTimeout(() => {'
        "document.title = document.querySelector('iframe').contentDocument.title}, 50))</script>",
        encoding="utf-8",
    )
    outcome = subprocess.run(
        [
            BROWSER,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--allow-file-access-from-files",
            f"--user-data-dir={tmp_path}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            f"--window-size={max(500, width)},900",
            "--virtual-time-budget=5000",
            "--dump-dom",
            frame.as_uri(),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    found = outcome.stdout.split("PROBE")[-1].split("END")[0]
    return json.loads(found.replace("&quot;", '"'))


@in_browser
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize(("width", "form"), [(390, "narrow"), (1280, "wide")])
def test_the_page_fits_the_screen(written, width, form, dark, tmp_path):
    seen = look(written, width, dark, tmp_path)
    assert seen["screen"] == width
    assert seen["wide"] <= width
    assert seen["images"] == 2
    assert seen["loaded"]
    assert seen["classes"] == [form, form]
    assert seen["outside"] == 0
    ink, ground = (sum(map(int, _numbers(seen[part]))) for part in ("ink", "ground"))
    assert (ink > ground) == dark


def test_text_of_figures_is_escaped(written):
    text = written.read_text(encoding="utf-8")
    assert "&lt;angle&gt; &amp; ampersand" in text
    assert "<angle>" not in text


def test_a_quick_run_says_that_it_is_no_evidence(tmp_path):
    place = tmp_path / "report.html"
    write_report([result(tmp_path, "fig1", quick=True)], place)
    assert "no evidence about the paper" in place.read_text(encoding="utf-8")


def _numbers(colour):
    return colour.strip("rgba()").split(",")[:3]
