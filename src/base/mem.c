#include "base/mem.h"

#include "base/err.h"
#include "base/log.h"
#include "base/machine.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

NORETURN static void exhausted(size_t size) {
    log_last(
        LOG_ERROR,
        "out of memory: the system refused %zu bytes; what was acknowledged is safe in the "
        "store",
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

/* --- giving back -------------------------------------------------------------------------- */

/* What the heap holds free includes what was given back: only its changes tell something. */
static size_t heap_free_bytes(void) {
#ifdef __GLIBC__
    return mallinfo2().fordblks;
#else
    return 0;
#endif
}

static uint64_t resident_bytes(void) {
    uint64_t bytes;
    return machine_resident_bytes(&bytes) ? bytes : 0;
}

/* The least since the last time that memory was given back. */
static _Atomic uint64_t least_resident;
static _Atomic size_t least_free;

void mem_give_back(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
    least_resident = resident_bytes();
    least_free = heap_free_bytes();
}

bool mem_may_give_back(size_t bytes) {
    uint64_t resident = resident_bytes();
    size_t unused = heap_free_bytes();
    if (resident < least_resident) least_resident = resident;
    if (unused < least_free) least_free = unused;
    return resident - least_resident >= bytes || unused - least_free >= bytes;
}

/* --- the ceiling -------------------------------------------------------------------------- */

#define LATE_BYTES ((ptrdiff_t)(16 * KIB)) /* so much a thread counts for itself */
#define SMALL_BYTES (64 * KIB)
#define SPARED_PART 8 /* of the ceiling: for small wishes */
/* Above it a block is a mapping of its own and goes back at once when it is freed. */
#define MAPPED_FROM_BYTES (256 * KIB)

static atomic_ptrdiff_t counted;
static _Thread_local ptrdiff_t late;
static size_t limit = SIZE_MAX;
static mem_shed_fn *shed;
static void *shed_ctx;

static void mem_add(ptrdiff_t bytes) {
    late += bytes;
    if (late < LATE_BYTES && late > -LATE_BYTES) return;
    atomic_fetch_add_explicit(&counted, late, memory_order_relaxed);
    late = 0;
}

void mem_count(size_t bytes) {
    mem_add((ptrdiff_t)bytes);
}

void mem_uncount(size_t bytes) {
    mem_add(-(ptrdiff_t)bytes);
}

size_t mem_counted(void) {
    ptrdiff_t now = atomic_load_explicit(&counted, memory_order_relaxed) + late;
    return now > 0 ? (size_t)now : 0;
}

void mem_limit(size_t bytes) {
    limit = bytes ? bytes : SIZE_MAX;
#ifdef __GLIBC__
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has begun */
    mallopt(M_MMAP_THRESHOLD, (int)MAPPED_FROM_BYTES);
#endif
}

void mem_shed_with(mem_shed_fn *fn, void *ctx) {
    shed = fn;
    shed_ctx = ctx;
}

/* What is over if `bytes` are taken. */
static size_t mem_over(size_t bytes) {
    size_t allowed = bytes > SMALL_BYTES ? limit - limit / SPARED_PART : limit;
    size_t held = mem_counted();
    if (held > allowed) return held - allowed + bytes;
    return bytes > allowed - held ? bytes - (allowed - held) : 0;
}

bool mem_allows(size_t bytes) {
    size_t too_much = mem_over(bytes);
    if (too_much == 0) return true;
    if (shed) shed(too_much, shed_ctx);
    return mem_over(bytes) == 0;
}

bool mem_check(size_t bytes, struct err *e) {
    if (mem_allows(bytes)) return true;
    return err_set(e, ERR_OUT_OF_MEMORY,
                   "what turns may hold of the memory is used up (limits.memory, %zu MiB); try "
                   "again in a moment",
                   limit / MIB);
}
