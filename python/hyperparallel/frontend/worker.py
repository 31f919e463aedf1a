# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The process in which torch_mlir lives: ``python -m hyperparallel.frontend.worker``.

torch_mlir brings an MLIR of its own whose symbols the loader merges with ours, so that our compiler would call the
wrong functions; it must never be loaded beside ours. This process reads requests from standard input and writes replies
to what was standard output when it began; both are a length in ASCII, a newline, and that many bytes of JSON. Whatever
libraries print goes to standard error, which the parent keeps for the error message should this process die.

A request holds graphs (see ``graph.py``); the reply is the text of one MLIR module with a function for each graph,
lowered to linalg on tensors, or the operators that have no lowering with the modules that use them. The process ends
when its input ends, and it does not outlive its parent.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import re
import signal
import sys
import threading
import time
from typing import IO, Any

# The passes of torch-mlir's own pipelines, without inlining (blocks stay functions) and without the final verifier
# (which refuses calls). What is left over is looked for by name, so that the reply can say which module it came from.
_TO_TORCH_BACKEND = (
    "builtin.module(func.func(torch-match-quantized-custom-ops),func.func(torch-reduce-op-variants{extra-library=}),"
    "func.func(canonicalize),func.func(torch-decompose-complex-ops{}),func.func(torch-recompose-complex-ops),"
    "func.func(canonicalize))"
)
_TO_LINALG = (
    "builtin.module(func.func(torch-restructure-non-constant-axes),func.func(torch-fuse-quantized-ops),"
    "func.func(convert-torch-to-tmtensor{allow-non-finites=true}),func.func(canonicalize),"
    "func.func(convert-torch-to-linalg{allow-non-finites=true}),func.func(canonicalize),"
    "func.func(convert-torch-to-scf),func.func(convert-torch-to-arith),func.func(convert-torch-to-tensor),"
    "func.func(canonicalize))"
)
_FINALIZE = (
    "builtin.module(func.func(memref-expand),func.func(canonicalize),func.func(resolve-shaped-type-result-dims),func.func(cse),"
    "torch-func-backend-type-conversion,func.func(canonicalize),func.func(torch-finalizing-backend-type-conversion),"
    "func.func(canonicalize),func.func(cse))"
)
# What torch-mlir has no definition for, and what no pass has lowered. Constants and lists go when their last user goes.
_UNKNOWN = re.compile(r"torch\.operator$")
_NOT_LOWERED = re.compile(
    r"tm_tensor\.(?!yield$)"
    r"|torch\.(?!constant\.|prim\.ListConstruct$|prim\.ListUnpack$|prim\.NumToTensor\.Scalar$|aten\.(Float|Int|Bool)\.)"
)


def read_message(stream: IO[bytes]) -> dict[str, Any] | None:
    """Read one message, or None at the end of the stream."""
    head = stream.readline()
    if not head:
        return None
    return json.loads(stream.read(int(head)))


def write_message(stream: IO[bytes], message: dict[str, Any]) -> None:
    """Write one message and flush it."""
    body = json.dumps(message).encode()
    stream.write(b"%d\n" % len(body) + body)
    stream.flush()


def _die_with_parent(parent: int) -> None:
    """End this process when the parent ends, also while native code is running."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _decode(argument: Any, nodes: dict[int, Any]) -> Any:
    import torch

    if isinstance(argument, list):
        return [_decode(entry, nodes) for entry in argument]
    if not isinstance(argument, dict):
        return argument
    ((kind, text),) = argument.items()
    match kind:
        case "$value":
            return nodes[text]
        case "$float":
            return float(text)
        case "$device":
            return torch.device(text)
        case "$dtype" | "$layout" | "$memory_format":
            return getattr(torch, text)
        case _:
            raise ValueError(f"unknown argument kind {kind}")


@functools.cache
def _call_operator() -> Any:
    """Register, once, the operator that stands for a call of another function."""
    import torch

    library = torch.library.Library("hyperparallel_frontend", "DEF")
    library.define("call(Tensor[] arguments, str callee) -> Tensor[]")
    _libraries.append(library)
    return torch.ops.hyperparallel_frontend.call.default


_libraries: list[Any] = []


class _Lowering:
    """One request: graphs in, the text of one module out."""

    def __init__(self) -> None:
        import torch
        from torch._subclasses.fake_tensor import FakeTensorMode
        from torch_mlir import ir as torch_mlir_ir
        from torch_mlir.dialects import torch as torch_dialect
        from torch_mlir.extras import fx_importer

        ir: Any = torch_mlir_ir
        self.torch = torch
        self.ir: Any = ir
        self.mode = FakeTensorMode()
        self.context = ir.Context()
        torch_dialect.register_dialect(self.context)
        self.signatures: dict[str, tuple[list[Any], list[Any]]] = {}
        lowering = self
        self.call = _call_operator()

        class NodeImporter(fx_importer.GraphNodeImporter):
            """Imports our own calls as ``func.call``, and everything else as torch_mlir does."""

            def _import_torch_op_overload(self, loc: Any, node: Any, concrete_target: Any = None) -> None:
                if node.target is not lowering.call:
                    super()._import_torch_op_overload(loc, node, concrete_target)
                    return
                arguments, callee = node.args
                operation = ir.Operation.create(
                    "func.call",
                    results=[self._cc.value_info_to_type(made) for made in node.meta["val"]],
                    operands=[self._import_argument(loc, argument) for argument in arguments],
                    attributes={"callee": ir.FlatSymbolRefAttr.get(callee)},
                    loc=loc,
                )
                lowering.signatures.setdefault(
                    callee, ([value.type for value in operation.operands], [value.type for value in operation.results])
                )
                self._multi_result_nodes.add(node)
                for index, value in enumerate(operation.results):
                    self.bind_node_value(node, value, index)

        self.importer = fx_importer.FxImporter(context=self.context, graph_node_importer_cls=NodeImporter)

    def fake(self, type_: list[Any]) -> Any:
        shape, stride, dtype = type_
        with self.mode:
            return self.torch.empty_strided(shape, stride, dtype=getattr(self.torch, dtype))

    def overload(self, target: str) -> Any:
        namespace, name, overload = target.split(".", 2)
        return getattr(getattr(getattr(self.torch.ops, namespace), name), overload)

    def build(self, encoded: dict[str, Any]) -> Any:
        """Rebuild an FX graph; the location of every node is its module path and operator, and its index."""
        import operator

        graph = self.torch.fx.Graph()
        types = {int(key): self.fake(type_) for key, type_ in encoded["types"].items()}
        nodes: dict[int, Any] = {}
        for number in encoded["inputs"]:
            nodes[number] = graph.placeholder(f"v{number}")
            nodes[number].meta["val"] = types[number]
        for index, (target, args, kwargs, results, structure, path) in enumerate(encoded["nodes"]):
            args = _decode(args, nodes)
            kwargs = {key: _decode(argument, nodes) for key, argument in kwargs.items()}
            if target in ("hp.call", "hp.kernel"):
                node = graph.call_function(self.call, (args, kwargs["callee"]), {})
            else:
                node = graph.call_function(self.overload(target), tuple(args), kwargs)
            origin = f"{path}|{target}".replace('"', "'")
            node.meta["stack_trace"] = f'File "{origin}", line {index + 1}, in forward'
            made = [None if result is None else types[result] for result in results]
            node.meta["val"] = made[0] if structure == "single" else made if structure == "list" else tuple(made)
            for position, result in enumerate(results):
                if result is None:
                    continue
                if structure == "single":
                    nodes[result] = node
                else:
                    nodes[result] = graph.call_function(operator.getitem, (node, position))
                    nodes[result].meta["val"] = types[result]
        graph.output(tuple(nodes[number] for number in encoded["outputs"]))
        return graph

    def run(self, graphs: list[dict[str, Any]]) -> dict[str, Any]:
        """Lower the graphs; the last one is public, the others are private."""
        ir = self.ir
        for index, encoded in enumerate(graphs):
            visibility = None if index == len(graphs) - 1 else "private"
            self.importer.import_stateless_graph(
                self.build(encoded), func_name=encoded["name"], func_visibility=visibility
            )
        module = self.importer.module
        defined = {encoded["name"] for encoded in graphs}
        with self.context, ir.Location.unknown():
            for callee, (inputs, results) in self.signatures.items():
                if callee not in defined:
                    from torch_mlir.dialects import func

                    func.FuncOp(
                        callee,
                        ir.FunctionType.get(inputs, results),
                        visibility="private",
                        ip=ir.InsertionPoint(module.body),
                    )
        for pipeline, left in ((_TO_TORCH_BACKEND, _UNKNOWN), (_TO_LINALG, _NOT_LOWERED), (_FINALIZE, _NOT_LOWERED)):
            self.pass_pipeline(module, pipeline)
            unsupported = self.find(module, left)
            if unsupported:
                return {"unsupported": unsupported}
        return {"mlir": str(module)}

    def pass_pipeline(self, module: Any, pipeline: str) -> None:
        from torch_mlir import passmanager

        manager: Any = passmanager
        with self.context:
            manager.PassManager.parse(pipeline).run(module.operation)

    def find(self, module: Any, wanted: re.Pattern[str]) -> list[list[str]]:
        """Return name and origin of every operation whose name matches."""
        found: dict[tuple[str, str], None] = {}

        def visit(operation: Any) -> Any:
            if wanted.match(operation.name):
                origin = re.search(r'"([^"]*)":', str(operation.location))
                found[(operation.name, origin.group(1) if origin else "")] = None
            return self.ir.WalkResult.ADVANCE

        module.operation.walk(visit)
        return [list(entry) for entry in found]


def serve(requests: IO[bytes], replies: IO[bytes]) -> None:
    """Answer requests until the input ends."""
    importlib.import_module("torch_mlir.extras.fx_importer")  # slow: do it while the parent is tracing

    while (request := read_message(requests)) is not None:
        try:
            reply = _Lowering().run(request["graphs"])
        except Exception as error:  # everything goes back to the parent, which alone talks to people
            reply = {"error": f"{type(error).__name__}: {error}"}
        write_message(replies, reply)


def main() -> None:
    """Entry point of the process."""
    _die_with_parent(int(sys.argv[1]))
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    serve(sys.stdin.buffer, replies)


if __name__ == "__main__":
    main()
