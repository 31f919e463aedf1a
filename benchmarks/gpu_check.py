# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Makes the bundle that is run where there is a GPU: programs, the runtime, the conformance suite, and gpu_check.sh.

    python benchmarks/gpu_check.py -o DIR [--arch sm_80,sm_90,sm_100] [--size layers=2 --size width=4096 ...]

Weights are not in it: hp-run draws them. So it is small; more than 60 MB is an error.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hyperparallel import _hyperparallel, hp_run
from hyperparallel.compile import compile_model
from hyperparallel.compiled import LOCAL_PROGRAM_FILE, OFFLOAD_FILE
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.torch import import_model
from hyperparallel.frontend.training import import_training
from hyperparallel.frontend.worker_process import worker_session
from hyperparallel.pipeline import make_context, parse_program
from hyperparallel.plan import Plan
from hyperparallel.ptxas import assemble, read_architectures
from hyperparallel.runtime import find_library

ROOT = Path(__file__).resolve().parents[1]
SUITE = ROOT / "test" / "Runtime" / "conformance"
SIZES = {"layers": 2, "width": 2048, "ff": 5632, "heads": 16, "kv_heads": 8, "vocab": 4096, "batch": 4, "seq": 512}
MOST_BYTES = 60_000_000
NEGATE = ROOT / "test" / "Runtime" / "Inputs" / "negate.mlir"


def make_programs(folder: Path, sizes: dict[str, int], architectures: str) -> None:
    """The forward pass and a step of training, each with all the memory that it wants, and with half."""
    with worker_session():
        forward = load_model_file(ROOT / "examples" / "llama.py", sizes)
        model = import_model(forward.module, forward.args, forward.kwargs, name="llama")
        training = load_model_file(ROOT / "examples" / "llama_train.py", sizes)
        assert training.training is not None
        step = import_training(
            training.module, training.args, training.kwargs, training=training.training, name="llama_train"
        )
    plan = Plan(preset="megatron")
    for name, half, imported in (("forward", "half_memory", model), ("training", "training_half_memory", step)):
        with tempfile.TemporaryDirectory(prefix="hyperparallel-") as temporary:
            whole = compile_model(
                imported, plan, "tp=1", Path(temporary) / "whole", target="none", device_memory=1 << 50
            )
            limit = json.loads((whole.directory / OFFLOAD_FILE).read_text())["unplanned_peak_bytes"] // 2
        for part, memory in ((name, None), (half, limit)):
            compile_model(
                imported, plan, "tp=1", folder / part, target="cuda", architectures=architectures, device_memory=memory
            )
            if part != "half_memory":  # which is simulated, when PCIe was measured
                (folder / part / LOCAL_PROGRAM_FILE).unlink()


def make_suite(bundle: Path, architectures: str) -> None:
    """The conformance suite, its program, and the timing of copies, for C11 compilers' usual library."""
    folder = bundle / "programs" / "negate"
    folder.mkdir(parents=True)
    chips = read_architectures(architectures)
    program, kernels = folder / "program.so", folder / "kernels.ptx"
    module = parse_program(NEGATE.read_text(encoding="utf-8"), "negate.mlir", make_context())
    _hyperparallel.compile_program(module, str(program), "", 1, str(kernels), chips[0])
    assemble(kernels, chips)
    described = json.loads(program.with_suffix(".json").read_text())
    (folder / "kernel").write_text(described["kernels"][0]["name"])
    suite = [SUITE / f"{name}.c" for name in ("conformance", "elements", "groups", "products", "programs")]
    for name, sources in {
        "conformance": suite,
        "gpu_check_copies": [ROOT / "benchmarks" / "gpu_check_copies.c"],
    }.items():
        library = bundle / "hyperparallel" / "libhp_runtime.so"
        rpath = "-Wl,-rpath,$ORIGIN/hyperparallel"
        subprocess.run(
            ["cc", "-std=c11", "-O2", f"-I{ROOT}", *sources, "-o", bundle / name, library, "-lm", rpath], check=True
        )


def make_bundle(bundle: Path, sizes: dict[str, int], architectures: str) -> int:
    """Make the bundle; its bytes.

    Args:
        bundle: A directory that is not there yet.
        sizes: Of the Llama.
        architectures: What kernels are assembled for.
    """
    runtime = bundle / "hyperparallel"
    (runtime / "bin").mkdir(parents=True)
    for name in ("libhp_runtime.so", "libhp_cuda.so"):
        shutil.copy(find_library().parent / name, runtime)
    shutil.copy(hp_run.path(), runtime / "bin")
    make_suite(bundle, architectures)
    make_programs(bundle / "programs", sizes, architectures)
    (bundle / "sizes.json").write_text(json.dumps(sizes) + "\n")
    for name in ("gpu_check.sh", "gpu_check_torch.py", "gpu_check_goals.py"):
        shutil.copy(ROOT / "benchmarks" / name, bundle)
    return sum(path.stat().st_size for path in bundle.rglob("*") if path.is_file())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="DIR")
    parser.add_argument("--arch", default="sm_80,sm_90,sm_100")
    parser.add_argument(
        "--size", action="append", default=[], metavar="NAME=N", help=f"of the Llama: {', '.join(SIZES)}"
    )
    arguments = parser.parse_args()
    given = dict(pair.split("=", 1) for pair in arguments.size)
    if unknown := given.keys() - SIZES.keys():
        parser.error(f"unknown size {', '.join(sorted(unknown))}; it is one of {', '.join(SIZES)}")
    if arguments.output.exists():
        parser.error(f"{arguments.output} exists; give a new directory")
    size = make_bundle(
        arguments.output, {**SIZES, **{name: int(value) for name, value in given.items()}}, arguments.arch
    )
    print(f"{arguments.output}: {size / 1e6:.1f} MB", file=sys.stderr)
    return 0 if size < MOST_BYTES else 1


if __name__ == "__main__":
    sys.exit(main())
