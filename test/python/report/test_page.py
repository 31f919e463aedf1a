# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page as text: self-contained, the same bytes each time, nothing in it is markup but ours."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib

from timelines import hostile, pipeline, two_layers

from hyperparallel.report import page, summarise
from hyperparallel.simulator.timeline import Timeline


def data_of(text: str) -> dict[str, object]:
    packed = re.search(r'id="data">([^<]*)</script>', text)
    assert packed is not None
    return json.loads(zlib.decompress(base64.b64decode(packed[1])))


def test_the_data_are_those_of_the_timeline() -> None:
    (run,) = data_of(page([two_layers()]))["runs"]  # pyright: ignore[reportGeneralTypeIssues]
    assert run["summary"] == json.loads(json.dumps(summarise(two_layers()).to_json()))
    strings, tasks = run["strings"], run["tasks"]
    shown = [
        (strings[op], strings[path], start, end, flops)
        for op, path, start, end, flops in zip(
            *(tasks[key] for key in ("op", "path", "start", "end", "flops")), strict=True
        )
    ]
    assert shown == [(task.op, task.path, task.start, task.end, task.flops) for task in two_layers().tasks]


def test_the_page_is_the_same_each_time() -> None:
    assert page([pipeline(), two_layers()]) == page([pipeline(), two_layers()])


def test_nothing_is_fetched_and_only_our_script_runs() -> None:
    text = page([two_layers()])
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:|//)|url\(|@import""", text)
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text)
    script = re.search(r"<script>(.*?)</script>", text, re.S)
    assert policy is not None
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert policy[1] == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def test_names_are_not_markup() -> None:
    text = page([hostile()])
    assert text.count("<script") == page([two_layers()]).count("<script")
    assert "<img" not in text
    assert "onerror=" not in text.split("<title>")[0]


def test_labels_tell_runs_apart() -> None:
    def labels(*timelines: Timeline) -> list[object]:
        return [run["label"] for run in data_of(page(timelines))["runs"]]  # pyright: ignore[reportGeneralTypeIssues]

    assert labels(two_layers()) == ["simulated"]
    assert labels(two_layers(), two_layers()) == ["simulated A", "simulated B"]
