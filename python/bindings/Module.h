//===- Module.h - the parts of the Python extension -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
#ifndef HYPERPARALLEL_PYTHON_BINDINGS_MODULE_H
#define HYPERPARALLEL_PYTHON_BINDINGS_MODULE_H

#include <nanobind/nanobind.h>

namespace hyperparallel {

void bindCodeGen(nanobind::module_ &m);
void bindHyperShard(nanobind::module_ &m);
void bindPlanner(nanobind::module_ &m);
void bindSupernode(nanobind::module_ &m);
void bindScheduler(nanobind::module_ &m);
void bindSimulator(nanobind::module_ &m);

} // namespace hyperparallel

#endif // HYPERPARALLEL_PYTHON_BINDINGS_MODULE_H
