# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# hp_add_library(Name a.cpp b.cpp [DEPENDS tablegen targets])
#
# The compiler core is a set of OBJECT libraries, linked twice: into libHyperParallel.so (against the MLIR inside the
# Python package) and into hp-opt (against libMLIR.so). There is never more than one MLIR in a process.
set_property(GLOBAL PROPERTY HP_OBJECT_LIBRARIES "")
set_property(GLOBAL PROPERTY HP_TABLEGEN_TARGETS "")

# hp_tablegen_target(name): registers generated headers, which every library of ours may include.
function(hp_tablegen_target name)
  add_public_tablegen_target(${name})
  set_property(GLOBAL APPEND PROPERTY HP_TABLEGEN_TARGETS ${name})
endfunction()

# MLIR's headers take two thirds of the time of a translation unit: they are compiled once. (Nothing depends on it: every
# file includes what it uses.)
function(hp_precompile_headers target)
  if(NOT target STREQUAL HPPrecompiledHeaders)
    target_precompile_headers(${target} REUSE_FROM HPPrecompiledHeaders)
    return()
  endif()
  target_precompile_headers(${target} PRIVATE
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Linalg/IR/Linalg.h>
    <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Tensor/IR/Tensor.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h>
    <mlir/IR/DialectRegistry.h> <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h> <mlir/IR/SymbolTable.h>
    <mlir/Pass/Pass.h>)
endfunction()

function(hp_compile_options target)
  target_compile_options(${target} PRIVATE -fno-rtti -fno-exceptions -Wall -Wextra -Wno-unused-parameter
                         -fvisibility-inlines-hidden)
endfunction()

function(hp_declare_precompiled_headers)
  file(WRITE "${PROJECT_BINARY_DIR}/PrecompiledHeaders.cpp" "// Holds the precompiled headers.\n")
  add_library(HPPrecompiledHeaders OBJECT "${PROJECT_BINARY_DIR}/PrecompiledHeaders.cpp")
  hp_compile_options(HPPrecompiledHeaders)
  hp_precompile_headers(HPPrecompiledHeaders)
endfunction()

function(hp_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  hp_compile_options(${name})
  hp_precompile_headers(${name})
  get_property(generated GLOBAL PROPERTY HP_TABLEGEN_TARGETS)
  if(generated OR ARG_DEPENDS)
    add_dependencies(${name} ${generated} ${ARG_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY HP_OBJECT_LIBRARIES ${name})
endfunction()

# hp_collect_objects(variable): the objects of every library declared so far.
function(hp_collect_objects variable)
  get_property(libraries GLOBAL PROPERTY HP_OBJECT_LIBRARIES)
  set(objects "")
  foreach(library IN LISTS libraries)
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
  endforeach()
  set(${variable} "${objects}" PARENT_SCOPE)
endfunction()
