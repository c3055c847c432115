/* curl: libcurl, loaded on first use.
 *
 * Loading costs megabytes and milliseconds, so a daemon without remote models and tools never
 * does it. The functions are looked up by name once and called through this table, under their
 * own names.
 *
 * Private to client/.
 *
 * Memory   stays for the life of the process: a library in which other threads may have state
 *          is not unloaded.
 * Threads  curl_load() any; it blocks, as it reads files. The table is constant afterwards.
 */
#ifndef WEIR_CLIENT_CURL_H
#define WEIR_CLIENT_CURL_H

#include "base/err.h"

/* libcurl's type checks are macros with the names of functions that are also in the table. */
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

/* clang-format off */
#define CURL_FUNCTIONS(USE)                                                                    \
    USE(curl_global_init) USE(curl_version_info) USE(curl_easy_init) USE(curl_easy_cleanup)    \
    USE(curl_easy_setopt) USE(curl_easy_getinfo) USE(curl_easy_pause) USE(curl_easy_strerror)  \
    USE(curl_slist_append) USE(curl_slist_free_all) USE(curl_multi_init)                       \
    USE(curl_multi_cleanup) USE(curl_multi_setopt) USE(curl_multi_add_handle)                  \
    USE(curl_multi_remove_handle) USE(curl_multi_socket_action) USE(curl_multi_info_read)      \
    USE(curl_multi_assign)
/* clang-format on */

struct curl {
#define MEMBER(name) __typeof__(name) *name;
    CURL_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* The table; the same one each time.
 * errors  ERR_UNAVAILABLE the library is not installed, too old, or lacks what we need */
MUST_CHECK bool curl_load(const struct curl **ret, struct err *e);

#endif
