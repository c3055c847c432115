#include "base/mem.h"

#include "base/err.h"
#include "base/log.h"

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

/* --- the ceiling -------------------------------------------------------------------------- */

#define LATE_BYTES ((ptrdiff_t)(16 * KIB)) /* a thread updates the total after this much */
#define FREED_BYTES ((ptrdiff_t)MIB)       /* much less: by this, and by a third */
#define SMALL_BYTES (64 * KIB)
#define SCARCE_PART 2
#define SPARED_PART 8 /* of the ceiling, reserved for small requests */
/* Larger blocks are separate mappings, which return to the system when freed. */
#define MAPPED_FROM_BYTES (256 * KIB)

static atomic_ptrdiff_t counted;
static _Thread_local ptrdiff_t late;
static size_t limit = SIZE_MAX;
static mem_shed_fn *shed;
static void *shed_ctx;

/* The highest count since the last mem_watch(MEM_FROM_NOW), and whether `freed` may be
 * called. */
static atomic_ptrdiff_t highest;
static atomic_bool watched;
static mem_freed_fn *freed;
static void *freed_ctx;

static bool is_much(ptrdiff_t most, ptrdiff_t now) {
    return most - now >= FREED_BYTES && most - now >= most / 3;
}

/* If two threads store at the same time, the higher value may be lost; it is only slightly
 * higher. */
static void note_count(ptrdiff_t now) {
    ptrdiff_t most = atomic_load_explicit(&highest, memory_order_relaxed);
    if (now > most) atomic_store_explicit(&highest, now, memory_order_relaxed);
    if (!is_much(most, now) || !atomic_load_explicit(&watched, memory_order_relaxed)) return;
    if (atomic_exchange(&watched, false)) freed(freed_ctx);
}

static void mem_add(ptrdiff_t bytes) {
    late += bytes;
    if (late < LATE_BYTES && late > -LATE_BYTES) return;
    ptrdiff_t before = atomic_fetch_add_explicit(&counted, late, memory_order_relaxed);
    ptrdiff_t now = before + late;
    late = 0;
    note_count(now);
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

void mem_freed_with(mem_freed_fn *fn, void *ctx) {
    mem_unwatch();
    freed = fn;
    freed_ctx = ctx;
    mem_watch(MEM_FROM_NOW);
}

void mem_unwatch(void) {
    atomic_store(&watched, false);
}

bool mem_much_freed(void) {
    return is_much(atomic_load(&highest), atomic_load(&counted));
}

void mem_watch(enum mem_from from) {
    if (from == MEM_FROM_NOW) atomic_store(&highest, atomic_load(&counted));
    atomic_store(&watched, freed != NULL);
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

bool mem_scarce(void) {
    return mem_counted() > limit / SCARCE_PART;
}

/* The excess over the ceiling if `bytes` more are taken. */
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
