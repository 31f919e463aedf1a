# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The commands that stand in the examples' plans of trainings, as a person types them: PyTorch's losses and parameters."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

from hyperparallel.cli.main import main
from hyperparallel.frontend.worker_process import worker_session

ROOT = Path(__file__).resolve().parents[2]
SCHEDULES = {"gpipe", "1f1b", "interleaved", "zero_bubble", "auto"}


def commands() -> dict[str, list[str]]:
    """The command in the head of each plan that trains, by the plan's name."""
    found: dict[str, list[str]] = {}
    for plan in sorted((ROOT / "examples").rglob("*.yaml")):
        said = re.search(r"^#   hp (run examples/\w+_train\.py .*)$", plan.read_text(encoding="utf-8"), re.M)
        if said is not None:
            found[plan.stem] = said.group(1).split()
            assert found[plan.stem][3] == str(plan.relative_to(ROOT)), "a plan's command is about that plan"
    return found


COMMANDS = commands()


@pytest.fixture(scope="module", autouse=True)
def _one_worker() -> Iterator[None]:
    with worker_session():
        yield


def test_there_is_a_plan_for_each_way() -> None:
    assert {"dp4", "tp4", "fsdp4", "pp2_dp2", "uneven_3_1", "gpt2_train_pp2_tp2"} < COMMANDS.keys()
    assert {f"pp4_{name}" for name in SCHEDULES} < COMMANDS.keys()
    assert {"mixtral_train", "mixtral_train_pp2_ep2", "dlrm_train", "dlrm_train_groups"} < COMMANDS.keys()


@pytest.mark.parametrize("name", COMMANDS)
def test_command(name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    assert COMMANDS[name][-3:] == ["--steps", "5", "--check"]
    with pytest.raises(SystemExit) as ended:
        main([*COMMANDS[name], "--json", "-q"])
    said = capsys.readouterr()
    assert ended.value.code == 0, said.err
    report = json.loads(said.out)
    assert report["devices"] == 4
    assert report["max_rel_error"] <= 1e-4
    assert len(report["losses"]) == len(report["reference_losses"]) == 5
    assert report["losses"] == pytest.approx(report["reference_losses"], rel=1e-5)
    assert report["losses"][-1] < report["losses"][0]
    # Every parameter is compared.
    learned = {result["updates"] for result in report["results"].values() if "updates" in result}
    kept = {
        one for one in learned if not one.startswith("optimizer.") and not re.search(r"\.(exp_avg|exp_avg_sq)$", one)
    }
    assert kept == report["max_rel_error_by_result"].keys() - {"losses"}
