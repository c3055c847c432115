#include "server/http2_memory.h"

#include "server/conn.h"

#include <stdlib.h>
#include <string.h>

/* --- the allocator ------------------------------------------------------------------------ */

/* Blocks of this size are taken from the region only while they last as long as it. */
static bool comes_from_heap(const struct http2_memory *memory, size_t size) {
    return size > REGION_LISTED_MAX_BYTES && size < REGION_PAGE_BYTES && !memory->starting;
}

static void *http2_malloc(size_t size, void *ctx) {
    struct http2_memory *memory = ctx;
    void *at = comes_from_heap(memory, size) ? NULL : region_take(&memory->region, size);
    return at ? at : malloc(size);
}

static void *http2_calloc(size_t count, size_t size, void *ctx) {
    struct http2_memory *memory = ctx;
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    void *at = comes_from_heap(memory, bytes) ? NULL : region_take_zero(&memory->region, bytes);
    return at ? at : calloc(count, size);
}

static void http2_release(void *at, void *ctx) {
    struct http2_memory *memory = ctx;
    if (region_has(&memory->region, at))
        region_give(&memory->region, at);
    else
        free(at);
}

static void *http2_realloc(void *at, size_t size, void *ctx) {
    struct http2_memory *memory = ctx;
    if (!at) return http2_malloc(size, ctx);
    if (!region_has(&memory->region, at)) return realloc(at, size);
    size_t had = region_block_bytes(&memory->region, at);
    if (size <= had) return at;
    void *moved = http2_malloc(size, ctx);
    if (!moved) return NULL;
    memcpy(moved, at, had);
    region_give(&memory->region, at);
    return moved;
}

nghttp2_mem http2_memory_allocator(struct http2_memory *memory) {
    return (nghttp2_mem){memory, http2_malloc, http2_release, http2_calloc, http2_realloc};
}

/* --- rest --------------------------------------------------------------------------------- */

bool http2_memory_init(struct http2_memory *memory, struct conn *conn) {
    memory->conn = conn;
    list_init(&memory->link);
    memory->starting = true;
    return region_init(&memory->region, &conn->home->regions);
}

void http2_memory_done(struct http2_memory *memory) {
    list_remove(&memory->link);
    region_done(&memory->region);
}

/* Sessions join at the end and most are looked at after the same time, so the first is due
 * first; one that was used meanwhile joins again, and may wait for others a little longer. */
static void look_later(struct home *home, struct http2_memory *memory, uint64_t from_ms) {
    memory->look_ms = from_ms + HTTP2_REST_MS;
    list_append(&home->awake, &memory->link);
    if (!home->shut_down && !timer_waits(&home->look)) timer_start(&home->look, HTTP2_REST_MS);
}

void http2_memory_wake(struct http2_memory *memory) {
    region_unpack(&memory->region);
    look_later(memory->conn->home, memory, memory->used_ms);
}

static struct http2_memory *first_due(struct home *home) {
    if (list_empty(&home->awake)) return NULL;
    struct http2_memory *first = CONTAINER_OF(home->awake.next, struct http2_memory, link);
    return first->look_ms <= loop_now_ms(home->loop) ? first : NULL;
}

static uint64_t rests_from_ms(const struct http2_memory *memory) {
    bool busy = memory->conn->exchange_count > 0;
    return memory->used_ms + (busy ? HTTP2_BUSY_REST_MS : HTTP2_REST_MS);
}

/* Returns whether it was packed. */
static bool settle(struct home *home, struct http2_memory *memory) {
    uint64_t now = loop_now_ms(home->loop);
    list_remove(&memory->link);
    if (rests_from_ms(memory) <= now) {
        region_pack(&memory->region);
        return true;
    }
    bool used = memory->used_ms + HTTP2_REST_MS > now;
    look_later(home, memory, used ? memory->used_ms : now);
    return false;
}

void http2_memory_look(void *ctx) {
    struct home *home = ctx;
    struct http2_memory *memory;
    size_t packed = 0;
    while (packed < HTTP2_PACKS_A_LOOK && (memory = first_due(home)))
        packed += settle(home, memory);
    if (list_empty(&home->awake)) return;
    uint64_t now = loop_now_ms(home->loop);
    uint64_t due = CONTAINER_OF(home->awake.next, struct http2_memory, link)->look_ms;
    timer_start(&home->look,
                due > now + HTTP2_LOOKS_APART_MS ? due - now : HTTP2_LOOKS_APART_MS);
}
