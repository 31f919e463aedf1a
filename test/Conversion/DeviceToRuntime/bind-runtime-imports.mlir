// A program names what it calls of the runtime, in alphabetical order, and reaches it through slots.
// RUN: hp-opt %s --hp-bind-runtime-imports | FileCheck %s

// CHECK-DAG: llvm.mlir.global external constant @hp_program_import_names("hp_rt_alloc\00hp_rt_free\00\00")
// CHECK-DAG: llvm.mlir.global external @hp_program_import_slots()

// CHECK-LABEL: llvm.func @hp_rt_free(
// CHECK: %[[SLOTS:.*]] = llvm.mlir.addressof @hp_program_import_slots
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[SLOTS]][1]
// CHECK: %[[FUNCTION:.*]] = llvm.load %[[SLOT]]
// CHECK: llvm.call %[[FUNCTION]](
llvm.func @hp_rt_free(!llvm.ptr)
// CHECK-LABEL: llvm.func @hp_rt_alloc(
// CHECK: %[[SLOTS:.*]] = llvm.mlir.addressof @hp_program_import_slots
// CHECK: %[[SLOT:.*]] = llvm.getelementptr %[[SLOTS]][0]
// CHECK: %[[RESULT:.*]] = llvm.call
// CHECK: llvm.return %[[RESULT]]
llvm.func @hp_rt_alloc(i64, i32) -> !llvm.ptr

// What is not the runtime's stays as it is.
// CHECK: llvm.func @memcpy(!llvm.ptr, !llvm.ptr, i64)
llvm.func @memcpy(!llvm.ptr, !llvm.ptr, i64)
