//===- HyperShardOps.cpp - verifiers --------------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "dialects/HyperShard/HyperShard.h"
#include "dialects/HyperShard/MeshAxes.h"

using namespace mlir;
using namespace mlir::hyperparallel;
using namespace mlir::hyperparallel::hypershard;

//===----------------------------------------------------------------------===//
// `{"a", "b":(1)2}`
//===----------------------------------------------------------------------===//

static ParseResult parseAxisList(OpAsmParser &parser, ArrayAttr &axes) {
  SmallVector<Attribute> refs;
  auto parseOne = [&]() -> ParseResult {
    std::string name;
    int64_t preSize = 0, size = 0;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseString(&name))
      return failure();
    if (succeeded(parser.parseOptionalColon()) &&
        (parser.parseLParen() || parser.parseInteger(preSize) ||
         parser.parseRParen() || parser.parseInteger(size)))
      return failure();
    auto ref =
        getVerified<AxisRefAttr>([&] { return parser.emitError(loc); },
                                 parser.getContext(), name, preSize, size);
    if (!ref)
      return failure();
    refs.push_back(ref);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Braces, parseOne))
    return failure();
  axes = ArrayAttr::get(parser.getContext(), refs);
  return success();
}

static void printAxisList(OpAsmPrinter &printer, Operation *, ArrayAttr axes) {
  printer << '{';
  llvm::interleaveComma(
      axes.getAsRange<AxisRefAttr>(), printer, [&](AxisRefAttr axis) {
        printer << '"' << axis.getName() << '"';
        if (axis.isSubAxis())
          printer << ":(" << axis.getPreSize() << ')' << axis.getSize();
      });
  printer << '}';
}

#define GET_OP_CLASSES
#include "dialects/HyperShard/HyperShardOps.cpp.inc"

//===----------------------------------------------------------------------===//
// Annotations
//===----------------------------------------------------------------------===//

static LogicalResult verifyAnnotation(Operation *op, ShardingAttr sharding,
                                      Type type,
                                      SymbolTableCollection &tables) {
  MeshOp mesh = lookupMesh(op, sharding.getMesh(), tables);
  if (!mesh)
    return op->emitOpError()
           << "expected a mesh of the module but got " << sharding.getMesh();
  return sharding.verifyAgainst(mesh.getMesh(), type,
                                [&] { return op->emitOpError(); });
}

LogicalResult ConstraintOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAnnotation(*this, getSharding(), getType(), tables);
}

LogicalResult ReshardOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyAnnotation(*this, getSharding(), getType(), tables);
}

/// The type of one device's part; null if a split dimension does not divide.
static RankedTensorType divide(RankedTensorType type, ShardingAttr sharding,
                               const MeshAxes &mesh) {
  SmallVector<int64_t> shape(type.getShape());
  for (auto [size, dim] : llvm::zip(shape, sharding.getDims())) {
    int64_t shards = numShards(mesh.fromAttrs(dim.getAxes()));
    if (size % shards != 0)
      return {};
    size /= shards;
  }
  return type.clone(shape);
}

static LogicalResult verifyManualSide(ManualOp op, ArrayAttr shardings,
                                      TypeRange globals, TypeRange locals,
                                      StringRef what,
                                      SymbolTableCollection &tables) {
  if (shardings.size() != globals.size() || globals.size() != locals.size())
    return op.emitOpError()
           << "expected one sharding and one local value per " << what
           << " but got " << shardings.size() << " and " << locals.size()
           << " for " << globals.size();
  for (auto [index, attr] : llvm::enumerate(shardings)) {
    auto sharding = cast<ShardingAttr>(attr);
    if (failed(verifyAnnotation(op, sharding, globals[index], tables)))
      return failure();
    if (sharding.getMesh() != cast<ShardingAttr>(op.getInShardings().empty()
                                                     ? op.getOutShardings()[0]
                                                     : op.getInShardings()[0])
                                  .getMesh())
      return op.emitOpError("expected all shardings on one mesh");
    MeshAxes mesh(lookupMesh(op, sharding.getMesh(), tables).getMesh());
    auto local = divide(cast<RankedTensorType>(globals[index]), sharding, mesh);
    if (!local)
      return op.emitOpError() << "expected the split dimensions of " << what
                              << ' ' << index << " (" << globals[index]
                              << ") to be divisible under " << sharding;
    if (local != locals[index])
      return op.emitOpError()
             << "expected the local type of " << what << ' ' << index
             << " to be " << local << " but got " << locals[index];
  }
  return success();
}

LogicalResult ManualOp::verifyRegions() {
  auto terminator = dyn_cast<ReturnOp>(getBody().front().getTerminator());
  if (!terminator)
    return emitOpError("expected its body to end with hypershard.return");
  return success();
}

LogicalResult ManualOp::verifySymbolUses(SymbolTableCollection &tables) {
  Block &block = getBody().front();
  if (failed(verifyManualSide(*this, getInShardings(), getInputs().getTypes(),
                              block.getArgumentTypes(), "operand", tables)))
    return failure();
  return verifyManualSide(*this, getOutShardings(), getOutputs().getTypes(),
                          block.getTerminator()->getOperandTypes(), "result",
                          tables);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {
/// What the verifiers of all collectives look at.
struct CollectiveShape {
  Operation *op;
  RankedTensorType input, result;
  int64_t groupSize;

  bool isGlobal() const {
    return op->hasAttr(HyperShardDialect::kShardingAttrName);
  }
  LogicalResult checkDim(int64_t dim, StringRef name) const {
    if (dim >= 0 && dim < input.getRank())
      return success();
    return op->emitOpError() << "expected " << name << " in [0, "
                             << input.getRank() << ") but got " << dim;
  }
  /// The result must be the input with the shape `shape`.
  LogicalResult checkResult(ArrayRef<int64_t> shape) const {
    RankedTensorType expected =
        input.clone(isGlobal() ? input.getShape() : shape);
    if (result == expected)
      return success();
    return op->emitOpError()
           << "expected the result of a group of " << groupSize << " to be "
           << expected << " but got " << result;
  }
  LogicalResult checkDivisible(int64_t dim) const {
    if (isGlobal() || input.getDimSize(dim) % groupSize == 0)
      return success();
    return op->emitOpError()
           << "expected dimension " << dim << " of " << input
           << " to be divisible by the group's " << groupSize << " devices";
  }
};
} // namespace

static FailureOr<int64_t> verifyGroup(Operation *op, FlatSymbolRefAttr name,
                                      ArrayAttr axes,
                                      SymbolTableCollection &tables) {
  MeshOp mesh = lookupMesh(op, name, tables);
  if (!mesh)
    return op->emitOpError()
           << "expected a mesh of the module but got " << name;
  auto scalar = RankedTensorType::get({1}, Float32Type::get(op->getContext()));
  SmallVector<AxisRefAttr> refs(axes.getAsRange<AxisRefAttr>());
  auto dim = DimShardingAttr::get(op->getContext(), refs, false, 0);
  auto emitError = [&] { return op->emitOpError(); };
  auto sharding = getVerified<ShardingAttr>(
      emitError, op->getContext(), name, ArrayRef<DimShardingAttr>(dim),
      ArrayRef<AxisRefAttr>(), PartialAttr());
  if (!sharding ||
      failed(sharding.verifyAgainst(mesh.getMesh(), scalar, emitError)))
    return failure();
  return numShards(MeshAxes(mesh.getMesh()).fromAttrs(axes));
}

template <typename OpTy>
static FailureOr<CollectiveShape> shapeOf(OpTy op,
                                          SymbolTableCollection &tables) {
  FailureOr<int64_t> size =
      verifyGroup(op, op.getMeshAttr(), op.getAxes(), tables);
  if (failed(size))
    return failure();
  auto input = cast<RankedTensorType>(op.getInput().getType());
  if (!input.hasStaticShape())
    return op.emitOpError() << "expected a static shape but got " << input;
  return CollectiveShape{op, input, op.getType(), *size};
}

static LogicalResult verifyAllGather(CollectiveShape shape, int64_t dim) {
  if (failed(shape.checkDim(dim, "dim")))
    return failure();
  SmallVector<int64_t> sizes(shape.input.getShape());
  sizes[dim] *= shape.groupSize;
  return shape.checkResult(sizes);
}

static LogicalResult verifyReduceScatter(CollectiveShape shape, int64_t dim) {
  if (failed(shape.checkDim(dim, "dim")) || failed(shape.checkDivisible(dim)))
    return failure();
  SmallVector<int64_t> sizes(shape.input.getShape());
  sizes[dim] /= shape.groupSize;
  return shape.checkResult(sizes);
}

static LogicalResult verifyAllToAll(CollectiveShape shape, int64_t split,
                                    int64_t concat) {
  if (failed(shape.checkDim(split, "split")) ||
      failed(shape.checkDim(concat, "concat")) ||
      failed(shape.checkDivisible(split)))
    return failure();
  if (split == concat)
    return shape.op->emitOpError()
           << "expected split and concat to be different dimensions";
  SmallVector<int64_t> sizes(shape.input.getShape());
  sizes[split] /= shape.groupSize;
  sizes[concat] *= shape.groupSize;
  return shape.checkResult(sizes);
}

#define HP_VERIFY_COLLECTIVE(OP, CHECK)                                        \
  LogicalResult OP::verifySymbolUses(SymbolTableCollection &tables) {          \
    FailureOr<CollectiveShape> shape = shapeOf(*this, tables);                 \
    if (failed(shape))                                                         \
      return failure();                                                        \
    return CHECK;                                                              \
  }

HP_VERIFY_COLLECTIVE(AllGatherOp, verifyAllGather(*shape, getDim()))
HP_VERIFY_COLLECTIVE(AllReduceOp, shape->checkResult(shape->input.getShape()))
HP_VERIFY_COLLECTIVE(ReduceScatterOp, verifyReduceScatter(*shape, getDim()))
HP_VERIFY_COLLECTIVE(AllToAllOp,
                     verifyAllToAll(*shape, getSplitDim(), getConcatDim()))
#undef HP_VERIFY_COLLECTIVE

/// The same devices on both sides: the axes cover the same parts of the mesh.
LogicalResult PermuteOp::verifySymbolUses(SymbolTableCollection &tables) {
  PermuteOp op = *this;
  FailureOr<CollectiveShape> shape = shapeOf(op, tables);
  if (failed(shape) ||
      failed(verifyGroup(op, op.getMeshAttr(), op.getToAxes(), tables)))
    return failure();
  MeshAxes mesh(lookupMesh(op, op.getMeshAttr(), tables).getMesh());
  auto covered = [&](ArrayAttr axes) {
    AxisList sorted = mesh.fromAttrs(axes);
    llvm::sort(sorted);
    return mergeAxes(sorted);
  };
  if (covered(op.getAxes()) != covered(op.getToAxes()))
    return op.emitOpError("expected the same axes on both sides, reordered");
  return shape->checkResult(shape->input.getShape());
}

LogicalResult SliceLocalOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<CollectiveShape> shape = shapeOf(*this, tables);
  if (failed(shape) || failed(shape->checkDim(getDim(), "dim")))
    return failure();
  SmallVector<int64_t> sizes(shape->input.getShape());
  sizes[getDim()] = (sizes[getDim()] + shape->groupSize - 1) / shape->groupSize;
  return shape->checkResult(sizes);
}

LogicalResult HaloExchangeOp::verifySymbolUses(SymbolTableCollection &tables) {
  FailureOr<CollectiveShape> shape = shapeOf(*this, tables);
  if (failed(shape) || failed(shape->checkDim(getDim(), "dim")))
    return failure();
  if (shape->isGlobal())
    return emitOpError(
        "expected no sharding: it exists in local programs only");
  // ODS hands integers out as unsigned.
  int64_t global = getGlobalSize(), size = getSize(), stride = getStride();
  int64_t block = (global + shape->groupSize - 1) / shape->groupSize;
  if (global < 0 || size < 0 || stride < 0)
    return emitOpError(
        "expected global size, step and window size of at least 0");
  if (shape->input.getDimSize(getDim()) != block)
    return emitOpError() << "expected dimension " << getDim()
                         << " to have the block size " << block << " of "
                         << global << " over " << shape->groupSize
                         << " devices but got "
                         << shape->input.getDimSize(getDim());
  SmallVector<int64_t> sizes(shape->input.getShape());
  sizes[getDim()] = size;
  return shape->checkResult(sizes);
}

LogicalResult AxisIndexOp::verifySymbolUses(SymbolTableCollection &tables) {
  return verifyGroup(*this, getMeshAttr(), getAxes(), tables);
}
