/*===- hypershard.c - the C API of HyperShard, from C11 -------------------===*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===----------------------------------------------------------------------===*/
/* The headers are plain C; attributes are made, read and refused.
 *
 * RUN: hp-capi-hypershard 2>&1 | FileCheck %s
 */

#include "lib/CAPI/HyperShard.h"
#include "lib/CAPI/Registration.h"

#include "mlir-c/Diagnostics.h"
#include "mlir-c/IR.h"

#include <stdio.h>
#include <stdlib.h>

static MlirStringRef text(const char *chars) {
  return mlirStringRefCreateFromCString(chars);
}

static void show(MlirStringRef ref, void *unused) {
  (void)unused;
  fwrite(ref.data, 1, ref.length, stdout);
}

static void print(const char *what, MlirAttribute attr) {
  printf("%s: ", what);
  if (mlirAttributeIsNull(attr))
    printf("null");
  else
    mlirAttributePrint(attr, show, NULL);
  printf("\n");
}

static MlirLogicalResult report(MlirDiagnostic diagnostic, void *unused) {
  (void)unused;
  printf("refused: ");
  mlirDiagnosticPrint(diagnostic, show, NULL);
  printf("\n");
  return mlirLogicalResultSuccess();
}

static void meshes(MlirLocation loc) {
  MlirStringRef names[] = {text("dp"), text("tp")};
  int64_t sizes[] = {2, 3};
  int64_t order[] = {0, 1, 2, 5, 4, 3};
  MlirAttribute mesh = hpMeshAttrGet(loc, 2, names, sizes, 6, order);
  // CHECK: mesh: #hypershard.mesh<["dp"=2, "tp"=3], device_ids=[0, 1, 2, 5, 4, 3]>
  print("mesh", mesh);
  // CHECK-NEXT: 6 devices, last axis tp of 3, fourth device 5
  MlirStringRef last =
      hpMeshAttrGetAxisName(mesh, hpMeshAttrGetNumAxes(mesh) - 1);
  printf("%d devices, last axis %.*s of %d, fourth device %d\n",
         (int)hpMeshAttrGetNumDevices(mesh), (int)last.length, last.data,
         (int)hpMeshAttrGetAxisSize(mesh, 1),
         (int)hpMeshAttrGetDeviceId(mesh, 3));
  // CHECK-NEXT: is a mesh 1, is a sharding 0
  printf("is a mesh %d, is a sharding %d\n", hpAttributeIsAMesh(mesh),
         hpAttributeIsASharding(mesh));
  sizes[0] = 0;
  // CHECK-NEXT: refused: expected mesh axis "dp" to have at least 1 device but got 0
  // CHECK-NEXT: no mesh: null
  print("no mesh", hpMeshAttrGet(loc, 2, names, sizes, 0, NULL));
}

static void shardings(MlirLocation loc) {
  MlirAttribute dp = hpAxisRefAttrGet(loc, text("dp"), 0, 0);
  MlirAttribute part = hpAxisRefAttrGet(loc, text("tp"), 2, 4);
  MlirAttribute cp = hpAxisRefAttrGet(loc, text("cp"), 0, 0);
  MlirAttribute dims[] = {hpDimShardingAttrGet(loc, 1, &dp, false, 1),
                          hpDimShardingAttrGet(loc, 1, &part, true, 0)};
  MlirAttribute sharding =
      hpShardingAttrGet(loc, text("m"), 2, dims, 0, NULL, text("sum"), 1, &cp);
  // CHECK-NEXT: sharding: #hypershard.sharding<@m, [{"dp"}p1, {"tp":(2)4, ?}], partial=<sum {"cp"}>>
  print("sharding", sharding);
  // CHECK-NEXT: second dimension: open 1, pre-size 2, size 4
  MlirAttribute second = hpShardingAttrGetDim(sharding, 1);
  MlirAttribute axis = hpDimShardingAttrGetAxis(second, 0);
  printf("second dimension: open %d, pre-size %d, size %d\n",
         hpDimShardingAttrIsOpen(second), (int)hpAxisRefAttrGetPreSize(axis),
         (int)hpAxisRefAttrGetSize(axis));
  MlirAttribute twice[] = {dims[0], dims[0]};
  // CHECK-NEXT: refused: expected each axis once but got "dp" twice
  // CHECK-NEXT: no sharding: null
  print("no sharding", hpShardingAttrGet(loc, text("m"), 2, twice, 0, NULL,
                                         text(""), 0, NULL));
}

int main(void) {
  MlirContext context = mlirContextCreate();
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  hpRegisterDialects(registry);
  mlirContextAppendDialectRegistry(context, registry);
  mlirDialectRegistryDestroy(registry);
  mlirContextLoadAllAvailableDialects(context);
  mlirContextAttachDiagnosticHandler(context, report, NULL, NULL);

  MlirLocation loc = mlirLocationUnknownGet(context);
  meshes(loc);
  shardings(loc);
  mlirContextDestroy(context);
  return EXIT_SUCCESS;
}
