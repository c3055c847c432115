# Code that the build writes: whatever lands in WEIR_GENERATED is compiled into weir_core, and
# its headers are included by their path under WEIR_GENERATED_DIR.

set(WEIR_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
set(WEIR_GENERATED)
file(MAKE_DIRECTORY ${WEIR_GENERATED_DIR})
