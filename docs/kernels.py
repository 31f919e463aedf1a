# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Writes docs/Kernels.md: takes minutes, as it compiles every example, and runs some on the fake GPU.

python docs/kernels.py
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "test" / "support"), str(ROOT / "test" / "EndToEnd")]

from fakes import fake_libraries
from gpu_models import case, reports
from kernel_page import ARCHITECTURES, COMPILED, FULL, PAGE, RUN, kernels_of, release, rows, summary
from traffic import VARIABLE, read_traffic

from hyperparallel.cli.main import main as hp
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.plan import Plan

HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception -->
<!-- Written by docs/kernels.py -->
# Kernels of the examples

Every kernel that `hp compile --target cuda` makes of `examples/` (their sizes here are small, those of
`test/support/kernel_page.py`), as ptxas {release}, for {architectures}, assembles it. Registers are a thread's, the most of all kernels; spills
and shared memory are bytes. Sectors are pieces of 32 bytes of the device's memory: how many the requests of warps moved
for each that their bytes need, as the fake driver counts them, where the example runs on it. Tests compare these lines.

| example | kernels | {columns} | spills | shared | sectors |
| --- | --- | {rules} | --- | --- | --- |
"""
KERNELS = """
## {title}

{full}; loads and stores: instructions, and how many bytes of a thread each accesses.

| kernel | registers | shared | loads | stores | sectors moved | needed |
| --- | --- | --- | --- | --- | --- | --- |
"""


def run_example(name: str, folder: Path) -> tuple[str, list[str]]:
    """The line of an example that runs, and those of its kernels."""
    one = case(name, **RUN[name.removesuffix("_train")])
    program = one.compile(Plan(preset="megatron"), "tp=1", folder / name, architectures=",".join(ARCHITECTURES))
    told = folder / f"{name}.jsonl"
    os.environ[VARIABLE] = str(told)
    one.run(program)
    del os.environ[VARIABLE]
    (report,) = reports(program)
    traffic = read_traffic(told)
    return summary(name, report["kernels"], traffic.values()), rows(name, report["kernels"], traffic)


def compile_example(name: str, folder: Path) -> str:
    """The line of an example that is compiled only."""
    sizes = [word for key, value in COMPILED[name].items() for word in ("--model-arg", f"{key}={value}")]
    words = [str(ROOT / "examples" / f"{name}.py"), *sizes, "--target", "cuda", "--arch", ",".join(ARCHITECTURES)]
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        hp(["compile", *words, "-o", str(folder / name), "--json", "-q"])
    return summary(name, kernels_of(json.loads(out.getvalue())))


def main() -> None:
    """Compile, run, write."""
    os.environ.update(fake_libraries("cuda"))
    lines: list[str] = []
    tables: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary, worker_session():
        folder = Path(temporary)
        for name in [*RUN, *(f"{model}_train" for model in RUN)]:
            line, kernels = run_example(name, folder)
            lines.append(line)
            if kernels:
                tables.append(KERNELS.format(title=f"`{name}.py`", full=FULL) + "\n".join(kernels) + "\n")
            print(line, file=sys.stderr)
        for name in COMPILED:
            lines.append(compile_example(name, folder))
            print(lines[-1], file=sys.stderr)
    head = HEAD.format(
        release=release(),
        architectures=", ".join(ARCHITECTURES),
        columns=" | ".join(f"registers, {chip}" for chip in ARCHITECTURES),
        rules=" | ".join("---" for _ in ARCHITECTURES),
    )
    PAGE.write_text(head + "\n".join(lines) + "\n" + "".join(tables), encoding="utf-8")


if __name__ == "__main__":
    main()
