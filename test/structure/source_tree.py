# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The files of the source tree, as the structure tests see them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("dialects", "lib", "python", "test", "docs", "examples", "benchmarks", "cmake")
GENERATED = re.compile(r"_(ops|enum)_gen\.py$|\.so$")


def files(*suffixes: str, under: tuple[str, ...] = SOURCES) -> Iterator[Path]:
    """The files with one of the suffixes, but for what is generated."""
    for folder in under:
        for path in sorted((ROOT / folder).rglob("*")):
            generated = GENERATED.search(path.name) or "__pycache__" in path.parts
            if path.suffix in suffixes and path.is_file() and not generated:
                yield path


def name(path: Path) -> str:
    """The path from the root."""
    return path.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Pass:
    """A pass as its Passes.td declares it."""

    class_name: str
    flag: str
    folder: Path
    has_description: bool

    @property
    def words(self) -> str:
        """The class's name without Pass, in kebab case: PropagateShardingsPass is propagate-shardings."""
        bare = self.class_name.removesuffix("Pass")
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "-", bare).lower()

    @property
    def source(self) -> Path:
        """The file that the pass's name asks for."""
        folders = [self.folder, *(path for path in self.folder.iterdir() if path.is_dir())]
        file = f"{self.class_name.removesuffix('Pass')}.cpp"
        return next((folder / file for folder in folders if (folder / file).exists()), self.folder / file)


def passes() -> list[Pass]:
    """Every pass that a Passes.td of lib/ declares."""
    found: list[Pass] = []
    for source in files(".td", under=("lib",)):
        for entry in re.split(r"(?=^def \w+)", source.read_text(), flags=re.M):
            declared = re.match(r'def (\w+)\s*:\s*(?:Interface)?Pass<\s*"([\w-]+)"', entry)
            if declared:
                found.append(Pass(declared[1], declared[2], source.parent, "let description" in entry))
    return found
