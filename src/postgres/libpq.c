#include "postgres/libpq.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <pthread.h>

/* The name includes the ABI version; a library with another version has other functions. */
#define LIBPQ "libpq.so.5"

static struct libpq table;
static struct err failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool libpq_open(void **ret) {
    *ret = dlopen(LIBPQ, RTLD_NOW | RTLD_LOCAL);
    if (*ret) return true;
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc keeps one a thread */
    return err_set(&failed, ERR_UNAVAILABLE,
                   "PostgreSQL needs libpq, and it cannot be loaded (%s): install the package "
                   "libpq5",
                   why);
}

/* dlsym() returns an object pointer even for a function. POSIX guarantees that copying the bits
 * works. */
static bool libpq_find(void *library, const char *name, void *ret) {
    void *found = dlsym(library, name);
    if (!found)
        return err_set(&failed, ERR_UNAVAILABLE,
                       "the installed libpq has no %s(); weir needs libpq 14 or later", name);
    memcpy(ret, &found, sizeof(found));
    return true;
}

static bool find_all(void *library) {
#define FIND(name)                                                                             \
    if (!libpq_find(library, #name, &table.name)) return false;
    LIBPQ_FUNCTIONS(FIND)
#undef FIND
    return true;
}

static void postgres_libpq_load(void) {
    void *library;
    bool good = libpq_open(&library) && find_all(library);
    (void)good; /* the result is in `failed` */
}

bool libpq_load(const struct libpq **ret, struct err *e) {
    pthread_once(&once, postgres_libpq_load);
    if (failed.code != ERR_NONE) {
        *e = failed;
        return false;
    }
    *ret = &table;
    return true;
}

const struct libpq *libpq_loaded(void) {
    return &table;
}
