# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# Finds MLIR 22: the pinned PyPI wheels beside the Python interpreter in use, or any ordinary install given by MLIR_DIR
# (Debian's or apt.llvm.org's libmlir-22-dev), which is enough for hp-opt alone (without the Python extension).
find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)

if(NOT MLIR_DIR)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c
            "import importlib.util as u, pathlib as p; print(p.Path(u.find_spec('mlir.ir').origin).parent)"
    OUTPUT_VARIABLE HP_MLIR_PACKAGE OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE HP_MLIR_STATUS ERROR_QUIET)
  if(NOT HP_MLIR_STATUS EQUAL 0)
    message(FATAL_ERROR "no MLIR found: install the wheels named in pyproject.toml into ${Python_EXECUTABLE}, "
                        "or give -DMLIR_DIR=<prefix>/lib/cmake/mlir of an MLIR 22 install")
  endif()
  get_filename_component(HP_SITE "${HP_MLIR_PACKAGE}" DIRECTORY)
  set(MLIR_DIR "${HP_MLIR_PACKAGE}/lib/cmake/mlir")
  set(LLVM_DIR "${HP_SITE}/llvm/lib/cmake/llvm")
endif()

# MLIR installs no version file of its own; its LLVM has one.
find_package(MLIR REQUIRED CONFIG)
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "expected MLIR 22 but ${MLIR_DIR} is MLIR ${LLVM_PACKAGE_VERSION}")
endif()
message(STATUS "MLIR: ${MLIR_DIR}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
set(LLVM_LINK_LLVM_DYLIB ON)
include(TableGen)
include(AddLLVM)
include(AddMLIR)
include(HandleLLVMOptions)

# The Python extension needs the stock `mlir` package, whose C API library carries the one MLIR of the process.
if(HP_MLIR_PACKAGE)
  option(HYPERPARALLEL_PYTHON_BINDINGS "Build libHyperParallel.so and the Python extension" ON)
else()
  set(HYPERPARALLEL_PYTHON_BINDINGS OFF)
endif()

find_program(HP_CCACHE ccache)
if(HP_CCACHE)
  # What ccache needs to be told to work with precompiled headers.
  set(launcher "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime;${HP_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${launcher}")
  set(CMAKE_CXX_COMPILER_LAUNCHER "${launcher}")
endif()
