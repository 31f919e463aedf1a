# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The examples, imported: their numbers are PyTorch's, and their text keeps the promises of the import."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from import_cases import EXAMPLES, SMALL, eager, example, execute, imported, relative_error
from mlir import ir

from hyperparallel.frontend.model_file import load_model_file

RESULTS = {
    "gpt2": ["logits"],
    "llama": ["logits"],
    "bert": ["last_hidden_state", "pooler_output"],
    "vit": ["last_hidden_state", "pooler_output"],
    "mlp": ["output"],
    "convnet": ["output"],
}
BLOCKS = {
    "gpt2": ("transformer.h.{}", "GPT2Block"),
    "llama": ("model.layers.{}", "LlamaDecoderLayer"),
    "bert": ("encoder.layer.{}", "BertLayer"),
    "vit": ("layers.{}", "ViTLayer"),
    "mlp": ("blocks.{}", "Block"),
    "convnet": ("blocks.{}", "Residual"),
}


@pytest.mark.parametrize("flat", [False, True], ids=["blockwise", "flat"])
@pytest.mark.parametrize("name", SMALL)
def test_numbers_equal_pytorch(name: str, flat: bool) -> None:
    model = example(name)
    actual = execute(imported(name, flat=flat), model.module, model.args, model.kwargs)
    expected = eager(model.module, model.args, model.kwargs)
    assert list(actual) == RESULTS[name]
    for result, values in actual.items():
        assert values.std() > 0.01
        assert relative_error(values, expected[result].numpy()) <= 1e-5


@pytest.mark.parametrize("name", SMALL)
def test_equal_blocks_become_one_function(name: str) -> None:
    path, function = BLOCKS[name]
    model = imported(name)
    assert [(block.path, block.function) for block in model.blocks] == [
        (path.format(layer), function) for layer in range(SMALL[name]["layers"])
    ]
    assert re.findall(r"func\.func private @(\w+)\(", model.mlir) == [function]
    assert re.findall(r'hp\.path = "([^"]*)"', model.mlir) == [
        path.format(layer) for layer in range(SMALL[name]["layers"])
    ]
    assert imported(name, flat=True).mlir.count("func.func") == 1


@pytest.mark.parametrize("flat", [False, True], ids=["blockwise", "flat"])
@pytest.mark.parametrize("name", SMALL)
def test_text_holds_upstream_dialects_only(name: str, flat: bool) -> None:
    model = imported(name, flat=flat)
    with ir.Context() as context:
        assert not context.allow_unregistered_dialects
        module = ir.Module.parse(model.mlir)
        dialects: set[str] = set()

        def visit(operation: ir.Operation) -> ir.WalkResult:
            dialects.add(operation.name.partition(".")[0])
            return ir.WalkResult.ADVANCE

        module.operation.walk(visit)
    assert dialects <= {"builtin", "func", "linalg", "tensor", "arith", "math", "scf", "cf"}
    assert "f64" not in model.mlir


@pytest.mark.parametrize("name", SMALL)
def test_weights_are_arguments_with_names_and_roles(name: str) -> None:
    model, module = imported(name), example(name).module
    state = dict(module.named_parameters()) | dict(module.named_buffers())
    expected = [key for key in state if key not in model.unused]
    weights = [argument for argument in model.arguments if argument.role != "input"]
    assert [argument.name for argument in weights] == expected
    for argument in weights:
        assert argument.shape == tuple(state[argument.name].shape)
        assert argument.role == ("parameter" if argument.name in dict(module.named_parameters()) else "buffer")
    text = re.findall(r'\{(?:hp\.aliases = \[[^]]*\], )?hp\.name = "([^"]*)", hp\.role = "([^"]*)"\}', model.mlir)
    assert text == [(argument.name, argument.role) for argument in model.arguments]
    assert not re.search(r"dense<\[|dense_resource|dense<\"", model.mlir)


@pytest.mark.parametrize("name", SMALL)
def test_reductions_have_one_result(name: str) -> None:
    """Softmax does not compute the place of its maximum; nothing else in the examples asks for one."""
    assert not re.search(r"%\d+:\d+ = linalg", imported(name).mlir)


def test_inputs_come_first_and_are_named_by_the_signature() -> None:
    inputs = [argument.name for argument in imported("bert").arguments[:3]]
    assert inputs == ["input_ids", "attention_mask", "token_type_ids"]


def test_products_with_weights_are_two_dimensional() -> None:
    """No weight is copied for every batch entry: every layer's products are matmuls, attention's two are batched."""
    text = imported("llama").mlir
    block = text[text.index("func.func private @LlamaDecoderLayer") : text.index("func.func @main")]
    assert block.count("linalg.matmul") == 7
    assert block.count("linalg.batch_matmul") == 2


def test_tied_weights_are_one_argument() -> None:
    model = imported("gpt2")
    (tied,) = [argument for argument in model.arguments if argument.aliases]
    assert (tied.name, tied.aliases) == ("transformer.wte.weight", ("lm_head.weight",))
    assert 'hp.aliases = ["lm_head.weight"]' in model.mlir
    assert (model.weight("lm_head.weight") == model.weight("transformer.wte.weight")).all()


def test_buffers_that_are_not_persistent_are_arguments() -> None:
    model = imported("llama")
    assert "model.rotary_emb.inv_freq" not in example("llama").module.state_dict()
    (argument,) = [argument for argument in model.arguments if argument.role == "buffer"]
    assert argument.name == "model.rotary_emb.inv_freq"
    assert model.unused == ("model.rotary_emb.original_inv_freq",)


def test_torch_mlir_stays_out_of_this_process() -> None:
    imported("mlp")
    assert not [name for name in sys.modules if name.split(".")[0] == "torch_mlir"]
    maps = Path("/proc/self/maps")
    if maps.exists():
        assert "TorchMLIR" not in maps.read_text()


def test_shapes_of_any_size_import_without_storage() -> None:
    """Llama 405B at its real width, batch and sequence; the time of an import does not depend on sizes."""
    from hyperparallel.frontend.torch import import_model

    loaded = load_model_file(EXAMPLES / "llama405b.py", {"layers": 3})
    stages: list[tuple[str, int, int]] = []
    model = import_model(
        loaded.module, loaded.args, progress=lambda stage, done, total: stages.append((stage, done, total))
    )
    assert not model.has_weights
    assert [block.function for block in model.blocks] == ["LlamaDecoderLayer"] * 3
    sizes = {argument.name: argument.shape for argument in model.arguments}
    assert sizes["input_ids"] == (128, 4096)
    assert sizes["model.layers.2.mlp.down_proj.weight"] == (16384, 53248)
    assert sizes["model.layers.2.self_attn.k_proj.weight"] == (1024, 16384)
    assert model.results[0].shape == (128, 4096, 128256)
    assert sum(argument.bytes for argument in model.arguments) > 50e9
    done = [stage for stage, done, total in stages if done == total]
    assert list(dict.fromkeys(done)) == ["trace", "lower", "assemble"]
    traced = [done for stage, done, _ in stages if stage == "trace"]
    assert traced == sorted(traced)
    assert len(traced) > 30


def test_import_is_deterministic() -> None:
    from hyperparallel.frontend.torch import import_model

    model = example("gpt2")
    assert import_model(model.module, model.args, name="gpt2") == imported("gpt2")
