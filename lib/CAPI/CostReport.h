/*===- CostReport.h - C API: the cost of a program ---------------*- C -*-==*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===--------------------------------------------------------------------===*/
#ifndef HYPERPARALLEL_LIB_CAPI_COSTREPORT_H
#define HYPERPARALLEL_LIB_CAPI_COSTREPORT_H

#include "mlir-c/IR.h"
#include "mlir-c/Support.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Hands JSON with the cost of every task of the module to `callback`, on the
 * machine that the module names, or else on the preset "cpu-supernode". */
MLIR_CAPI_EXPORTED void
hpCostReport(MlirModule module, MlirStringCallback callback, void *userData);

#ifdef __cplusplus
}
#endif

#endif /* HYPERPARALLEL_LIB_CAPI_COSTREPORT_H */
