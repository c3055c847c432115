#include "client/curl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdlib.h>

/* The name includes the ABI version; a library with another version has other functions. */
#define LIBCURL "libcurl.so.4"

/* 7.87.0: the first version in which a cancelled call does not wait for a name server. */
#define VERSION_MIN 0x075700

static struct curl table;
static struct err failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool open_library(void **ret) {
    *ret = dlopen(LIBCURL, RTLD_NOW | RTLD_LOCAL);
    if (*ret) return true;
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc keeps one a thread */
    return err_set(&failed, ERR_UNAVAILABLE,
                   "asking other servers needs libcurl, and it cannot be loaded (%s): install "
                   "the package libcurl4",
                   why);
}

/* dlsym() returns an object pointer even for a function. POSIX guarantees that copying the bits
 * works. */
static bool curl_find(void *library, const char *name, void *ret) {
    void *found = dlsym(library, name);
    if (!found)
        return err_set(&failed, ERR_UNAVAILABLE,
                       "the installed libcurl has no %s(); weir needs 7.87 or later", name);
    memcpy(ret, &found, sizeof(found));
    return true;
}

static bool find_all(void *library) {
#define FIND(name)                                                                             \
    if (!curl_find(library, #name, &table.name)) return false;
    CURL_FUNCTIONS(FIND)
#undef FIND
    return true;
}

static bool start_up(void) {
    if (table.curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK) return true;
    return err_set(&failed, ERR_UNAVAILABLE, "libcurl is installed and does not start");
}

static bool check_version(void) {
    const curl_version_info_data *info = table.curl_version_info(CURLVERSION_NOW);
    if (info->version_num < VERSION_MIN)
        return err_set(&failed, ERR_UNAVAILABLE,
                       "the installed libcurl is %s; weir needs 7.87 or later", info->version);
    /* Without asynchronous DNS, a name lookup would block the loop. */
    int needed = CURL_VERSION_SSL | CURL_VERSION_ASYNCHDNS;
    if ((info->features & needed) != needed)
        return err_set(&failed, ERR_UNAVAILABLE,
                       "the installed libcurl %s was built without TLS or without a resolver "
                       "that does not block: install the package libcurl4",
                       info->version);
    return true;
}

static void load(void) {
    void *library;
    bool good = open_library(&library) && find_all(library) && start_up() && check_version();
    (void)good; /* the result is in `failed` */
}

bool curl_load(const struct curl **ret, struct err *e) {
    pthread_once(&once, load);
    if (failed.code != ERR_NONE) {
        *e = failed;
        return false;
    }
    *ret = &table;
    return true;
}
