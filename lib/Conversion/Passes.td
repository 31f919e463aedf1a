//===- Passes.td - Conversions to kernels and the runtime --*- tablegen -*-===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "mlir/Pass/PassBase.td"

def FoldViewsIntoContractions
    : Pass<"hp-fold-views-into-contractions", "mlir::ModuleOp"> {
  let summary = "Lets matmuls read and write transposed or broadcast operands in place";
  let description = [{
    Writes named ops without windows as `linalg.generic`, then removes copies
    that only permute, broadcast or regroup the dimensions of an operand or of
    the result of a contraction: its indexing maps say the same.
  }];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
    "mlir::tensor::TensorDialect"
  ];
}

def FuseElementwise : Pass<"hp-fuse-elementwise", "mlir::ModuleOp"> {
  let summary = "Fuses elementwise linalg ops where that saves memory traffic";
  let description = [{
    Upstream's elementwise fusion, controlled so that nothing expensive is
    repeated, contractions stay what the runtime's matmul can do, and reshapes
    do not stand between elementwise ops.
  }];
  let dependentDialects = [
    "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
    "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"
  ];
}

def ConvertIndexingToLoops
    : Pass<"convert-indexing-to-loops", "mlir::ModuleOp"> {
  let summary = "Turns writes at computed places into loops over tensors";
  let description = [{
    `indexing.scatter_add` becomes a loop over its updates, which adds each to its
    row of the table. Bufferization writes in place what the loop hands on.
  }];
  let statistics = [
    Statistic<"numLoops", "num-loops", "Loops written">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
    "mlir::scf::SCFDialect", "mlir::tensor::TensorDialect"
  ];
}

def PrepareBufferization : Pass<"hp-prepare-bufferization", "mlir::ModuleOp"> {
  let summary = "Marks arguments read-only and gives each use its own init";
  let description = [{
    The last pass on tensors. Contractions whose init is zero are marked
    `hp.overwrite`; nothing that does not know the mark may follow before
    bufferization. An argument of which a result is the next value (`hp.updates`)
    is written in place, and the result is gone.
  }];
  let dependentDialects = [
    "mlir::bufferization::BufferizationDialect", "mlir::linalg::LinalgDialect",
    "mlir::tensor::TensorDialect"
  ];
}

def ReturnAllocations : Pass<"hp-return-allocations", "mlir::ModuleOp"> {
  let summary = "Makes a returned reshape of an allocation the allocation";
  let description = [{
    Results become the caller's memory afterwards; without this a reshaped result
    would be computed elsewhere and copied. What is returned more than once is
    copied for all but the first.
  }];
  let statistics = [
    Statistic<"numAvoided", "num-avoided", "Copies of results avoided">,
    Statistic<"numCopied", "num-copied", "Copies of what is returned again">
  ];
  let dependentDialects = ["mlir::memref::MemRefDialect"];
}

def FormKernels : Pass<"hp-form-kernels", "mlir::ModuleOp"> {
  let summary = "Turns linalg on buffers into kernel functions with loops";
  let description = [{
    Groups structured ops that can share their outer parallel loops, and writes
    each group as one private function over a range of outer iterations. Calls
    that are worth it carry `hp.parallel_grain`, the least number of iterations
    a core should get.
  }];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernel functions written">,
    Statistic<"numShared", "num-shared", "Kernels equal to an earlier one">,
    Statistic<"numFused", "num-fused", "Ops that joined another op's kernel">,
    Statistic<"numLocalBuffers", "num-local-buffers",
              "Buffers that shrank to one iteration's part">
  ];
  let dependentDialects = [
    "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
    "mlir::func::FuncDialect", "mlir::linalg::LinalgDialect",
    "mlir::LLVM::LLVMDialect", "mlir::memref::MemRefDialect",
    "mlir::scf::SCFDialect"
  ];
}

def FoldEpilogues : Pass<"hp-fold-epilogues", "mlir::ModuleOp"> {
  let summary = "Lets the call of a product add the bias and do the activation";
  let description = [{
    A contraction whose result is only read by one elementwise op takes in the bias
    that this one adds to its columns, and the activation that follows, if the back
    end's library has it: tanh-GELU is told from the exact one by its arithmetic.
    The call rounds once, at the end, and a ReLU in it may make 0 of a NaN. What was
    folded, and why something was not, is counted in the module's `hp.epilogues`, and
    told in remarks (category `hp-fold-epilogues`).
  }];
  let options = [
    ListOption<"activations", "activations", "std::string",
               "What the library has: relu, gelu, gelu_tanh, silu">
  ];
  let statistics = [
    Statistic<"numBiases", "num-biases", "Biases folded">,
    Statistic<"numActivations", "num-activations", "Activations folded">,
    Statistic<"numPlain", "num-plain", "Products without an epilogue">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
    "mlir::math::MathDialect"
  ];
}

def FormAttention : Pass<"hp-form-attention", "mlir::ModuleOp"> {
  let summary = "Makes attention one op, where the back end has a call for it";
  let description = [{
    The product of queries and keys, a scale and a mask, the softmax and the product
    with the values become one `fused.attention`, which the lowering of the back end
    turns into its call. `types` and `most-width` are what the back end has
    (`HP_CAN_ATTEND` of `hp_device_can`); with no type, nothing is made. Heads may be
    cut from the batch, or from each other, in one op and not in the next. Attention
    stays as it is, too, where others read the probabilities (a backward pass), or
    where the call would move no fewer bytes. What became of each is counted in the
    module's `hp.attention`, and told in remarks (category `hp-form-attention`).
  }];
  let options = [
    ListOption<"types", "types", "std::string",
               "Element types of the back end's call, such as f16, bf16, f32">,
    Option<"mostWidth", "most-width", "int64_t", /*default=*/"0",
           "Width of a head that it takes; 0 for any">,
    Option<"equalWidths", "equal-widths", "bool", /*default=*/"false",
           "Whether keys and values must be of one width">
  ];
  let statistics = [
    Statistic<"numFormed", "num-formed", "Attentions that became one op">,
    Statistic<"numLeft", "num-left", "Attentions that stayed as they were">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::hyperparallel::fused::FusedDialect",
    "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"
  ];
}

def PackContractionOperands
    : Pass<"hp-pack-contraction-operands", "mlir::ModuleOp"> {
  let summary = "Copies operands of contractions whose strides no matmul takes";
  let description = [{
    Afterwards every contraction on buffers that the runtime computes is one
    call of its matmul.
  }];
  let statistics = [
    Statistic<"numPacked", "num-packed", "Operands copied">
  ];
  let dependentDialects = [
    "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect"
  ];
}

def ConvertContractionsToRuntime
    : Pass<"convert-contractions-to-runtime", "mlir::ModuleOp"> {
  let summary = "Turns contractions on buffers into calls of hp_rt_matmul";
  let description = [{
    Each becomes a description on the stack (sizes, strides, types, up to four
    batch dimensions) and one call. The result is overwritten where the op is
    marked `hp.overwrite`, and added to elsewhere.
  }];
  let statistics = [
    Statistic<"numMatmuls", "num-matmuls", "Calls written">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::LLVM::LLVMDialect",
    "mlir::memref::MemRefDialect"
  ];
}

def ExpandMath : Pass<"hp-expand-math"> {
  let summary = "Replaces scalar math ops by arithmetic that vectorises";
  let description = [{
    Elementary functions of f32 become polynomials without branches, within 4e-7
    of the true value; a loop of them is vectorised as any other arithmetic. f64
    and the rarer functions stay calls of the C library.
  }];
  let options = [
    Option<"extrema", "extrema", "bool", "false",
           "Make maximumf and minimumf intrinsics of LLVM, of which rows are "
           "vectorised">
  ];
  let statistics = [
    Statistic<"numExpanded", "num-expanded", "Ops replaced">
  ];
  let dependentDialects = ["mlir::arith::ArithDialect", "mlir::LLVM::LLVMDialect",
                            "mlir::math::MathDialect"];
}

def ConvertOffloadToRuntime
    : Pass<"hp-convert-offload-to-runtime", "mlir::ModuleOp"> {
  let summary = "Turns prefetches and stores into copies of the runtime";
  let description = [{
    A copy is started and waited for by calls of private functions on its two
    buffers. Every tier but the device becomes the runtime's host tier.
  }];
  let statistics = [
    Statistic<"numPrefetches", "num-prefetches", "Copies to the device">,
    Statistic<"numStores", "num-stores", "Copies from the device">
  ];
  let dependentDialects = [
    "mlir::bufferization::BufferizationDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect", "mlir::memref::MemRefDialect"
  ];
}

def ConvertHyperMPMDToRuntime
    : Pass<"hp-convert-hypermpmd-to-runtime", "mlir::ModuleOp"> {
  let summary = "Turns sends and receives into messages of the runtime";
  let description = [{
    Each becomes a call of a private function on its buffer, which has the blocks
    of all devices of the group as a table and does those of the calling device.
  }];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Sends and receives">
  ];
  let dependentDialects = [
    "mlir::bufferization::BufferizationDialect", "mlir::func::FuncDialect",
    "mlir::LLVM::LLVMDialect", "mlir::memref::MemRefDialect",
    "mlir::hyperparallel::stream::StreamDialect"
  ];
}

def MeasureBuffers : Pass<"hp-measure-buffers", "mlir::ModuleOp"> {
  let summary = "Says how much memory each function takes";
  let description = [{
    Hangs `hp.peak_bytes` on every function: the most bytes that it has allocated
    at once, callees included, in each of the runtime's tiers (device, pinned,
    host, file). What it is given and gives back is not counted. The runtime
    measures the same numbers.
  }];
  let statistics = [
    Statistic<"numMeasured", "num-measured", "Functions with a static peak">,
    Statistic<"numUnknown", "num-unknown", "Functions without one">
  ];
}

def InlineDynamicCallees : Pass<"hp-inline-dynamic-callees", "mlir::ModuleOp"> {
  let summary = "Writes functions on buffers of dynamic shape where they are called";
  let description = [{
    Buffers are passed as bare pointers, which carry no shape. The function that
    upstream's buffer deallocation adds for buffers whose owner is known at run
    time only is one of those.
  }];
  let statistics = [
    Statistic<"numInlined", "num-inlined", "Calls replaced by a body">
  ];
  let dependentDialects = ["mlir::func::FuncDialect"];
}

def ConvertToLLVM : Pass<"hp-convert-to-llvm", "mlir::ModuleOp"> {
  let summary = "Finishes lowering to the LLVM dialect and the runtime's ABI";
  let description = [{
    Buffers come from `hp_rt_alloc`, assertions end in `hp_rt_assert_fail`, calls
    marked `hp.parallel_grain` go through `hp_rt_parallel_for`, and every public
    function `f` gets an entry `void hp_entry_f(void** args, void** results)`.
  }];
  let dependentDialects = ["mlir::LLVM::LLVMDialect"];
}

def ConvertStreamToRuntime
    : Pass<"convert-stream-to-runtime", "mlir::ModuleOp"> {
  let summary = "Turns streams into calls of the runtime";
  let description = [{
    `stream.on` becomes its call between `hp_rt_stream_begin` and
    `hp_rt_stream_end`, `stream.record` `hp_rt_stream_mark`, `stream.wait`
    `hp_rt_stream_wait`. Attributes of the dialect are removed.
  }];
  let statistics = [
    Statistic<"numQueued", "num-queued", "Calls on a stream">,
    Statistic<"numMarks", "num-marks", "Records converted">
  ];
  let dependentDialects = ["mlir::LLVM::LLVMDialect"];
}

def ConvertHyperShardToRuntime
    : Pass<"convert-hypershard-to-runtime", "mlir::ModuleOp"> {
  let summary = "Turns local collectives into calls of the runtime";
  let description = [{
    Runs on tensors, before bufferization. Collectives become functions of two
    buffers that call `hp_rt_*`; `axis_index` becomes arithmetic on the device's
    id, and `slice_local` a slice. Meshes are erased. With `blocks-first` members'
    blocks lie one after the other in what a collective is given and gives, and
    transposes put them in place: a back end that moves whole buffers needs none of
    its own.
  }];
  let options = [
    Option<"blocksFirst", "blocks-first", "bool", "false",
           "Arrange the blocks of members in the program">
  ];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Ops of the dialect replaced">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::bufferization::BufferizationDialect",
    "mlir::func::FuncDialect", "mlir::linalg::LinalgDialect",
    "mlir::LLVM::LLVMDialect", "mlir::hyperparallel::stream::StreamDialect",
    "mlir::memref::MemRefDialect", "mlir::tensor::TensorDialect"
  ];
}

def ConvertConvolutionsToContractions
    : Pass<"convert-convolutions-to-contractions", "mlir::ModuleOp"> {
  let summary = "Turns convolutions into matmuls on gathered patches";
  let description = [{
    Afterwards a convolution with input and output channels is a contraction.
    Depthwise convolutions and pooling stay as they are.
  }];
  let statistics = [
    Statistic<"numConverted", "num-converted", "Convolutions rewritten">,
    Statistic<"numLeft", "num-left", "Windowed ops left as they are">
  ];
  let dependentDialects = [
    "mlir::linalg::LinalgDialect", "mlir::tensor::TensorDialect"
  ];
}

def FormDeviceKernels : Pass<"hp-form-device-kernels", "mlir::ModuleOp"> {
  let summary = "Turns linalg on buffers into kernels of a device";
  let description = [{
    Groups structured ops as `hp-form-kernels` does, and writes each group as one
    private function that all threads of all blocks run: a thread for 16 bytes'
    worth of neighbouring elements, or a block for a row, whose threads share its
    contiguous loop and combine their parts of reductions, or a block for a square
    of elements, which reads what is contiguous along another loop than the
    result by way of shared memory. A loop that looks up
    in memory where it goes on (that of `indexing.scatter_add`) is one kernel,
    of which a thread does an element of all iterations. The function carries
    `hp.kernel` and `hp.geometry = [blocks, threads of a block]`.
  }];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernel functions written">,
    Statistic<"numShared", "num-shared", "Kernels equal to an earlier one">,
    Statistic<"numElements", "num-elements", "Of them, a thread for neighbours">,
    Statistic<"numTiles", "num-tiles",
              "Of them, a block for a square, by way of shared memory">,
    Statistic<"numColumns", "num-columns", "Of them, a thread for a reduction">,
    Statistic<"numRows", "num-rows", "Of them, a block for a row">,
    Statistic<"numSerial", "num-serial",
              "Of them, a thread for a row: no single combiner">,
    Statistic<"numLoops", "num-loops",
              "Of them, a thread for an element of all iterations of a loop">
  ];
  let dependentDialects = [
    "mlir::affine::AffineDialect", "mlir::arith::ArithDialect",
    "mlir::func::FuncDialect", "mlir::linalg::LinalgDialect",
    "mlir::LLVM::LLVMDialect", "mlir::memref::MemRefDialect",
    "mlir::scf::SCFDialect"
  ];
}

def CallLibrary : Pass<"hp-call-library", "mlir::ModuleOp"> {
  let summary = "Has a vendor's operators do what needs whole buffers";
  let description = [{
    Prepares linalg on buffers for devices whose kernels are written from whole
    tensors. What an op's body loads at an index that it computes is gathered
    before, by the operator `embedding`; loops that add rows at computed places
    are the operator `index_add`; what only moves elements between
    buffers with gaps, or in another order, is the operator `copy` (of whole
    buffers, `permute`), and other ops get copies without gaps and in the order of
    their loops; constants are uploaded. A call of an operator is a call of a private
    function with `hp.library` (its name) and `hp.words` (element type, rank,
    sizes and strides of each buffer, then numbers of the operator).
  }];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect"
  ];
}

def OutlineOperators : Pass<"hp-outline-operators", "mlir::ModuleOp"> {
  let summary = "Puts what one operator of a vendor computes into a function of its own";
  let description = [{
    On tensors, before fusion: structured ops that together are a softmax, a layer
    normalisation or an RMS normalisation along the last dimension become a call of
    a private function, which has them as they were. It carries `hp.operator` (the
    name), `hp.epsilon`, and `hp.results` (by number, which of the operator's results
    it gives: the whole one, then the rows' means and reciprocal deviations).
    `hp-choose-operators` decides whether it is called. Not outlined are forms of
    other types than f32, f16 and bf16, and those of which something else is used
    that an operator does not give.
  }];
  let options = [
    Option<"leaveAttention", "leave-attention", "bool", /*default=*/"false",
           "Leave a softmax that only a product reads: hp-form-attention takes it">
  ];
  let statistics = [
    Statistic<"numOutlined", "num-outlined", "Forms that are calls now">
  ];
  let dependentDialects = ["mlir::func::FuncDialect"];
}

def UnifyProductTypes : Pass<"hp-unify-product-types", "mlir::ModuleOp"> {
  let summary = "Gives the operands and the result of a product one element type";
  let description = [{
    For libraries whose products give the type that they are given, with sums in f32.
    On tensors: where all that is done with a sum of f16 or bf16 in f32 is to round it
    to that type, the product gives it so. The operands of others are widened by ops
    of their own, so that the copies are in every plan of memory.
  }];
  let statistics = [
    Statistic<"numNarrowed", "num-narrowed", "Products that round their result">,
    Statistic<"numWidened", "num-widened", "Operands that are widened before">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::linalg::LinalgDialect",
    "mlir::tensor::TensorDialect"
  ];
}

def ChooseOperators : Pass<"hp-choose-operators", "mlir::ModuleOp"> {
  let summary = "Calls a vendor's operators where fragments would not be cheaper";
  let description = [{
    For each function of `hp-outline-operators`, on buffers: the operator is called
    if that takes no more launches and trips to memory than fragments do, in which
    its ops may share both with their neighbours. Groups that are one function of
    elements, one change of their type, one fill, or one reduction are operators, too.
    What was chosen and why is counted in the module's `hp.choices`, and told with
    its figures in remarks (category `hp-choose-operators`).
  }];
  let options = [
    Option<"operators", "operators", "std::string", "\"by-cost\"",
           "Which are called: by-cost, always, never">,
    Option<"bytesPerLaunch", "bytes-per-launch", "int64_t", "4194304",
           "Bytes that are moved in the time of a launch; by the vendor's figures "
           "for Ascend910B1 (1.6 TB/s, some microseconds)">
  ];
  let statistics = [
    Statistic<"numOperators", "num-operators", "Operators that are called">,
    Statistic<"numFragments", "num-fragments",
              "Outlined forms that became parts of fragments">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::func::FuncDialect",
    "mlir::linalg::LinalgDialect", "mlir::memref::MemRefDialect"
  ];
}

def FormFragments : Pass<"hp-form-fragments", "mlir::ModuleOp"> {
  let summary = "Turns linalg on buffers into fragments of HFusion";
  let description = [{
    Groups structured ops as `hp-form-kernels` does, and writes each group as one
    function on tensors in the text of HFusion, the dialect that Ascend's
    compiler takes. The group becomes a call of a private function whose
    attribute `hp.fragment` is that text. Texts of assertions are listed in the
    module's `hp.assertions`. What Ascend's compiler refused before, the module's
    `hp.refused` lists by MD5 digests of texts: these fragments are cut in halves,
    until a part is not listed, or is one op.
  }];
  let statistics = [
    Statistic<"numFragments", "num-fragments", "Fragments written">,
    Statistic<"numCuts", "num-cuts", "Fragments cut in parts">,
    Statistic<"numShared", "num-shared", "Fragments equal to an earlier one">,
    Statistic<"numCopies", "num-copies",
              "Results that went to a buffer of their own first">
  ];
  let dependentDialects = [
    "mlir::func::FuncDialect", "mlir::linalg::LinalgDialect",
    "mlir::memref::MemRefDialect"
  ];
}

def ReserveWorkspace : Pass<"hp-reserve-workspace", "mlir::ModuleOp"> {
  let summary = "Allocates what products and operators of a library need beside their operands";
  let description = [{
    On buffers, before they get places in an arena: each product that the runtime
    does, and each call of an operator (`hp.library`) but those that the host does
    itself, gets a buffer that lives while it runs, and of which the runtime is
    told before and after by the operator `workspace`. It has as many bytes as the
    operands and results of the call, at most 32 MiB; where the module has
    `hp.workspace`, as many as that says, or none. A library that wants more draws it
    from the device's memory while the program runs; one that can do with less does.

    `hp.reserved` of the module says how many bytes the largest one has, how many
    calls have one, and why so much. Remarks have the same.
  }];
  let statistics = [
    Statistic<"numReserved", "num-reserved", "Calls with a workspace">,
    Statistic<"mostBytes", "most-bytes", "Bytes of the largest workspace">
  ];
  let dependentDialects = ["mlir::func::FuncDialect",
                           "mlir::memref::MemRefDialect"];
}

def LaunchDeviceKernels : Pass<"hp-launch-device-kernels", "mlir::ModuleOp"> {
  let summary = "Turns calls of kernels into launches, and moves kernels to a module of their own";
  let description = [{
    A call stores its arguments in words and calls `hp_rt_launch` with the
    kernel's name and geometry; kernels go into the nested module `@hp_device`,
    with the constants that they read. Loads and stores of the device's memory
    that are left on the host become copies that wait; assertions of kernels
    are numbered, and their texts exported as `hp_program_assertions`. A call of
    an operator (`hp.library`) becomes one of `hp_rt_library`, of `workspace` one of
    `hp_rt_workspace`; fragments of
    `hp-form-fragments` are listed in `hp.fragments` of `@hp_device`.
  }];
  let statistics = [
    Statistic<"numLaunches", "num-launches", "Launches written">,
    Statistic<"numHostAccesses", "num-host-accesses",
              "Loads and stores of the host in the device's memory">
  ];
  let dependentDialects = [
    "mlir::arith::ArithDialect", "mlir::LLVM::LLVMDialect",
    "mlir::memref::MemRefDialect"
  ];
}

def ConvertDeviceToLLVM : Pass<"hp-convert-device-to-llvm", "mlir::ModuleOp"> {
  let summary = "Finishes lowering kernels of a device to the LLVM dialect";
  let description = [{
    Buffers become pointers aligned to 16 bytes. Kernels get the calling
    convention of PTX's entries and `hp.threads`, the size of their blocks. A
    thread that fails an assertion leaves its number in the kernel's last
    argument and returns.
  }];
  let statistics = [
    Statistic<"numKernels", "num-kernels", "Kernels converted">
  ];
  let dependentDialects = ["mlir::LLVM::LLVMDialect"];
}

def BindRuntimeImports : Pass<"hp-bind-runtime-imports", "mlir::ModuleOp"> {
  let summary = "Lets a program reach the runtime of the back end that loads it";
  let description = [{
    Makes every function `hp_rt_*` that is called a function of the program,
    which jumps to where a slot points. `hp_program_import_names` and
    `hp_program_import_slots` list them; the back end fills the slots when it
    loads the program. So several back ends can be in one process.
  }];
  let statistics = [
    Statistic<"numImports", "num-imports", "Functions of the runtime bound">
  ];
  let dependentDialects = ["mlir::LLVM::LLVMDialect"];
}
