# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rules: which tensors a layout is for.

A pattern is matched against the whole name, component by component (components are separated by dots): ``*`` stands for
anything within one component, ``?`` for one character, ``[ab]`` for one of several, ``**`` for any number of
components, none included. A prefix narrows it to one kind: ``input:*``, ``parameter:**.weight``,
``block:model.layers.*``,
``output:logits``. Without one it is matched against everything that has a name.
"""

from __future__ import annotations

import dataclasses
import functools
import re

from hyperparallel.plan.program import ProgramTensor, TensorKind
from hyperparallel.plan.specs import LayoutSpec


@dataclasses.dataclass(frozen=True, slots=True)
class Rule:
    """A layout and the tensors it is for.

    Attributes:
        pattern: As it was written, prefix included.
        store: How the tensor is kept.
        use: How it is laid out where it is computed with; None if as it is kept.
        origin: Where it was written, such as ``gpt2.yaml:7`` or ``preset megatron``.
        required: Matching nothing is an error.
        rank: Only tensors of this rank, if given.
        note: Why, for the explanation.
    """

    pattern: str
    store: LayoutSpec
    use: LayoutSpec | None = None
    origin: str = "plan"
    required: bool = True
    rank: int | None = None
    note: str = ""

    @property
    def kind(self) -> TensorKind | None:
        """The kind that the pattern's prefix names."""
        prefix, colon, _ = self.pattern.partition(":")
        return _KINDS.get(prefix) if colon else None

    @property
    def glob(self) -> str:
        """The pattern without its prefix."""
        return self.pattern.partition(":")[2] if self.kind else self.pattern

    def matches(self, tensor: ProgramTensor) -> bool:
        """Whether the rule is for this tensor."""
        if self.kind is not None and tensor.kind != self.kind:
            return False
        if self.rank is not None and len(tensor.shape) != self.rank:
            return False
        return glob_regex(self.glob).fullmatch(tensor.name) is not None

    @property
    def where(self) -> str:
        """The rule in an error message."""
        return f"{self.origin}: rule {self.pattern!r}"

    def layout_text(self) -> str:
        """The layout as it was written."""
        return str(self.store) if self.use is None else f"store {self.store}, use {self.use}"


_KINDS = {str(kind): kind for kind in TensorKind}


@functools.lru_cache(maxsize=4096)
def glob_regex(glob: str) -> re.Pattern[str]:
    """The regular expression of a component-wise glob."""
    regex = ""
    components = glob.split(".")
    for index, component in enumerate(components):
        last = index == len(components) - 1
        if component != "**":
            regex += _component_regex(component) + ("" if last else r"\.")
        elif not last:
            regex += r"(?:[^.]+\.)*"
        elif regex.endswith(r"\."):
            regex = regex.removesuffix(r"\.") + r"(?:\.[^.]+)*"
        else:
            regex += r"[^.]+(?:\.[^.]+)*"
    return re.compile(regex)


def _component_regex(component: str) -> str:
    """One component: ``*``, ``?`` and ``[...]`` are special; all stay within the component."""
    pieces = re.split(r"(\*|\?|\[!?[^\]]+\])", component)
    out: list[str] = []
    for piece in pieces:
        if piece == "*":
            out.append("[^.]*")
        elif piece == "?":
            out.append("[^.]")
        elif piece.startswith("[") and piece.endswith("]") and len(piece) > 2:
            inside = piece[1:-1].replace("\\", r"\\")
            out.append("[^" + inside[1:] + "]" if inside.startswith("!") else f"[{inside}]")
        else:
            out.append(re.escape(piece))
    return "".join(out)
