//===- CallArgmax.cpp - Greatest elements and where they are --------------===//
//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A reduction to the greatest elements along one dimension and to the first
// place of each is the operator `max_dim`: HFusion has no reduction by two
// combiners.
//
//   most, place = max(x, most), x > most ? index : place
//
// What is there before is what a fill put there: minus infinity, and any place.
//
// Cost: linear in ops.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/LinalgToHFusion/SimpleOperators.h"
#include "lib/Conversion/LinalgToHFusion/WholeBuffers.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using linalg::GenericOp;

namespace mlir::hyperparallel {

/// The reduced loop, if the body is that of the form.
static std::optional<int64_t> getArgmaxLoop(GenericOp op) {
  if (op.getNumDpsInputs() != 1 || op.getNumDpsInits() != 2 ||
      op.getNumReductionLoops() != 1)
    return std::nullopt;
  Block *body = op.getBlock();
  Value element = body->getArgument(0), most = body->getArgument(1),
        place = body->getArgument(2);
  auto greatest =
      body->getTerminator()->getOperand(0).getDefiningOp<arith::MaximumFOp>();
  auto chosen =
      body->getTerminator()->getOperand(1).getDefiningOp<arith::SelectOp>();
  auto compared = chosen ? chosen.getCondition().getDefiningOp<arith::CmpFOp>()
                         : arith::CmpFOp();
  auto cast = chosen ? chosen.getTrueValue().getDefiningOp<arith::IndexCastOp>()
                     : arith::IndexCastOp();
  auto index =
      cast ? cast.getIn().getDefiningOp<linalg::IndexOp>() : linalg::IndexOp();
  if (!greatest || !compared || !index ||
      compared.getPredicate() != arith::CmpFPredicate::OGT ||
      compared.getLhs() != element || compared.getRhs() != most ||
      chosen.getFalseValue() != place ||
      !llvm::is_contained(greatest->getOperands(), element) ||
      !llvm::is_contained(greatest->getOperands(), most))
    return std::nullopt;
  auto loop = static_cast<int64_t>(index.getDim());
  return linalg::isReductionIterator(op.getIteratorTypesArray()[loop])
             ? std::optional<int64_t>(loop)
             : std::nullopt;
}

void callArgmax(func::FuncOp function, LibraryCalls &library) {
  SmallVector<GenericOp> ops;
  function.walk([&](GenericOp op) { ops.push_back(op); });
  for (GenericOp op : ops) {
    std::optional<int64_t> loop = getArgmaxLoop(op);
    if (!loop)
      continue;
    linalg::FillOp before = findFill(op, op.getDpsInits()[0]),
                   places = findFill(op, op.getDpsInits()[1]);
    FloatAttr lowest;
    auto source = viewByLoops(op, op->getOpOperand(0)),
         most = viewByLoops(op, op->getOpOperand(1)),
         place = viewByLoops(op, op->getOpOperand(2));
    if (!before || !places || !source || !most || !place ||
        !matchPattern(before.getInputs()[0], m_Constant(&lowest)) ||
        !lowest.getValue().isInfinity() || !lowest.getValue().isNegative())
      continue;
    OpBuilder builder(op);
    library.call(builder, op.getLoc(), "max_dim", {*source, *most, *place}, {},
                 {*loop});
    op->erase();
    before->erase();
    places->erase();
  }
}

} // namespace mlir::hyperparallel
