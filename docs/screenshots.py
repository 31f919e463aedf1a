# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes docs/images: the reports that docs/Reports.md shows, of Llama 405B simulated, and of GPT-2 simulated and run.

Needs Chromium (and looks best with the font Inter installed). Measured numbers differ from run to run, so no test
compares the pictures; run it again when the page changes::

    python docs/screenshots.py
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from hyperparallel.testing.browser import Browser

ROOT = Path(__file__).resolve().parents[1]
IMAGES = ROOT / "docs" / "images"
MOST_BYTES = 150_000
REPORT = "hyperparallelReport"
LARGE_MACHINE = "cloudmatrix384@1024"


def hp(*words: object) -> None:
    """Runs hp of this tree."""
    command = [sys.executable, "-m", "hyperparallel.cli.main", *map(str, words)]
    subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL)


def picture(browser: Browser, name: str, width: int, height: int, top: int = 0) -> None:
    """Writes a part of the window, and refuses what would weigh the repository down."""
    path = IMAGES / f"{name}.png"
    browser.frame()
    browser.screenshot(path, {"x": 0, "y": top, "width": width, "height": height})
    size = path.stat().st_size
    print(f"{path.relative_to(ROOT)}: {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has {size} bytes, more than {MOST_BYTES}")


def top_of(browser: Browser, selector: str) -> int:
    """Where an element begins, a little above."""
    return int(browser.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().top")) - 18


def zoom_to_a_collective(browser: Browser) -> None:
    """Selects the last collective of the first block, and hovers over it."""
    browser.evaluate(
        f"""(() => {{
          const {{ runs: [run], lanes, view }} = {REPORT}, tasks = run.tasks;
          const all = [...Array(run.count).keys()];
          const named = (task) => run.strings[tasks.op[task]];
          const own = all.filter((task) => run.strings[tasks.path[task]].endsWith('.0') && named(task).includes('all_reduce'));
          const task = own[own.length - 1];
          lanes.select({{ run, task }});
          const span = tasks.end[task] - tasks.start[task];
          view.set(tasks.start[task] - 14 * span, tasks.end[task] + 24 * span);
        }})()"""
    )
    browser.frame()
    x, y = browser.evaluate(
        f"""(() => {{
          const {{ lanes }} = {REPORT}, {{ run, task }} = lanes.selected, box = lanes.canvas.getBoundingClientRect();
          const middle = (run.tasks.start[task] + run.tasks.end[task]) / 2;
          return [box.left + lanes.x(middle), box.top + lanes.itemOf({{ run, task }}).y - 12];
        }})()"""
    )
    browser.mouse("mouseMoved", x, y + 16)
    browser.frame()


def main() -> None:
    """Compiles, simulates, runs, and takes the pictures."""
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        work = Path(folder)
        large, program, predicted, measured = (
            work / "llama",
            work / "gpt2",
            work / "predicted.json",
            work / "measured.json",
        )
        plan = ("--plan", "examples/llama405b.yaml")
        hp("compile", "examples/llama405b.py", *plan, "--target", "none", "--machine", LARGE_MACHINE, "-o", large, "-q")
        hp("report", large, "-o", work / "step.html", "-q")
        hp("compile", "examples/gpt2.py", "--plan", "examples/gpt2.yaml", "-o", program, "-q")
        hp("simulate", program, "-o", predicted, "-q")
        hp("run", program, "--repeat", "5", "--timeline", measured, "-q")
        hp("report", predicted, measured, "-o", work / "comparison.html", "-q")

        browser.view(1280, 1900)
        browser.open(work / "step.html")
        browser.evaluate(f"{REPORT}.view.set(0.5, 0.75)")
        picture(browser, "report-step", 1280, 1000)
        zoom_to_a_collective(browser)
        picture(browser, "report-task", 1280, 436, top_of(browser, "#timeline"))
        browser.view(1280, 1900, dark=True)
        browser.open(work / "comparison.html")
        picture(browser, "report-comparison", 1280, 1130)
        browser.view(390, 2400, dark=True, touch=True)
        browser.open(work / "step.html")
        browser.evaluate(f"{REPORT}.view.set(0.5, 0.75)")
        picture(browser, "report-narrow", 390, 1240)


if __name__ == "__main__":
    main()
