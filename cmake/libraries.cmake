# What we stand on. Each library is linked from its archive where the system ships one, so the
# program starts without a chain of shared objects; libc stays dynamic.

find_package(Threads REQUIRED)
add_library(weir_libraries INTERFACE)

function(weir_library name header)
    find_path(${name}_INCLUDE ${header})
    find_library(${name}_LIBRARY NAMES ${ARGN})
    if(NOT ${name}_INCLUDE OR NOT ${name}_LIBRARY)
        message(FATAL_ERROR "${name}: <${header}> or the library itself is missing; "
                            "`make` installs it, or see scripts/setup")
    endif()
    mark_as_advanced(${name}_INCLUDE ${name}_LIBRARY)
    message(STATUS "${name}: ${${name}_LIBRARY}")
    target_include_directories(weir_libraries SYSTEM INTERFACE ${${name}_INCLUDE})
    target_link_libraries(weir_libraries INTERFACE ${${name}_LIBRARY})
endfunction()

weir_library(libuv uv.h libuv_a.a uv)
weir_library(nghttp2 nghttp2/nghttp2.h libnghttp2.a nghttp2)
weir_library(nettle nettle/hmac.h libnettle.a nettle)
weir_library(libyaml yaml.h libyaml.a yaml)
weir_library(sqlite3 sqlite3.h libsqlite3.a sqlite3)
weir_library(zlib zlib.h libz.a z)
weir_library(gumbo gumbo.h libgumbo.a gumbo)
weir_library(pcre2 pcre2.h libpcre2-8.a pcre2-8)
target_link_libraries(weir_libraries INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})

# OpenSSL is loaded by name when TLS is configured (tls/openssl.c): only its headers are
# needed here.
find_path(OPENSSL_INCLUDE openssl/ssl.h)
if(NOT OPENSSL_INCLUDE)
    message(FATAL_ERROR "openssl: <openssl/ssl.h> is missing; `make` installs it, or see scripts/setup")
endif()
mark_as_advanced(OPENSSL_INCLUDE)
target_include_directories(weir_libraries SYSTEM INTERFACE ${OPENSSL_INCLUDE})

# libcurl likewise, when a provider or a tool that asks other servers is configured
# (client/curl.c).
find_path(CURL_INCLUDE curl/curl.h)
if(NOT CURL_INCLUDE)
    message(FATAL_ERROR "libcurl: <curl/curl.h> is missing; `make` installs it, or see scripts/setup")
endif()
mark_as_advanced(CURL_INCLUDE)
target_include_directories(weir_libraries SYSTEM INTERFACE ${CURL_INCLUDE})

# libseccomp likewise, when commands are shut in (tool/sandbox_filter.c).
find_path(SECCOMP_INCLUDE seccomp.h)
if(NOT SECCOMP_INCLUDE)
    message(FATAL_ERROR "libseccomp: <seccomp.h> is missing; `make` installs it, or see scripts/setup")
endif()
mark_as_advanced(SECCOMP_INCLUDE)
target_include_directories(weir_libraries SYSTEM INTERFACE ${SECCOMP_INCLUDE})

# libpq likewise, when a PostgreSQL server is configured (postgres/libpq.c).
find_path(LIBPQ_INCLUDE libpq-fe.h PATH_SUFFIXES postgresql)
if(NOT LIBPQ_INCLUDE)
    message(FATAL_ERROR "libpq: <libpq-fe.h> is missing; `make` installs it, or see scripts/setup")
endif()
mark_as_advanced(LIBPQ_INCLUDE)
target_include_directories(weir_libraries SYSTEM INTERFACE ${LIBPQ_INCLUDE})

# libwslay likewise, when WebSocket is served or spoken (wire/websocket.c).
find_path(WSLAY_INCLUDE wslay/wslay.h)
if(NOT WSLAY_INCLUDE)
    message(FATAL_ERROR "libwslay: <wslay/wslay.h> is missing; `make` installs it, or see scripts/setup")
endif()
mark_as_advanced(WSLAY_INCLUDE)
target_include_directories(weir_libraries SYSTEM INTERFACE ${WSLAY_INCLUDE})

# llhttp comes as C sources (package node-llhttp): compiled here, in strict mode, as it is.
find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp)
find_path(LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp)
if(NOT LLHTTP_INCLUDE OR NOT LLHTTP_SOURCES)
    message(FATAL_ERROR "llhttp: its sources are missing; `make` installs them, or see scripts/setup")
endif()
file(GLOB llhttp_sources ${LLHTTP_SOURCES}/*.c)
add_library(llhttp STATIC ${llhttp_sources})
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_compile_definitions(llhttp PUBLIC LLHTTP_STRICT_MODE=1)
target_compile_options(llhttp PRIVATE -w)
target_link_libraries(llhttp PRIVATE weir_flags)
target_link_libraries(weir_libraries INTERFACE llhttp)

# cmocka is for tests only; a machine that just builds the program need not have it.
find_path(CMOCKA_INCLUDE cmocka.h)
find_library(CMOCKA_LIBRARY NAMES libcmocka.a cmocka)
mark_as_advanced(CMOCKA_INCLUDE CMOCKA_LIBRARY LLHTTP_INCLUDE LLHTTP_SOURCES)
add_library(cmocka INTERFACE)
if(CMOCKA_INCLUDE AND CMOCKA_LIBRARY)
    target_include_directories(cmocka SYSTEM INTERFACE ${CMOCKA_INCLUDE})
    target_link_libraries(cmocka INTERFACE ${CMOCKA_LIBRARY})
else()
    message(STATUS "cmocka: missing, so the unit tests cannot be built; `make test` installs it")
endif()
