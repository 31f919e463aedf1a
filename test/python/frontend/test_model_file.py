# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Model files: the contract of build(), and one clear error for every way to break it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from import_cases import EXAMPLES, SMALL

from hyperparallel.errors import ImportModelError, MissingDependencyError
from hyperparallel.frontend.model_file import load_model_file, parse_overrides

GOOD = """
import torch

def build(*, width: int = 3, seed: int = 0):
    torch.manual_seed(seed)
    return torch.nn.Linear(width, 2), (torch.randn(1, width),)
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "some_model.py"
    path.write_text(text)
    return path


def test_overrides_reach_build(tmp_path: Path) -> None:
    model = load_model_file(write(tmp_path, GOOD), {"width": 5})
    assert (model.name, model.args[0].shape, model.kwargs) == ("some_model", (1, 5), {})


def test_keyword_arguments_of_forward(tmp_path: Path) -> None:
    text = GOOD.replace("(torch.randn(1, width),)", "(), {'input': torch.randn(1, width)}")
    model = load_model_file(write(tmp_path, text))
    assert model.args == ()
    assert list(model.kwargs) == ["input"]


def test_words_become_values() -> None:
    words = ["layers=2", "rate=-0.5", "act=gelu", "flag=True", "sizes=(1, 2)", "path=a=b", "empty="]
    assert parse_overrides(words) == {
        "layers": 2,
        "rate": -0.5,
        "act": "gelu",
        "flag": True,
        "sizes": (1, 2),
        "path": "a=b",
        "empty": "",
    }
    for word in ("layers", "=2", "a b=2"):
        with pytest.raises(ImportModelError, match="of the form key=value but got"):
            parse_overrides([word])


@pytest.mark.parametrize("name", SMALL)
def test_examples_build_the_same_model_every_time(name: str) -> None:
    first, second = (load_model_file(EXAMPLES / f"{name}.py", SMALL[name]) for _ in range(2))
    for (key, a), (_, b) in zip(first.module.state_dict().items(), second.module.state_dict().items(), strict=True):
        assert torch.equal(a, b), key
    for a, b in zip((*first.args, *first.kwargs.values()), (*second.args, *second.kwargs.values()), strict=True):
        assert torch.equal(a, b)
    assert not first.module.training


@pytest.mark.parametrize("name", SMALL)
def test_examples_have_weights_that_tell_parameters_apart(name: str) -> None:
    tensors = [*load_model_file(EXAMPLES / f"{name}.py", SMALL[name]).module.parameters()]
    for tensor in tensors:
        assert tensor.unique().numel() > 0.95 * tensor.numel()
        if tensor.numel() >= 16:
            centered = tensor - tensor.mean().round()
            assert (centered < 0).any()
            assert (centered > 0).any()
    assert len({tensor.flatten()[0].item() for tensor in tensors}) == len(tensors)


BROKEN: dict[str, tuple[str | bytes, str]] = {
    "no Python": ("func func @main", r"some_model\.py is not Python: line 1: invalid syntax"),
    "binary": (b"\x00\x01\xff", r"some_model\.py is not Python"),
    "empty": ("", r"defines no function build\(\); it must return"),
    "build is no function": ("build = 3", r"defines no function build\(\)"),
    "fails on the way": ("x = 1\nraise ValueError('bad luck')", r"some_model\.py:2 failed: ValueError: bad luck"),
    "leaves": ("raise SystemExit(3)", r"some_model\.py:1 failed: SystemExit: 3"),
    "build fails": (
        "def build():\n    assert 1 == 2, 'numbers'",
        r"build\(\) failed in .*some_model\.py:2: AssertionError: numbers",
    ),
    "wrong value": ("def build():\n    return 3", r"returned a int; expected \(module, example_args\)"),
    "wrong module": ("def build():\n    return 3, ()", r"returned a int as its module"),
    "wrong arguments": (GOOD.replace("(torch.randn(1, width),)", "7"), r"returned a int as its example_args"),
    "wrong keywords": (GOOD.replace("(torch.randn(1, width),)", "(), 7"), r"returned a int as its example_kwargs"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_file_is_one_clear_error(tmp_path: Path, kind: str) -> None:
    text, message = BROKEN[kind]
    path = tmp_path / "some_model.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ImportModelError, match=message) as caught:
        load_model_file(path)
    assert len(str(caught.value).splitlines()) == 1


def test_unknown_override_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ImportModelError, match=r"has no argument depth; it has: width, seed"):
        load_model_file(write(tmp_path, GOOD), {"depth": 2})


def test_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(ImportModelError, match=r"model file .*nothing\.py does not exist"):
        load_model_file(tmp_path / "nothing.py")
    with pytest.raises(ImportModelError, match="is a directory; expected a Python file"):
        load_model_file(tmp_path)


def test_missing_package_comes_with_its_pip_line(tmp_path: Path) -> None:
    with pytest.raises(
        MissingDependencyError, match=r"needs no_such_package, .* install it with: pip install no_such_package"
    ):
        load_model_file(write(tmp_path, "import no_such_package.part"))
    with pytest.raises(MissingDependencyError, match="no_such_package"):
        load_model_file(write(tmp_path, "def build():\n    import no_such_package"))
