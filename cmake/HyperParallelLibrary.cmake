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

function(hp_add_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS" ${ARGN})
  add_library(${name} OBJECT ${ARG_UNPARSED_ARGUMENTS})
  target_compile_options(${name} PRIVATE -fno-rtti -fno-exceptions -Wall -Wextra -Wno-unused-parameter
                         -fvisibility-inlines-hidden)
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
