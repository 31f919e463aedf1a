// Replaced by the partition files as they land.
#include "lib/ExternalModels/Partitions.h"
using namespace mlir;
using namespace mlir::hyperparallel;
#define MISSING(name, type) LogicalResult mlir::hyperparallel::name(type op, PartitionContext &) { return op->emitOpError("cannot be partitioned"); }
MISSING(partitionLinalg, linalg::LinalgOp)
MISSING(partitionReshape, Operation *)
MISSING(partitionExtractSlice, tensor::ExtractSliceOp)
MISSING(partitionInsertSlice, tensor::InsertSliceOp)
MISSING(partitionPad, tensor::PadOp)
MISSING(partitionConcat, tensor::ConcatOp)
MISSING(partitionGenerate, tensor::GenerateOp)
MISSING(partitionConstant, arith::ConstantOp)
MISSING(partitionSameDims, Operation *)
