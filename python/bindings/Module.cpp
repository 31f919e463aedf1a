//===- Module.cpp - the Python extension ----------------------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#include "python/bindings/Module.h"
#include "lib/CAPI/Registration.h"

#include "mlir/Bindings/Python/NanobindAdaptors.h"

namespace nb = nanobind;

NB_MODULE(_hyperparallel, m) {
  m.doc() = "HyperParallel's dialects and passes for the stock mlir package";
  hpRegisterPasses();
  m.def(
      "register_dialects",
      [](MlirDialectRegistry registry) { hpRegisterDialects(registry); },
      nb::arg("registry"),
      "Adds the dialects, and the models of foreign ops, to a registry.");
  hyperparallel::bindCodeGen(m);
  hyperparallel::bindHyperShard(m);
  hyperparallel::bindPlanner(m);
  hyperparallel::bindSupernode(m);
  hyperparallel::bindScheduler(m);
  hyperparallel::bindSimulator(m);
}
