#include "base/shared_library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static bool shared_library_open(struct shared_library *library, void **ret) {
    *ret = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);
    if (*ret) return true;
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc keeps one a thread */
    return err_set(&library->failed, library->code,
                   "%s, and it cannot be loaded (%s): install the package %s", library->needs,
                   why, library->package);
}

/* dlsym() returns an object pointer even for a function. POSIX guarantees that copying the bits
 * works. */
static bool shared_library_find(struct shared_library *library, void *handle,
                                const struct shared_symbol *symbol) {
    void *found = dlsym(handle, symbol->name);
    if (!found)
        return err_set(&library->failed, library->code, "the installed %s has no %s()%s%s",
                       library->title, symbol->name, library->version ? "; " : "",
                       library->version ? library->version : "");
    memcpy((char *)library->table + symbol->offset, &found, sizeof(found));
    return true;
}

static bool shared_library_fill(struct shared_library *library) {
    void *handle = NULL;
    if (!shared_library_open(library, &handle)) return false;
    for (size_t i = 0; i < library->symbols_count; i++) {
        if (!shared_library_find(library, handle, &library->symbols[i])) return false;
    }
    return !library->check || library->check(&library->failed);
}

static void shared_library_try(struct shared_library *library) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (!atomic_load(&library->tried)) {
        bool good = shared_library_fill(library);
        (void)good; /* the outcome is in `failed` */
        atomic_store(&library->tried, true);
    }
    pthread_mutex_unlock(&lock);
}

bool shared_library_load(struct shared_library *library, struct err *e) {
    if (!atomic_load(&library->tried)) shared_library_try(library);
    if (library->failed.code == ERR_NONE) return true;
    *e = library->failed;
    return false;
}
