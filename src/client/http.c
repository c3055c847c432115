#include "client/http.h"

#include "base/mem.h"
#include "client/call.h"
#include "client/curl.h"
#include "client/lane.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The state of one loop; only that loop uses it. */
struct place {
    struct loop *loop;
    struct lane *lane; /* from its first call on */
    size_t calls;
};

struct http_pool {
    _Atomic(const struct curl *) curl; /* NULL: not needed so far */
    struct place **places;             /* fixed before the loops run */
    size_t count;
};

struct http_pool *http_pool_new(void) {
    struct http_pool *pool = MEM_NEW(struct http_pool);
    atomic_init(&pool->curl, NULL);
    return pool;
}

void http_pool_add(struct http_pool *pool, struct loop *loop) {
    struct place *place = MEM_NEW(struct place);
    place->loop = loop;
    pool->places = mem_resize(pool->places, (pool->count + 1) * sizeof(struct place *));
    pool->places[pool->count++] = place;
}

bool http_pool_need(struct http_pool *pool, struct err *e) {
    const struct curl *curl;
    if (!curl_load(&curl, e)) return false;
    atomic_store(&pool->curl, curl);
    return true;
}

static struct place *place_of(const struct http_pool *pool, const struct loop *loop) {
    size_t at = 0;
    while (at < pool->count && pool->places[at]->loop != loop) at++;
    assert(at < pool->count); /* http_pool_add() */
    return pool->places[at];
}

void http_pool_leave(struct http_pool *pool, struct loop *loop) {
    struct place *place = place_of(pool, loop);
    assert(place->calls == 0);
    lane_free(place->lane);
    place->lane = NULL;
}

void http_pool_free(struct http_pool *pool) {
    if (!pool) return;
    for (size_t i = 0; i < pool->count; i++) {
        assert(!pool->places[i]->lane && pool->places[i]->calls == 0); /* http_pool_leave() */
        free(pool->places[i]);
    }
    free(pool->places);
    free(pool);
}

struct http_call *http_start(struct http_pool *pool, struct loop *loop,
                             const struct http_request *request, const struct http_sink *sink,
                             void *ctx) {
    struct place *place = place_of(pool, loop);
    const struct curl *curl = atomic_load(&pool->curl);
    struct err why;
    assert(loop_uv(loop)); /* a fake loop has no sockets: see test/fake/http_fake.h */
    err_set(&why, ERR_UNAVAILABLE, "libcurl, which asks other servers, is not loaded");
    if (curl && !place->lane) place->lane = lane_new(curl, loop);
    return http_call_new(place->lane, loop, &place->calls, request, sink, ctx, &why);
}
