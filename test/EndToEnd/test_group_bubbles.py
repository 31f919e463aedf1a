# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""GPT-2's training, compiled over stages of one block each, has the bubble of the closed form, by every named schedule."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel.compile import compile_model
from hyperparallel.cost import cost_of_file
from hyperparallel.frontend.artifact import ImportedModel
from hyperparallel.frontend.model_file import load_model_file
from hyperparallel.frontend.training import import_training
from hyperparallel.plan import Plan
from hyperparallel.simulator import simulate_file

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
BLOCKS, MICROBATCHES = 4, 8
#: Wide blocks and few words: the embedding and the loss, which one stage alone has, are below a hundredth of a block.
SIZES = {
    **{"layers": BLOCKS, "width": 1024, "heads": 4, "vocab": 32},
    **{"positions": 512, "seq": 512, "batch": 8 * MICROBATCHES, "microbatches": MICROBATCHES},
}
#: Of the step: what only one stage has, transfers, the updates.
_TOLERANCE = 0.012


@pytest.fixture(scope="module")
def model() -> ImportedModel:
    loaded = load_model_file(EXAMPLES / "gpt2_train.py", SIZES)
    assert loaded.training is not None
    return import_training(loaded.module, loaded.args, loaded.kwargs, training=loaded.training)


@pytest.mark.parametrize(
    ("schedule", "groups", "live"),
    [
        ("gpipe", 4, [8, 8, 8, 8]),
        ("1f1b", 4, [4, 3, 2, 1]),
        ("interleaved_1f1b", 2, None),
        ("zero_bubble_h1", 4, [4, 4, 4, 4]),
    ],
)
def test_bubble_of_a_compiled_training(
    schedule: str, groups: int, live: list[int] | None, model: ImportedModel, tmp_path: Path
) -> None:
    names = [f"g{number}" for number in range(groups)]
    stages = [{names[block % groups]: f"transformer.h.{block}"} for block in range(BLOCKS)]
    plan = Plan(groups=dict.fromkeys(names, "tp=1"), stages=stages, schedule=schedule)
    compile_model(model, plan, None, tmp_path / "p", target="none", machine="h200-node")
    timeline = simulate_file(tmp_path / "p")
    assert timeline.utilisation is not None

    chunks = BLOCKS // groups
    idle = (groups - 1) / chunks
    if schedule == "zero_bubble_h1":
        # Gradients of weights fill what they can of the gap: of F + B + W, F + B - W is left (Qi et al., Zero Bubble,
        # table 2). Attention has no weights, so that W is less than B.
        costs = cost_of_file(tmp_path / "p" / "g1" / "program.mlirbc", machine="h200-node")
        forward, by_input, by_weight = (
            costs.function(f"GPT2Block{part}").total.seconds for part in ("", "_backward_input", "_backward_weight")
        )
        idle *= (forward + by_input - by_weight) / (forward + by_input + by_weight)
    assert 1 - timeline.utilisation == pytest.approx(idle / (MICROBATCHES + idle), abs=_TOLERANCE)
    if live is not None:
        assert json.loads((tmp_path / "p" / "schedule.json").read_text("utf-8"))["peak_live"] == live
