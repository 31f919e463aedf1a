/*===- supernode.c - the C API of Supernode, from C11 ---------------------===*/
/* SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
/*===----------------------------------------------------------------------===*/
/* A machine is put together from its parts, read, refused, and found by name.
 *
 * RUN: hp-capi-supernode 2>&1 | FileCheck %s
 */

#include "lib/CAPI/Supernode.h"
#include "lib/CAPI/CostReport.h"
#include "lib/CAPI/Registration.h"

#include "mlir-c/BuiltinTypes.h"
#include "mlir-c/Diagnostics.h"
#include "mlir-c/Dialect/Func.h"
#include "mlir-c/IR.h"

#include <stdio.h>

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

static void machines(MlirLocation loc) {
  MlirContext context = mlirLocationGetContext(loc);
  MlirStringRef algorithms[] = {text("direct"), text("ring")};
  MlirStringRef port[] = {text("port")};
  MlirAttribute rate = hpRateAttrGet(loc, mlirF32TypeGet(context), 9e13);
  MlirAttribute group = hpDeviceGroupAttrGet(
      loc, text("npu"), 2, text("hbm"), 5e-6, 2e13, 0.5, 0, text(""),
      hpCoresAttrGet(loc, 2, 0.5, 0, 0), 1, &rate);
  MlirAttribute level =
      hpLevelAttrGet(loc, text("node"), 2, 1e-6, 2e11, 2, algorithms, 1, port);
  MlirAttribute tier =
      hpTierAttrGet(loc, text("hbm"), text("device"), 64e9, 1.6e12, 0, NULL);
  MlirAttribute segment =
      hpSegmentAttrGet(loc, text("port"), text("device"), 1.9e11, text(""));
  MlirAttribute link =
      hpLinkAttrGet(loc, text("hbm"), text("hbm"), 1e-6, 1.8e11, 4e6, 1, port);
  MlirAttribute machine = hpMachineAttrGet(
      loc, text("pair"), 1, &group, 1, &level, 1, &tier, 1, &segment, 1, &link);
  // CHECK: machine: #supernode.machine<"pair",
  // CHECK-SAME: groups = [<"npu" = 2, memory = "hbm", launch = 5.0e-06, vector = 2.0e+13, efficiency = 0.5, cores = <2, gain = 0.5, cut = 0, wake = 0>, rates = [f32 = 9.0e+13]>]
  // CHECK-SAME: levels = [<"node" = 2, latency = 1.0e-06, bandwidth = 2.0e+11, algorithms = [direct, ring], shared = ["port"]>]
  // CHECK-SAME: tiers = [<"hbm" in "device", capacity = 6.4e+10, bandwidth = 1.6e+12>]
  // CHECK-SAME: segments = [<"port" in "device", bandwidth = 1.9e+11>]
  // CHECK-SAME: links = [<"hbm" -> "hbm", latency = 1.0e-06, bandwidth = 1.8e+11, staging = 4.0e+06, shared = ["port"]>]>
  print("machine", machine);

  MlirAttribute first = hpMachineAttrGetGroup(machine, 0);
  MlirAttribute wire = hpMachineAttrGetSegment(machine, 0);
  MlirStringRef second =
      hpLevelAttrGetAlgorithm(hpMachineAttrGetLevel(machine, 0), 1);
  // CHECK-NEXT: 2 devices, 9.0e+13 per second, then by ring, within ''
  printf("%d devices, %.1e per second, then by %.*s, within '%.*s'\n",
         (int)hpDeviceGroupAttrGetCount(first),
         hpRateAttrGetRate(hpDeviceGroupAttrGetRate(first, 0)),
         (int)second.length, second.data,
         (int)hpSegmentAttrGetWithin(wire).length,
         hpSegmentAttrGetWithin(wire).length ? hpSegmentAttrGetWithin(wire).data
                                             : "");
  // CHECK-NEXT: is a machine 1, is a tier 0
  printf("is a machine %d, is a tier %d\n", hpAttributeIsAMachine(machine),
         hpAttributeIsATier(machine));

  // CHECK-NEXT: refused: expected the capacity of tier "hbm" to be positive but got 0
  // CHECK-NEXT: tier: null
  print("tier",
        hpTierAttrGet(loc, text("hbm"), text("device"), 0, 1.6e12, 0, NULL));
  // CHECK-NEXT: refused: expected an algorithm (ring, tree, halving, direct, memory) but got `star`
  // CHECK-NEXT: level: null
  algorithms[0] = text("star");
  print("level",
        hpLevelAttrGet(loc, text("node"), 2, 0, 1, 1, algorithms, 0, NULL));

  // CHECK-NEXT: 6 presets, the first a3-node
  MlirStringRef name = hpMachineGetPresetName(0);
  printf("%d presets, the first %.*s\n", (int)hpMachineGetNumPresets(),
         (int)name.length, name.data);
  // CHECK-NEXT: preset: #supernode.machine<preset = "a3-node">
  print("preset", hpMachineAttrGetPreset(context, name));
  // CHECK-NEXT: preset: null
  print("preset", hpMachineAttrGetPreset(context, text("a4-node")));
}

static void costs(MlirContext context) {
  MlirModule module = mlirModuleCreateParse(
      context, text("func.func @f(%a: tensor<8xf32>) -> tensor<8xf32> {"
                    "%0 = arith.addf %a, %a : tensor<8xf32>"
                    "return %0 : tensor<8xf32> }"));
  // CHECK-NEXT: {"machine":"cpu-supernode","functions":[{"name":"f","flops":8,
  hpCostReport(module, show, NULL);
  printf("\n");
  mlirModuleDestroy(module);
}

int main(void) {
  MlirDialectRegistry registry = mlirDialectRegistryCreate();
  hpRegisterDialects(registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__supernode__(), registry);
  mlirDialectHandleInsertDialect(mlirGetDialectHandle__func__(), registry);
  MlirContext context = mlirContextCreateWithRegistry(registry, false);
  mlirDialectRegistryDestroy(registry);
  mlirContextLoadAllAvailableDialects(context);
  mlirContextAttachDiagnosticHandler(context, report, NULL, NULL);
  machines(mlirLocationUnknownGet(context));
  costs(context);
  mlirContextDestroy(context);
  return 0;
}
