// A plan that does not fit the program is refused with one message that names the part at fault.
// RUN: split-file %s %t
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/absent.json 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/malformed.json 2>&1 | FileCheck %s --check-prefix=MALFORMED
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/list.json 2>&1 | FileCheck %s --check-prefix=LIST
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/key.json 2>&1 | FileCheck %s --check-prefix=KEY
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/section.json 2>&1 | FileCheck %s --check-prefix=SECTION
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/nomesh.json 2>&1 | FileCheck %s --check-prefix=NOMESH
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/axis.json 2>&1 | FileCheck %s --check-prefix=AXIS
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/size.json 2>&1 | FileCheck %s --check-prefix=SIZE
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/ids.json 2>&1 | FileCheck %s --check-prefix=IDS
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/argument.json 2>&1 | FileCheck %s --check-prefix=ARGUMENT
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/result.json 2>&1 | FileCheck %s --check-prefix=RESULT
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/block.json 2>&1 | FileCheck %s --check-prefix=BLOCK
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/blockresult.json 2>&1 | FileCheck %s --check-prefix=BLOCKRESULT
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/blockobject.json 2>&1 | FileCheck %s --check-prefix=BLOCKOBJECT
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/text.json 2>&1 | FileCheck %s --check-prefix=TEXT
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/spelling.json 2>&1 | FileCheck %s --check-prefix=SPELLING
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/unknownaxis.json 2>&1 | FileCheck %s --check-prefix=UNKNOWNAXIS
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/use.json 2>&1 | FileCheck %s --check-prefix=USE
// RUN: not hp-opt %t/p.mlir --hypershard-apply-plan=plan=@%t/taken.json 2>&1 | FileCheck %s --check-prefix=TAKEN
// RUN: not hp-opt %t/nomain.mlir --hypershard-apply-plan=plan=@%t/mesh.json 2>&1 | FileCheck %s --check-prefix=NOMAIN

//--- p.mlir
func.func @main(%x: tensor<4x4xf32> {hp.name = "x"}) -> (tensor<4x4xf32> {hp.name = "y"}) {
  %0 = call @f(%x) {hp.path = "b.0"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
func.func private @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  return %x : tensor<4x4xf32>
}
//--- nomain.mlir
func.func @other() {
  return
}
//--- mesh.json
{"mesh": {"axes": [["dp", 2]]}}
//--- malformed.json
{"mesh": {"axes": [["dp", 2]
//--- list.json
[1]
//--- key.json
{"mesh": {"axes": [["dp", 2]]}, "argumnets": {}}
//--- section.json
{"mesh": {"axes": [["dp", 2]]}, "results": 3}
//--- nomesh.json
{"arguments": {}}
//--- axis.json
{"mesh": {"axes": ["dp"]}}
//--- size.json
{"mesh": {"axes": [["dp", 0]]}}
//--- ids.json
{"mesh": {"axes": [["dp", 2]], "device_ids": ["a", "b"]}}
//--- argument.json
{"mesh": {"axes": [["dp", 2]]}, "arguments": {"z": {"store": "[{}, {}]"}}}
//--- result.json
{"mesh": {"axes": [["dp", 2]]}, "results": {"x": "[{}, {}]"}}
//--- block.json
{"mesh": {"axes": [["dp", 2]]}, "blocks": {"b.1": {"0": "[{}, {}]"}}}
//--- blockresult.json
{"mesh": {"axes": [["dp", 2]]}, "blocks": {"b.0": {"1": "[{}, {}]"}}}
//--- blockobject.json
{"mesh": {"axes": [["dp", 2]]}, "blocks": {"b.0": "[{}, {}]"}}
//--- text.json
{"mesh": {"axes": [["dp", 2]]}, "arguments": {"x": {"store": 3}}}
//--- spelling.json
{"mesh": {"axes": [["dp", 2]]}, "arguments": {"x": {"store": "[{dp}, {}]"}}}
//--- unknownaxis.json
{"mesh": {"axes": [["dp", 2]]}, "arguments": {"x": {"store": "[{\"tp\"}, {}]"}}}
//--- use.json
{"mesh": {"axes": [["dp", 2]]}, "arguments": {"x": {"store": "[{\"dp\"}, {}]", "use": "[{}]"}}}
//--- taken.json
{"mesh": {"name": "f", "axes": [["dp", 2]]}}

//--- expected
// EMPTY: error: plan: expected JSON but got nothing; give the option plan
// ABSENT: error: plan: cannot read file `{{.*}}absent.json`: No such file or directory
// MALFORMED: error: plan: malformed JSON: {{.+}}
// LIST: error: plan: expected a JSON object
// KEY: error: plan: unknown key `argumnets`; expected mesh, arguments, results or blocks
// SECTION: error: plan: expected an object for `results`
// NOMESH: error: plan: expected a mesh such as {"axes": {{\[}}["dp", 2]]}
// AXIS: error: plan: mesh: expected an axis such as ["dp", 2]
// SIZE: error: plan: mesh: {{.*}}0
// IDS: error: plan: mesh: expected device ids to be whole numbers
// ARGUMENT: error: plan: the program has no argument named `z`
// RESULT: error: plan: the program has no result named `x`
// BLOCK: error: plan: the program has no block named `b.1`
// BLOCKRESULT: error: plan: block `b.0`: names a result that the block lacks; it has 1
// BLOCKOBJECT: error: plan: block `b.0`: expected an object: result number and sharding
// TEXT: error: plan: argument `x`: expected the text of a sharding
// SPELLING: error: plan: argument `x`: `[{dp}, {}]` is no sharding: {{.+}}
// UNKNOWNAXIS: error: plan: argument `x`: {{.*}}tp
// USE: error: plan: argument `x` in use: {{.+}}
// TAKEN: error: the plan's mesh @f has the name of this, which is something else
// NOMAIN: error: expected a function @main with a body
