# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The compiler's phases, run one after the other on a module of the stock ``mlir`` package.

The order is that of ``lib/Pipelines``; here it is cut into phases so that the IR after each can be kept, and a
refusal can be told with the pass that refused and the ``hp-opt`` command that shows it again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import io
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from mlir import ir
from mlir.passmanager import PassManager

from hyperparallel.cache import cache_directory
from hyperparallel.dialects import register
from hyperparallel.enums import StrEnum
from hyperparallel.errors import CompilationError

ENTRY = "main"

# The bindings define it, their stubs do not.
MLIRError: type[Exception] = getattr(ir, "MLIRError")  # noqa: B009


class Phase(StrEnum):
    """The phases, in order; the value names the IR that a phase leaves."""

    IMPORTED = "imported"
    ANNOTATED = "annotated"
    PROPAGATED = "propagated"
    RESHARDED = "resharded"
    PARTITIONED = "partitioned"
    OFFLOADED = "offloaded"
    LOWERED = "lowered"


_PASSES: dict[Phase, str] = {
    Phase.IMPORTED: "hp-normalize",
    Phase.ANNOTATED: "hypershard-apply-plan{{plan=@{plan}}},hypershard-inline-segments",
    Phase.PROPAGATED: "hp-propagate",
    Phase.RESHARDED: "hp-reshard",
    Phase.PARTITIONED: "hp-partition",
    Phase.OFFLOADED: "hp-offload",
    Phase.LOWERED: "hp-lower-to-cpu",
}


@dataclasses.dataclass(frozen=True, slots=True)
class Remark:
    """A decision that a pass reports: where, and what was chosen."""

    phase: Phase
    location: str
    message: str


def make_context() -> ir.Context:
    """A context that knows upstream's dialects and ours."""
    context = ir.Context()
    register(context)
    return context


def make_synchronous(module: ir.Module) -> None:
    """Let collectives and messages of a program happen where they stand, and everything after them wait."""
    module.operation.attributes["hp.synchronous"] = ir.UnitAttr.get(module.context)


def set_workspace(module: ir.Module, size: int) -> None:
    """Reserve so many bytes for each call of a vendor's library in a program, instead of what its operands take."""
    kind = ir.IntegerType.get_signless(64, module.context)
    module.operation.attributes["hp.workspace"] = ir.IntegerAttr.get(kind, size)


def parse_program(text: str, name: str, context: ir.Context) -> ir.Module:
    """Parse a program.

    Args:
        text: MLIR text.
        name: The file it is from, for messages.
        context: What it is parsed in.

    Raises:
        CompilationError: If it is malformed.
    """
    try:
        return ir.Module.parse(text, context)
    except MLIRError as error:
        raise CompilationError(f"{name} is no valid MLIR program", diagnostics=diagnostics_of(error)) from None


def bytecode_of(module: ir.Module) -> bytes:
    """A program, or one of a group inside it, as MLIR bytecode: much faster made and read than text."""
    buffer = io.BytesIO()
    module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def copy_program(module: ir.Module) -> ir.Module:
    """A program of its own that is the same."""
    return ir.Module.parse(bytecode_of(module), module.context)


class PhaseRunner:
    """Runs phases on one module.

    Args:
        module: The program; changed in place.
        text: The program's text or bytecode, from which a refusal is shown again.
        plan: The file of the plan's JSON.
        dump: A directory that gets the IR after each phase, numbered, or None.
        progress: Called with each phase before it runs.
    """

    def __init__(
        self,
        module: ir.Module,
        text: str | bytes,
        plan: Path,
        dump: Path | None = None,
        progress: Callable[[Phase], None] | None = None,
    ) -> None:
        self.module = module
        self.text = text
        self.plan = plan
        self.dump = dump
        self.progress = progress
        self.remarks: list[Remark] = []
        self._steps: list[str] = []
        self._phase = Phase.IMPORTED

    def run(self, phase: Phase) -> None:
        """Run one phase.

        Raises:
            CompilationError: If a pass refuses the program.
        """
        self._phase = phase
        if self.progress is not None:
            self.progress(phase)
        handler: Any = self.module.context.attach_diagnostic_handler(self._listen)
        try:
            self._run_pipeline(_PASSES[phase].format(plan=self.plan))
        finally:
            handler.detach()
        if self.dump is not None:
            self._write_ir(phase)

    def run_steps(self, name: str, steps: Sequence[str]) -> None:
        """Run passes or pipelines between two phases.

        Args:
            name: What the IR that they leave is called.
            steps: As ``hp-opt`` spells them; ``@`` and the plan's file where one reads it.

        Raises:
            CompilationError: If a pass refuses the program.
        """
        handler: Any = self.module.context.attach_diagnostic_handler(self._listen)
        try:
            for step in steps:
                self._run_pipeline(step, name)
        finally:
            handler.detach()
        if self.dump is not None:
            (self.dump / f"{name}.mlir").write_text(str(self.module), encoding="utf-8")

    def _run_pipeline(self, step: str, name: str | None = None) -> None:
        self._steps.append(step)
        context = self.module.context
        with context:
            try:
                PassManager.parse(f"builtin.module({step})", context).run(self.module.operation)
            except MLIRError as error:
                raise self._refusal(step, diagnostics_of(error), name or str(self._phase)) from None

    def _listen(self, diagnostic: Any) -> bool:
        if diagnostic.severity != ir.DiagnosticSeverity.REMARK:
            return False
        self.remarks.append(Remark(self._phase, str(diagnostic.location), diagnostic.message))
        return True

    def _refusal(self, step: str, diagnostics: Sequence[str], name: str) -> CompilationError:
        text = self.text if isinstance(self.text, str) else str(ir.Module.parse(self.text, self.module.context))
        kept = _keep_failure(text, self.plan)
        pipeline = ",".join(self._steps).replace(str(self.plan), str(kept.with_name("plan.json")))
        return CompilationError(
            f"the {name} phase refused the program",
            diagnostics=diagnostics,
            pass_name=step.partition("{")[0],
            command=f"hp-opt {shlex.quote(str(kept))} "
            f"--pass-pipeline={shlex.quote(f'builtin.module({pipeline})')} -o /dev/null",
        )

    def _write_ir(self, phase: Phase) -> None:
        assert self.dump is not None
        number = list(Phase).index(phase)
        path = self.dump / f"{number}-{phase}.mlir"
        path.write_text(str(self.module), encoding="utf-8")


def _keep_failure(text: str, plan: Path) -> Path:
    """Keep a refused program and its plan under the cache, so that the command in the message works."""
    described = plan.read_text(encoding="utf-8") if plan.exists() else ""
    directory = cache_directory() / "failures" / hashlib.sha256((described + text).encode()).hexdigest()[:12]
    directory.mkdir(parents=True, exist_ok=True)
    if described:
        (directory / "plan.json").write_text(described, encoding="utf-8")
    kept = directory / "input.mlir"
    kept.write_text(text, encoding="utf-8")
    return kept


def diagnostics_of(error: Any) -> list[str]:
    """One text for each diagnostic, its notes on lines of their own."""
    texts: list[str] = []
    found: Sequence[Any] = error.error_diagnostics
    for diagnostic in found:
        lines = [f"{_place(diagnostic.location)}error: {diagnostic.message}"]
        # The op as MLIR prints it says nothing that the place does not.
        notes = [note for note in diagnostic.notes if not str(note.message).startswith("see current operation")]
        lines += [f"{_place(note.location)}note: {note.message}" for note in notes]
        texts.append("\n".join(lines))
    return texts or [str(error)]


def keep_program(text: str, name: str) -> Path:
    """Keep a refused program under the cache, for the command that shows the refusal again."""
    kept = cache_directory() / "failures" / f"{name}.mlir"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(text, encoding="utf-8")
    return kept


def reproduction(kept: Path, steps: str) -> str:
    """The ``hp-opt`` command that runs the steps on a kept program."""
    return f"hp-opt {shlex.quote(str(kept))} --pass-pipeline={shlex.quote(f'builtin.module({steps})')} -o /dev/null"


def _place(location: Any) -> str:
    text = str(location).removeprefix("loc(").removesuffix(")").replace('"', "")
    return "" if text == "unknown" else f"{text}: "
