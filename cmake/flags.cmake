# The compiler flags of every build. The release binary is optimised, keeps its asserts and
# its debug information, and is hardened; a sanitizer build swaps the hardening for the
# sanitizer, since the two watch the same things and get into each other's way.

# We choose the flags of a build ourselves. CMake's own build types, which packagers like to
# name, would define NDEBUG; asserts stay on whatever the type.
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE None CACHE STRING "left alone; see cmake/flags.cmake" FORCE)
endif()

add_library(weir_flags INTERFACE)
target_compile_definitions(weir_flags INTERFACE _GNU_SOURCE)

# Our libraries are archives for our programs only: -fPIE, and not the -fPIC that CMake would
# choose, lets the compiler inline across the functions of a file. Targets with the property
# WEIR_SHARED are for a shared object.
set(shared $<BOOL:$<TARGET_PROPERTY:WEIR_SHARED>>)
target_compile_options(weir_flags INTERFACE $<IF:${shared},-fPIC,-fPIE> -UNDEBUG)
target_link_options(weir_flags INTERFACE $<$<NOT:${shared}>:-pie>)

# What an assert names does not depend on where the sources stand.
target_compile_options(weir_flags INTERFACE -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)

set(WEIR_HARDENING -D_FORTIFY_SOURCE=3 -fstack-protector-strong)
include(CheckCCompilerFlag)
foreach(flag -fstack-clash-protection -fcf-protection)
    string(MAKE_C_IDENTIFIER "have${flag}" have)
    check_c_compiler_flag("-Werror ${flag}" ${have})
    if(${have})
        list(APPEND WEIR_HARDENING ${flag})
    endif()
endforeach()

if(WEIR_SANITIZE)
    # -g1: the lines that a stack trace names, without the variables.
    target_compile_options(weir_flags INTERFACE
        -O1 -g1 -fno-omit-frame-pointer -fsanitize=${WEIR_SANITIZE} -fno-sanitize-recover=all)
    target_link_options(weir_flags INTERFACE -fsanitize=${WEIR_SANITIZE})
    if(WEIR_FUZZER)
        target_compile_options(weir_flags INTERFACE -fsanitize=fuzzer-no-link)
    endif()
else()
    # WEIR_BRIEF: a test, which runs once for each time that it is compiled; with -g1 that takes a
    # quarter less.
    set(brief $<BOOL:$<TARGET_PROPERTY:WEIR_BRIEF>>)
    target_compile_options(weir_flags INTERFACE
        $<IF:${brief},-O1;-g1,-O2;-g> ${WEIR_HARDENING})
    target_link_options(weir_flags INTERFACE
        LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)
    # Sixteen thousand pointers of tables are moved at each start: packed, they take 5 KB of the
    # program and not 380, all of which a start reads.
    # A linker may know them where the C library does not, before glibc 2.36: then no such program
    # would start.
    include(CheckCSourceCompiles)
    set(CMAKE_REQUIRED_LINK_OPTIONS LINKER:-z,pack-relative-relocs)
    check_c_source_compiles("#include <features.h>
                             #if !__GLIBC_PREREQ(2, 36)
                             #error
                             #endif
                             int main(void) { return 0; }" have_packed_relocations)
    unset(CMAKE_REQUIRED_LINK_OPTIONS)
    if(have_packed_relocations)
        target_link_options(weir_flags INTERFACE
            $<$<NOT:$<OR:${shared},${brief}>>:LINKER:-z,pack-relative-relocs>)
    endif()
endif()

# Our warnings are for our files only: third-party sources are compiled without them.
add_library(weir_warnings INTERFACE)
target_compile_options(weir_warnings INTERFACE
    -Wall -Wextra -Wconversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes
    -Wpointer-arith -Wwrite-strings -Wvla
    $<$<BOOL:${WEIR_WERROR}>:-Werror>)
if(WEIR_SANITIZE AND CMAKE_C_COMPILER_ID STREQUAL GNU)
    # Instrumented code hides from gcc what was set where; the release build still looks.
    target_compile_options(weir_warnings INTERFACE -Wno-maybe-uninitialized)
endif()
