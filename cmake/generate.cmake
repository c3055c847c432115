# Code that the build writes: what is listed in WEIR_GENERATED is compiled into weir_core, and
# its headers are included by their path under WEIR_GENERATED_DIR ("proto/runtime.pb.h").

set(WEIR_GENERATED_DIR ${CMAKE_BINARY_DIR}/generated)
set(WEIR_GENERATED)
file(MAKE_DIRECTORY ${WEIR_GENERATED_DIR})

find_program(PROTOC protoc)
if(NOT PROTOC)
    message(FATAL_ERROR "protoc is missing; `make` installs it, or see scripts/setup")
endif()

# A generator runs while weir_core is being built, so it is compiled from the few sources it
# needs and cannot link what it helps to make.
function(weir_tool name)
    add_executable(${name} tools/${name}.c ${ARGN})
    target_include_directories(${name} PRIVATE src tools)
    target_link_libraries(${name} PRIVATE weir_flags weir_warnings Threads::Threads)
    set_target_properties(${name} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tools)
endfunction()

# --- protobuf: message tables and descriptors, from our .proto files -----------------------

# pbgen reads descriptors with our own decoder.
file(GLOB pbgen_parts CONFIGURE_DEPENDS tools/pbgen_*.c src/wire/pb_*.c src/base/*.c)
weir_tool(pbgen ${pbgen_parts})

# Write NAME.pb.h and NAME.pb.c for some .proto files and append them to the list `outvar`.
#   PATH        the folder that the FILES are named from
#   PREFIX      package=c_prefix ...       how the package is spelled in C
#   IMPORTS     folder=header ...          where messages of imported files are declared
#   DESCRIPTOR  a symbol to hold the descriptor bytes, for reflection
function(weir_proto outvar)
    cmake_parse_arguments(P "" "NAME;PATH;DESCRIPTOR" "FILES;PREFIX;IMPORTS" ${ARGN})
    set(out ${WEIR_GENERATED_DIR}/${P_NAME})
    get_filename_component(folder ${out} DIRECTORY)
    file(MAKE_DIRECTORY ${folder})

    set(flags)
    foreach(prefix IN LISTS P_PREFIX)
        list(APPEND flags --prefix ${prefix})
    endforeach()
    foreach(import IN LISTS P_IMPORTS)
        list(APPEND flags --import ${import})
    endforeach()
    if(P_DESCRIPTOR)
        list(APPEND flags --descriptor ${P_DESCRIPTOR})
    endif()

    set(depends) # a file that protoc brings itself is not in our tree
    foreach(file IN LISTS P_FILES)
        if(EXISTS ${CMAKE_SOURCE_DIR}/${P_PATH}/${file})
            list(APPEND depends ${CMAKE_SOURCE_DIR}/${P_PATH}/${file})
        endif()
    endforeach()

    add_custom_command(
        OUTPUT ${out}.desc ${out}.pb.h ${out}.pb.c
        COMMAND ${PROTOC} -I ${CMAKE_SOURCE_DIR}/${P_PATH} --include_imports
                --descriptor_set_out=${out}.desc ${P_FILES}
        COMMAND pbgen --dir ${WEIR_GENERATED_DIR} --name ${P_NAME} ${flags} ${out}.desc
        DEPENDS pbgen ${depends}
        COMMENT "Generating protobuf tables ${P_NAME}"
        VERBATIM)
    set(${outvar} ${${outvar}} ${out}.pb.c ${out}.pb.h PARENT_SCOPE)
endfunction()

set(google google/protobuf=proto/google.pb.h)

weir_proto(WEIR_GENERATED NAME proto/google PATH proto
    PREFIX google.protobuf=google
    FILES google/protobuf/timestamp.proto google/protobuf/duration.proto
          google/protobuf/struct.proto)
weir_proto(WEIR_GENERATED NAME proto/runtime PATH proto
    PREFIX crawbl.agentruntime.v1=crawbl
    FILES agentruntime/v1/runtime.proto
    DESCRIPTOR crawbl_runtime_descriptor)
weir_proto(WEIR_GENERATED NAME proto/memory PATH proto
    PREFIX crawbl.agentruntime.v1=crawbl
    FILES agentruntime/v1/memory.proto IMPORTS ${google}
    DESCRIPTOR crawbl_memory_descriptor)
weir_proto(WEIR_GENERATED NAME proto/nimi PATH proto
    PREFIX nimi.runtime.v1=nimi
    FILES nimi/runtime/v1/workflow.proto
          nimi/runtime/v1/common.proto nimi/runtime/v1/ai.proto nimi/runtime/v1/audit.proto
          nimi/runtime/v1/auth.proto nimi/runtime/v1/local.proto nimi/runtime/v1/transfer.proto
          nimi/runtime/v1/model.proto
          nimi/runtime/v1/app.proto nimi/runtime/v1/account.proto
          nimi/runtime/v1/grant.proto nimi/runtime/v1/realtime.proto
          nimi/runtime/v1/memory.proto nimi/runtime/v1/agent.proto
    IMPORTS ${google}
    DESCRIPTOR nimi_descriptor)
# Apart, because its message Connector would be named as our own struct nimi_connector.
weir_proto(WEIR_GENERATED NAME proto/nimi_connector PATH proto
    PREFIX nimi.runtime.v1=nimi_wire
    FILES nimi/runtime/v1/connector.proto
    DESCRIPTOR nimi_connector_descriptor)
weir_proto(WEIR_GENERATED NAME proto/nimi_fact PATH proto
    PREFIX weir.nimi=fact
    FILES weir/nimi_fact.proto)
weir_proto(WEIR_GENERATED NAME proto/health PATH proto
    PREFIX grpc.health.v1=grpc
    FILES grpc/health/v1/health.proto
    DESCRIPTOR grpc_health_descriptor)
weir_proto(WEIR_GENERATED NAME proto/reflection PATH proto
    PREFIX grpc.reflection.v1=grpc grpc.reflection.v1alpha=grpc_v1alpha
    FILES grpc/reflection/v1/reflection.proto grpc/reflection/v1alpha/reflection.proto
    DESCRIPTOR grpc_reflection_descriptor)

# Every kind of field there is: for the tests of wire/pb only.
set(WEIR_TEST_GENERATED)
weir_proto(WEIR_TEST_GENERATED NAME test/kitchen PATH test/diff
    PREFIX weir.kitchen=kitchen
    FILES kitchen.proto IMPORTS ${google}
    DESCRIPTOR kitchen_descriptor)

# The service that gRPC implementations test each other with.
weir_proto(WEIR_TEST_GENERATED NAME test/interop PATH test/interop
    PREFIX grpc.testing=interop
    FILES testing.proto
    DESCRIPTOR interop_descriptor)

# The same messages once more as descriptors, for the Python side of test/diff.
set(proto_files agentruntime/v1/runtime.proto agentruntime/v1/memory.proto kitchen.proto)
add_custom_command(
    OUTPUT ${WEIR_GENERATED_DIR}/test/diff.desc
    COMMAND ${PROTOC} -I ${CMAKE_SOURCE_DIR}/proto -I ${CMAKE_SOURCE_DIR}/test/diff
            --include_imports --descriptor_set_out=${WEIR_GENERATED_DIR}/test/diff.desc
            ${proto_files}
    DEPENDS ${CMAKE_SOURCE_DIR}/proto/agentruntime/v1/runtime.proto
            ${CMAKE_SOURCE_DIR}/proto/agentruntime/v1/memory.proto
            ${CMAKE_SOURCE_DIR}/test/diff/kitchen.proto
    COMMENT "Describing the messages of test/diff"
    VERBATIM)

# --- files embedded as bytes ----------------------------------------------------------------

weir_tool(embed)

# Make `input` a `const struct str name`, declared in `header`; appended to WEIR_GENERATED.
function(weir_embed name input header)
    set(out ${WEIR_GENERATED_DIR}/gen/${name}.c)
    file(MAKE_DIRECTORY ${WEIR_GENERATED_DIR}/gen)
    add_custom_command(
        OUTPUT ${out}
        COMMAND embed ${name} ${CMAKE_SOURCE_DIR}/${input} ${out} ${header}
        DEPENDS embed ${CMAKE_SOURCE_DIR}/${input}
        COMMENT "Embedding ${input}"
        VERBATIM)
    set(WEIR_GENERATED ${WEIR_GENERATED} ${out} PARENT_SCOPE)
endfunction()

weir_embed(demo_script examples/demo.yaml provider/scripted.h)

# --- the web console: its files, compressed --------------------------------------------------

weir_tool(embed_site)
target_include_directories(embed_site SYSTEM PRIVATE ${zlib_INCLUDE})
target_link_libraries(embed_site PRIVATE ${zlib_LIBRARY})

file(GLOB console_files CONFIGURE_DEPENDS src/contract/console/web/*)
set(console_out ${WEIR_GENERATED_DIR}/gen/console_files.c)
add_custom_command(
    OUTPUT ${console_out}
    COMMAND embed_site ${console_out} contract/console/files.h ${console_files}
    DEPENDS embed_site ${console_files}
    COMMENT "Embedding the console"
    VERBATIM)
list(APPEND WEIR_GENERATED ${console_out})
