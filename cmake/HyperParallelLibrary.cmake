# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# hp_add_library(Name [PLAIN | BUFFERS] [SEPARATE] a.cpp b.cpp [DEPENDS tablegen targets])
#
# PLAIN: the library is C++ without MLIR. BUFFERS: it works on memrefs or the LLVM dialect. SEPARATE: each file is
# compiled alone (the C API, whose headers of MLIR declare functions of the same name for many types).
# The compiler core is a set of OBJECT libraries, linked twice: into libHyperParallel.so (against the MLIR inside the
# Python package) and into hp-opt (against libMLIR.so). There is never more than one MLIR in a process.
set_property(GLOBAL PROPERTY HP_OBJECT_LIBRARIES "")
set_property(GLOBAL PROPERTY HP_TABLEGEN_TARGETS "")

# hp_tablegen_target(name): registers generated headers, which every library of ours may include.
function(hp_tablegen_target name)
  add_public_tablegen_target(${name})
  set_property(GLOBAL APPEND PROPERTY HP_TABLEGEN_TARGETS ${name})
endfunction()

# MLIR's headers take most of the time of a translation unit: they are compiled once, for two kinds of libraries. What
# works on tensors needs the dialects above the buffers; what lowers needs buffers and the LLVM dialect too, which are
# three times as long to read. (Nothing depends on it: every file includes what it uses.)
# What these headers only begin to instantiate, a compiler does at the end of every translation unit, 1.5 seconds in
# each: so some files of a folder are compiled as one. With HYPERPARALLEL_UNITY=OFF each is compiled alone, which is
# better for who changes one file again and again.
option(HYPERPARALLEL_UNITY "Compile several sources of a library as one translation unit" ON)
set(HP_TENSOR_HEADERS
    <mlir/Dialect/Arith/IR/Arith.h> <mlir/Dialect/Func/IR/FuncOps.h> <mlir/Dialect/Linalg/IR/Linalg.h>
    <mlir/Dialect/SCF/IR/SCF.h> <mlir/Dialect/Tensor/IR/Tensor.h> <mlir/IR/Builders.h> <mlir/IR/BuiltinOps.h>
    <mlir/IR/DialectRegistry.h> <mlir/IR/OpImplementation.h> <mlir/IR/PatternMatch.h> <mlir/IR/SymbolTable.h>
    <mlir/Pass/Pass.h>)
set(HP_BUFFER_HEADERS
    <mlir/Dialect/Affine/IR/AffineOps.h> <mlir/Dialect/Bufferization/IR/Bufferization.h>
    <mlir/Dialect/LLVMIR/LLVMDialect.h> <mlir/Dialect/Linalg/Utils/Utils.h> <mlir/Dialect/MemRef/IR/MemRef.h>)

function(hp_compile_options target)
  target_compile_options(${target} PRIVATE -fno-rtti -fno-exceptions -Wall -Wextra -Wno-unused-parameter
                         -fvisibility-inlines-hidden)
endfunction()

function(hp_declare_precompiled_headers)
  foreach(kind Tensor Buffer)
    set(source "${PROJECT_BINARY_DIR}/Precompiled${kind}Headers.cpp")
    if(NOT EXISTS "${source}")
      file(WRITE "${source}" "// Holds the precompiled headers.\n")
    endif()
    add_library(HPPrecompiled${kind}Headers OBJECT "${source}")
    hp_compile_options(HPPrecompiled${kind}Headers)
  endforeach()
  target_precompile_headers(HPPrecompiledTensorHeaders PRIVATE ${HP_TENSOR_HEADERS})
  target_precompile_headers(HPPrecompiledBufferHeaders PRIVATE ${HP_TENSOR_HEADERS} ${HP_BUFFER_HEADERS})
endfunction()

function(hp_add_library name)
  cmake_parse_arguments(ARG "PLAIN;BUFFERS;SEPARATE" "" "DEPENDS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  hp_compile_options(${name})
  if(ARG_BUFFERS)
    target_precompile_headers(${name} REUSE_FROM HPPrecompiledBufferHeaders)
  elseif(NOT ARG_PLAIN)
    target_precompile_headers(${name} REUSE_FROM HPPrecompiledTensorHeaders)
  endif()
  if(HYPERPARALLEL_UNITY AND NOT ARG_SEPARATE)
    set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
  get_property(generated GLOBAL PROPERTY HP_TABLEGEN_TARGETS)
  if(generated OR ARG_DEPENDS)
    add_dependencies(${name} ${generated} ${ARG_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY HP_OBJECT_LIBRARIES ${name})
  if(NOT TARGET hp-objects)
    add_custom_target(hp-objects) # everything compiled, nothing linked
  endif()
  add_dependencies(hp-objects ${name})
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
