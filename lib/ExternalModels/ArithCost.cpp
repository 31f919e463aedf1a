//===- ArithCost.cpp - what scalar and elementwise ops cost ---------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
// One operation per element of the result, but: constants and conversions none,
// arithmetic on indices none (it is folded into addresses), a fused
// multiply-add two, a division or root four, the larger or smaller of two
// (which hands NaN on) eight, and a transcendental function what
// it takes beside an exponential, which is set to ten: about what a polynomial
// of the needed degree takes. The proportions are those of vectorised code
// (lib/Conversion/MathToPolynomials), measured. On tensors, operands are read
// and results written once.
//===----------------------------------------------------------------------===//
#include "dialects/Interfaces/CostOpInterface.h"
#include "lib/ExternalModels/AttachModels.h"
#include "lib/ExternalModels/Costs.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/TypeUtilities.h"

using namespace mlir;
using namespace mlir::hyperparallel;

static constexpr double kRootFlops = 4, kOrderFlops = 8, kExpFlops = 10,
                        kLogFlops = 20, kErfFlops = 35;

static OpCost costPerElement(Operation *op, double flops) {
  OpCost cost;
  for (Type type : op->getResultTypes()) {
    auto shaped = dyn_cast<ShapedType>(type);
    if (!isa<IndexType>(getElementTypeOrSelf(type))) {
      if (!shaped)
        cost.flops += flops;
      else if (shaped.hasStaticShape())
        cost.flops += flops * shaped.getNumElements();
    }
    if (isa<RankedTensorType>(type))
      cost.bytesWritten += byteSize(type);
  }
  for (Type type : op->getOperandTypes())
    if (isa<RankedTensorType>(type))
      cost.bytesRead += byteSize(type);
  return cost;
}

/// A comparison of indices has a result that is no index.
static bool isOnIndices(Operation *op) {
  return op->getNumOperands() > 0 &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           return isa<IndexType>(getElementTypeOrSelf(type));
         });
}

namespace {
template <typename OpTy>
struct ElementwiseCost
    : CostOpInterface::ExternalModel<ElementwiseCost<OpTy>, OpTy> {
  static constexpr double flops() {
    if constexpr (llvm::is_one_of<
                      OpTy, arith::ExtFOp, arith::ExtSIOp, arith::ExtUIOp,
                      arith::TruncFOp, arith::TruncIOp, arith::SIToFPOp,
                      arith::UIToFPOp, arith::FPToSIOp, arith::FPToUIOp,
                      arith::IndexCastOp, arith::IndexCastUIOp,
                      arith::BitcastOp>::value)
      return 0;
    if constexpr (std::is_same_v<OpTy, math::FmaOp>)
      return 2;
    if constexpr (llvm::is_one_of<OpTy, arith::DivFOp, arith::DivSIOp,
                                  arith::DivUIOp, arith::RemFOp, arith::RemSIOp,
                                  arith::RemUIOp, math::SqrtOp,
                                  math::RsqrtOp>::value)
      return kRootFlops;
    if constexpr (llvm::is_one_of<OpTy, arith::MaximumFOp,
                                  arith::MinimumFOp>::value)
      return kOrderFlops;
    if constexpr (llvm::is_one_of<OpTy, math::ExpOp, math::Exp2Op,
                                  math::ExpM1Op>::value)
      return kExpFlops;
    if constexpr (llvm::is_one_of<OpTy, math::ErfOp, math::ErfcOp, math::PowFOp,
                                  math::FPowIOp, math::IPowIOp>::value)
      return kErfFlops;
    if constexpr (llvm::is_one_of<
                      OpTy, math::AcosOp, math::AcoshOp, math::AsinOp,
                      math::AsinhOp, math::AtanOp, math::Atan2Op, math::AtanhOp,
                      math::CbrtOp, math::CosOp, math::CoshOp, math::LogOp,
                      math::Log10Op, math::Log1pOp, math::Log2Op, math::SinOp,
                      math::SinhOp, math::TanOp, math::TanhOp>::value)
      return kLogFlops;
    return 1;
  }

  OpCost getCost(Operation *op) const {
    if (isa<arith::ConstantOp>(op))
      return {};
    return costPerElement(op, isOnIndices(op) ? 0 : flops());
  }
};
} // namespace

void mlir::hyperparallel::registerArithCosts(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, arith::ArithDialect *) {
    attachModels<ElementwiseCost,
#define GET_OP_LIST
#include "mlir/Dialect/Arith/IR/ArithOps.cpp.inc"
                 >(context);
  });
  registry.addExtension(+[](MLIRContext *context, math::MathDialect *) {
    attachModels<ElementwiseCost,
#define GET_OP_LIST
#include "mlir/Dialect/Math/IR/MathOps.cpp.inc"
                 >(context);
  });
}
