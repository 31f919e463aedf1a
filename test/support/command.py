# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""``hp`` in the process of a test."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest

from hyperparallel.cli.main import main


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """What a command left behind."""

    status: int
    out: str
    err: str

    def told(self) -> Any:
        """The JSON of a command that succeeded."""
        assert self.status == 0, self.err
        return json.loads(self.out)


def command_of(capfd: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """A function that runs ``hp`` with the words that it is given.

    Args:
        capfd: What reads the command's output.
    """

    def run(*words: object) -> Outcome:
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(word) for word in words])
        captured = capfd.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 1, captured.out, captured.err)

    return run


__all__ = ["Outcome", "command_of"]
