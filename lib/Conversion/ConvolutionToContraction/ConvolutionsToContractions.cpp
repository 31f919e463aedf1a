//===- ConvolutionsToContractions.cpp - Convolutions as matmuls -----------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Any convolution with input and output channels, whatever its layout, strides,
// dilations and groups:
//
//   1. The image is gathered to patches: a tensor with a dimension for every
//      loop that the image's indexing map uses. With stride 1 the image loops
//      come last, else the filter loops do: what is contiguous in the image
//      stays so.
//   2. The convolution becomes the same loops over patches, which index every
//      operand plainly: a contraction, which the runtime's matmul computes.
//
// Filters of size 1 with stride 1 need no patches. Patches take as many times
// the image's memory as windows overlap. Depthwise convolutions (no reduction
// over channels) stay as they are: they become kernels.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToRuntime/ContractionLayout.h"
#include "lib/Conversion/Passes.h"

#include "mlir/Dialect/Linalg/IR/LinalgInterfaces.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace mlir::hyperparallel {
#define GEN_PASS_DEF_CONVERTCONVOLUTIONSTOCONTRACTIONS
#include "lib/Conversion/Passes.h.inc"
} // namespace mlir::hyperparallel

using namespace mlir;
using linalg::GenericOp;
using linalg::LinalgOp;

namespace mlir::hyperparallel {

/// The order of the dimensions of patches, as loops of the convolution.
static SmallVector<unsigned>
getPatchLoops(const linalg::ConvolutionDimensions &dims) {
  SmallVector<unsigned> order(dims.batch.begin(), dims.batch.end());
  llvm::append_range(order, dims.depth);
  SmallVector<unsigned> window(dims.inputChannel.begin(),
                               dims.inputChannel.end());
  llvm::append_range(window, dims.filterLoop);
  bool hasUnitStride = dims.strides.back() == 1;
  if (hasUnitStride)
    llvm::append_range(order, window);
  llvm::append_range(order, dims.outputImage);
  if (!hasUnitStride)
    llvm::append_range(order, window);
  return order;
}

/// Step 1.
static Value gatherPatches(IRRewriter &rewriter, GenericOp op,
                           ArrayRef<unsigned> loops) {
  MLIRContext *context = op.getContext();
  Location loc = op.getLoc();
  OpOperand *image = op.getDpsInputOperand(0);
  SmallVector<int64_t> extents = op.getStaticLoopRanges(), shape;
  SmallVector<AffineExpr> renumber(op.getNumLoops(),
                                   getAffineConstantExpr(0, context));
  for (auto [position, loop] : llvm::enumerate(loops)) {
    shape.push_back(extents[loop]);
    renumber[loop] = getAffineDimExpr(position, context);
  }
  AffineMap source = op.getMatchingIndexingMap(image).replaceDimsAndSymbols(
      renumber, {}, loops.size(), /*numResultSyms=*/0);
  auto type = cast<RankedTensorType>(image->get().getType());
  Value empty =
      tensor::EmptyOp::create(rewriter, loc, shape, type.getElementType());
  SmallVector<utils::IteratorType> iterators(loops.size(),
                                             utils::IteratorType::parallel);
  return GenericOp::create(
             rewriter, loc, TypeRange(empty.getType()),
             ValueRange(image->get()), ValueRange(empty),
             ArrayRef<AffineMap>{source, AffineMap::getMultiDimIdentityMap(
                                             loops.size(), context)},
             iterators,
             [](OpBuilder &nested, Location nestedLoc, ValueRange args) {
               linalg::YieldOp::create(nested, nestedLoc, args[0]);
             })
      ->getResult(0);
}

/// True if the image is read at the output's own positions.
static bool isPointwise(LinalgOp op,
                        const linalg::ConvolutionDimensions &dims) {
  SmallVector<int64_t> extents = op.getStaticLoopRanges();
  return llvm::all_of(dims.strides, [](int64_t s) { return s == 1; }) &&
         llvm::all_of(dims.filterLoop,
                      [&](unsigned loop) { return extents[loop] == 1; });
}

/// The image's map without the filter's loops, which are all of size 1.
static AffineMap getPointwiseMap(GenericOp op,
                                 const linalg::ConvolutionDimensions &dims) {
  MLIRContext *context = op.getContext();
  SmallVector<AffineExpr> replacements;
  for (unsigned loop = 0; loop < op.getNumLoops(); ++loop)
    replacements.push_back(llvm::is_contained(dims.filterLoop, loop)
                               ? getAffineConstantExpr(0, context)
                               : getAffineDimExpr(loop, context));
  return op.getMatchingIndexingMap(op.getDpsInputOperand(0))
      .replaceDimsAndSymbols(replacements, {}, op.getNumLoops(), 0);
}

/// The same op on another image tensor and map.
static GenericOp replaceImage(IRRewriter &rewriter, GenericOp op, Value image,
                              AffineMap map) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  maps[0] = map;
  SmallVector<Value> inputs = op.getDpsInputs();
  inputs[0] = image;
  auto fresh =
      GenericOp::create(rewriter, op.getLoc(), op->getResultTypes(), inputs,
                        op.getDpsInits(), maps, op.getIteratorTypesArray());
  rewriter.inlineRegionBefore(op.getRegion(), fresh.getRegion(),
                              fresh.getRegion().begin());
  rewriter.replaceOp(op, fresh->getResults());
  return fresh;
}

/// True for convolutions that become one matmul per group.
static bool isMatmulLike(LinalgOp op,
                         const linalg::ConvolutionDimensions &dims) {
  return !dims.outputChannel.empty() && !dims.inputChannel.empty() &&
         !dims.outputImage.empty() && !op.hasDynamicShape() &&
         op.hasPureTensorSemantics() && op.getNumDpsInputs() == 2 &&
         isa<FloatType>(getElementTypeOrSelf(op->getOperand(0).getType()));
}

namespace {
struct ConvertConvolutionsToContractionsPass
    : impl::ConvertConvolutionsToContractionsBase<
          ConvertConvolutionsToContractionsPass> {
  void runOnOperation() override {
    SmallVector<LinalgOp> convolutions;
    getOperation().walk([&](LinalgOp op) {
      if (isa<linalg::ConvolutionOpInterface>(op.getOperation()) ||
          linalg::isaConvolutionOpInterface(op))
        convolutions.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (LinalgOp op : convolutions) {
      FailureOr<linalg::ConvolutionDimensions> dims =
          linalg::inferConvolutionDims(op);
      if (failed(dims) || !isMatmulLike(op, *dims)) {
        ++numLeft;
        continue;
      }
      rewriter.setInsertionPoint(op);
      auto generic = dyn_cast<GenericOp>(op.getOperation());
      if (!generic) {
        FailureOr<GenericOp> named = linalg::generalizeNamedOp(rewriter, op);
        if (failed(named)) {
          ++numLeft;
          continue;
        }
        generic = *named;
      }
      rewriter.setInsertionPoint(generic);
      if (isPointwise(generic, *dims)) {
        AffineMap map = getPointwiseMap(generic, *dims);
        generic =
            replaceImage(rewriter, generic, generic.getDpsInputs()[0], map);
      } else {
        SmallVector<unsigned> loops = getPatchLoops(*dims);
        Value patches = gatherPatches(rewriter, generic, loops);
        SmallVector<AffineExpr> exprs;
        for (unsigned loop : loops)
          exprs.push_back(rewriter.getAffineDimExpr(loop));
        generic = replaceImage(
            rewriter, generic, patches,
            AffineMap::get(generic.getNumLoops(), 0, exprs, &getContext()));
      }
      ++numConverted;
    }
  }
};
} // namespace

} // namespace mlir::hyperparallel
