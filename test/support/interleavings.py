# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the proof of freedom from deadlock is held against: a search over all interleavings of small programs."""

from __future__ import annotations

from hyperparallel.schedules import Action, Receive, Send


def can_end(programs: tuple[tuple[Action, ...], ...]) -> bool:
    """Whether some interleaving brings all to their end, by search over states."""
    seen: set[tuple[int, ...]] = set()
    todo = [(0,) * len(programs)]
    while todo:
        state = todo.pop()
        if state in seen:
            continue
        seen.add(state)
        if all(at == len(steps) for at, steps in zip(state, programs, strict=True)):
            return True
        heads = {n: steps[at] for n, (at, steps) in enumerate(zip(state, programs, strict=True)) if at < len(steps)}
        for n, action in heads.items():
            other = heads.get(action.to) if isinstance(action, Send) else None
            if (
                isinstance(action, Send)
                and isinstance(other, Receive)
                and other.source == n
                and other.tag == action.tag
            ):
                todo.append(tuple(at + (m in (n, action.to)) for m, at in enumerate(state)))
    return False
