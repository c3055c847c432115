#include "wire/wslay.h"

#include <dlfcn.h>
#include <pthread.h>

/* The name includes the ABI version; a library with another version has other functions. */
#define LIBWSLAY "libwslay.so.1"

static struct wslay table;
static struct err failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool open_library(void **ret) {
    *ret = dlopen(LIBWSLAY, RTLD_NOW | RTLD_LOCAL);
    if (*ret) return true;
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc keeps one a thread */
    return err_set(
        &failed, ERR_UNAVAILABLE,
        "WebSocket needs libwslay, and it cannot be loaded (%s): install the package "
        "libwslay1",
        why);
}

/* dlsym() returns an object pointer even for a function. POSIX guarantees that copying the bits
 * works. */
static bool wslay_find(void *library, const char *name, void *ret) {
    void *found = dlsym(library, name);
    if (!found)
        return err_set(&failed, ERR_UNAVAILABLE,
                       "the installed libwslay has no %s(); weir needs 1.1 or later", name);
    memcpy(ret, &found, sizeof(found));
    return true;
}

static bool find_all(void *library) {
#define FIND(name)                                                                             \
    if (!wslay_find(library, #name, &table.name)) return false;
    WSLAY_FUNCTIONS(FIND)
#undef FIND
    return true;
}

static void wire_wslay_load(void) {
    void *library;
    bool good = open_library(&library) && find_all(library);
    (void)good; /* the result is in `failed` */
}

bool wslay_load(struct err *e) {
    pthread_once(&once, wire_wslay_load);
    if (failed.code == ERR_NONE) return true;
    *e = failed;
    return false;
}

const struct wslay *wslay_loaded(void) {
    return &table;
}
