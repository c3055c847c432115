# libweir-client, the library of include/weir/client.h: shared, static, and its pkg-config file.
#
# It is made of the lower layers of src/, compiled once more for a shared object. The linker
# takes from them what the library uses. Only names that begin with weir_ can be seen from
# outside, in the archive too: it holds one object whose other names are local. Third-party
# libraries are not linked in; the pkg-config file names them.
if(WEIR_SANITIZE OR WEIR_FUZZER)
    return() # the same sources are in weir_core, where the tests meet them
endif()

file(STRINGS src/base/version.h version REGEX "define WEIR_VERSION")
string(REGEX REPLACE ".*\"(.*)\".*" "\\1" WEIR_CLIENT_VERSION "${version}")
set(WEIR_CLIENT_ABI 1) # WEIR_CLIENT_ABI of the header

set(parts_sources)
foreach(folder base wire loop tls client reader)
    file(GLOB found CONFIGURE_DEPENDS src/${folder}/*.c)
    list(APPEND parts_sources ${found})
endforeach()
file(GLOB client_sources CONFIGURE_DEPENDS src/library/*.c)

set(third_party_folders
    $<TARGET_PROPERTY:weir_libraries,INTERFACE_SYSTEM_INCLUDE_DIRECTORIES>
    $<TARGET_PROPERTY:weir_libraries,INTERFACE_INCLUDE_DIRECTORIES> ${LLHTTP_INCLUDE})

function(weir_shared_objects target)
    set_target_properties(${target} PROPERTIES WEIR_SHARED ON)
    target_compile_options(${target} PRIVATE -fvisibility=hidden -ffunction-sections -fdata-sections)
    target_include_directories(${target} PRIVATE src include ${WEIR_GENERATED_DIR})
    target_include_directories(${target} SYSTEM PRIVATE ${third_party_folders})
    target_link_libraries(${target} PRIVATE weir_flags)
endfunction()

add_library(weir_client_llhttp OBJECT EXCLUDE_FROM_ALL ${llhttp_sources})
weir_shared_objects(weir_client_llhttp)
target_compile_definitions(weir_client_llhttp PRIVATE LLHTTP_STRICT_MODE=1)
target_compile_options(weir_client_llhttp PRIVATE -w)

add_library(weir_client_parts STATIC EXCLUDE_FROM_ALL
    ${parts_sources} src/stream/close.c ${WEIR_GENERATED} $<TARGET_OBJECTS:weir_client_llhttp>)
weir_shared_objects(weir_client_parts)
target_link_libraries(weir_client_parts PRIVATE weir_warnings)

# Both libraries write generated files: one after the other.
add_dependencies(weir_client_parts weir_core)

add_library(weir_client_objects OBJECT EXCLUDE_FROM_ALL ${client_sources})
weir_shared_objects(weir_client_objects)
target_link_libraries(weir_client_objects PRIVATE weir_warnings)
add_dependencies(weir_client_objects weir_core)

# --- shared -----------------------------------------------------------------------------------

# The shared objects of the system, by their own names (weir itself links archives).
foreach(name uv nghttp2 z)
    find_library(WEIR_SHARED_${name} NAMES lib${name}.so)
    mark_as_advanced(WEIR_SHARED_${name})
    if(NOT WEIR_SHARED_${name})
        message(STATUS "lib${name}.so: missing, so libweir-client cannot be built")
        return()
    endif()
endforeach()

set(map ${CMAKE_SOURCE_DIR}/cmake/client_library.map)
add_library(weir_client SHARED EXCLUDE_FROM_ALL $<TARGET_OBJECTS:weir_client_objects>)
set_target_properties(weir_client PROPERTIES
    OUTPUT_NAME weir-client SOVERSION ${WEIR_CLIENT_ABI} VERSION ${WEIR_CLIENT_ABI}.${WEIR_CLIENT_VERSION}
    LINKER_LANGUAGE C WEIR_SHARED ON LINK_DEPENDS ${map}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
target_link_libraries(weir_client PRIVATE weir_client_parts
    ${WEIR_SHARED_uv} ${WEIR_SHARED_nghttp2} ${WEIR_SHARED_z}
    Threads::Threads m ${CMAKE_DL_LIBS})
target_link_options(weir_client PRIVATE LINKER:--version-script=${map}
    LINKER:--gc-sections LINKER:--no-undefined LINKER:--as-needed
    LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack)

# --- static -----------------------------------------------------------------------------------

set(archive ${CMAKE_BINARY_DIR}/lib/libweir-client.a)
set(object ${CMAKE_BINARY_DIR}/lib/weir-client.o)
add_custom_command(
    OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive} ${object}
    COMMAND ${CMAKE_LINKER} -r -o ${object}
            $<TARGET_OBJECTS:weir_client_objects> $<TARGET_FILE:weir_client_parts>
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=weir_* --strip-debug ${object}
    COMMAND ${CMAKE_AR} rcs ${archive} ${object}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${object}
    DEPENDS weir_client_parts weir_client_objects $<TARGET_OBJECTS:weir_client_objects>
    COMMAND_EXPAND_LISTS
    COMMENT "Linking libweir-client.a"
    VERBATIM)

# What a program links and what `make install` copies.
add_custom_target(client_library DEPENDS ${archive} weir_client)

# --- installing -------------------------------------------------------------------------------

# The prefix is known only when it is installed: `cmake --install --prefix`.
install(TARGETS weir_client LIBRARY DESTINATION lib COMPONENT client OPTIONAL)
install(FILES ${archive} DESTINATION lib COMPONENT client OPTIONAL)
install(FILES include/weir/client.h DESTINATION include/weir COMPONENT client)
set(pc_in ${CMAKE_SOURCE_DIR}/cmake/weir-client.pc.in)
set(pc_out ${CMAKE_BINARY_DIR}/lib/weir-client.pc)
install(CODE "
    get_filename_component(prefix \"\${CMAKE_INSTALL_PREFIX}\" ABSOLUTE)
    set(version \"${WEIR_CLIENT_VERSION}\")
    configure_file(\"${pc_in}\" \"${pc_out}\" @ONLY)" COMPONENT client)
install(FILES ${pc_out} DESTINATION lib/pkgconfig COMPONENT client)
