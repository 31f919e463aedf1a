# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is prepared for a machine with a GPU runs to its end over the fakes: the bundle, the script, its JSON."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from fakes import fake_libraries

from hyperparallel import ptxas
from hyperparallel.errors import MissingDependencyError

ROOT = Path(__file__).resolve().parents[2]
TINY = {"layers": 1, "width": 16, "ff": 24, "heads": 2, "kv_heads": 1, "vocab": 37, "batch": 2, "seq": 6}


def test_bundle_over_the_fakes(tmp_path: Path) -> None:
    """Takes 20 s and more: it imports two models, plans the memory of both, compiles and runs four programs, and the suite."""
    fakes = fake_libraries("cuda")
    try:
        ptxas.find_ptxas()
    except MissingDependencyError as missing:
        pytest.skip(str(missing))
    bundle = tmp_path / "bundle"
    sizes = [f"--size={name}={value}" for name, value in TINY.items()]
    command = [sys.executable, ROOT / "benchmarks" / "gpu_check.py", "-o", bundle, "--arch=sm_80", *sizes]
    subprocess.run(command, check=True, timeout=600)
    # Nothing but the bundle: no Python, no package.
    environment = {
        **fakes,
        "PATH": "/usr/bin:/bin",
        "HP_GPU_CHECK_STEPS": "2",
        "HP_GPU_CHECK_BYTES": "65536",
        "HP_GPU_CHECK_NO_TORCH": "1",
    }
    ran = subprocess.run(
        [bundle / "gpu_check.sh", tmp_path / "out.json"],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["conforms"] is True
    for part in ("forward", "training", "half_memory", "training_half_memory"):
        assert len(found[part]["seconds"]) == 2
    assert found["torch"] is None
    # What is compared with was not there; a fake is no measure of copies, but there is one.
    again = [sys.executable, bundle / "gpu_check_goals.py", tmp_path / "out.json", bundle]
    told = subprocess.run(again, check=True, capture_output=True, text=True, timeout=60).stdout
    assert told.count("not measured (goal: >= ") == 3
    goals = json.loads((tmp_path / "out.json").read_text())["goals"]
    assert goals["forward_of_torch_compile"]["reached"] is None
    assert goals["exposed_transfer"]["predicted_seconds"] > 0
    assert goals["exposed_transfer"]["reached"] in (True, False)
    machine = (tmp_path / "out.machine.yaml").read_text()
    assert f"bandwidth: {found['copies']['to_device_bytes_per_second'] / 1e9:.3f} GB/s # M: gpu_check" in machine
    first, second = found["training"]["losses"]
    assert second < first, "it learns"
    assert found["copies"]["to_device_bytes_per_second"] > 0
    assert found["sizes"] == TINY


def test_goals_of_numbers(tmp_path: Path) -> None:
    """The first two steps are not counted; 0.9 of torch.compile is enough."""
    steps = {"seconds": [9, 9, 1.0, 1.1, 1.2]}
    found = {
        "forward": steps,
        "training": steps,
        "torch": {"seconds": {"forward_compile": 1.0, "training_compile": 0.9}},
    }
    out = tmp_path / "out.json"
    out.write_text(json.dumps(found))
    subprocess.run([sys.executable, ROOT / "benchmarks" / "gpu_check_goals.py", out], check=True, timeout=60)
    goals = json.loads(out.read_text())["goals"]
    assert goals["forward_of_torch_compile"]["value"] == pytest.approx(1 / 1.1)
    assert goals["forward_of_torch_compile"]["reached"] is True
    assert goals["training_of_torch_compile"]["reached"] is False
    assert goals["exposed_transfer"]["reached"] is None


def test_what_fails_is_null(tmp_path: Path) -> None:
    """Without a GPU, and with programs that do not exist: every part fails, and the JSON is whole."""
    script = tmp_path / "gpu_check.sh"
    script.write_text((ROOT / "benchmarks" / "gpu_check.sh").read_text())
    (tmp_path / "sizes.json").write_text("{}")
    ran = subprocess.run(
        ["sh", script, tmp_path / "out.json"],
        env={"PATH": "/usr/bin:/bin", "HP_GPU_CHECK_NO_TORCH": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 1
    found = json.loads((tmp_path / "out.json").read_text())
    assert found["conforms"] is False
    assert [found[part] for part in ("forward", "training", "half_memory", "copies")] == [None] * 4
    assert "gpu_check: forward failed, or took longer than 25 s" in ran.stderr


def test_all_limits_together_are_five_minutes() -> None:
    text = (ROOT / "benchmarks" / "gpu_check.sh").read_text()
    limits = re.findall(r"^\s*(?:if )?(?:limit|part \w+|run \w+) (\d+)", text, re.M)
    assert len(limits) == 8
    assert sum(map(int, limits)) <= 290
