# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is prepared for a machine with a GPU runs to its end over the fakes: the bundle, the script, its JSON."""

from __future__ import annotations

import json
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
TINY = {"layers": 2, "width": 16, "ff": 24, "heads": 2, "kv_heads": 1, "vocab": 37, "batch": 2, "seq": 6}


def test_bundle_over_the_fakes(tmp_path: Path) -> None:
    """Takes 10 s and more: it imports two models, and compiles and runs three programs and the whole suite."""
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
    for part in ("forward", "training", "half_memory"):
        assert len(found[part]["seconds"]) == 2
    first, second = found["training"]["losses"]
    assert second < first, "it learns"
    assert found["copies"]["to_device_bytes_per_second"] > 0
    assert found["sizes"] == TINY
