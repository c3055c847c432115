#include "base/mem.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

NORETURN static void exhausted(size_t size) {
    fprintf(
        stderr,
        "weir: out of memory: the system refused %zu bytes; what was acknowledged is safe in "
        "the store\n",
        size);
    abort();
}

void *mem_alloc(size_t size) {
    void *at = malloc(size ? size : 1);
    if (!at) exhausted(size);
    return at;
}

void *mem_zero(size_t count, size_t size) {
    void *at = calloc(count ? count : 1, size ? size : 1);
    if (!at) exhausted(count * size);
    return at;
}

void *mem_resize(void *at, size_t size) {
    void *moved = realloc(at, size ? size : 1);
    if (!moved) exhausted(size);
    return moved;
}

void mem_give_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}
