#include "client/http.h"

#include "base/mem.h"
#include "client/direct.h"
#include "client/easy.h"
#include "client/grpc_keep.h"
#include "client/h2.h"
#include "client/link.h"
#include "client/place.h"
#include "client/request_line.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct http_pool {
    atomic_bool needed;
    struct authorities *authorities;
    struct str socket;     /* empty: where each URL says */
    struct place **places; /* fixed before the loops run */
    size_t count;
};

struct http_pool *http_pool_new(void) {
    struct http_pool *pool = MEM_NEW(struct http_pool);
    atomic_init(&pool->needed, false);
    pool->authorities = authorities_new();
    return pool;
}

void http_pool_trust(struct http_pool *pool, struct str path) {
    authorities_set(pool->authorities, path);
}

void http_pool_connect_to(struct http_pool *pool, struct str path) {
    assert(pool->count == 0);
    pool->socket = path;
}

void http_pool_add(struct http_pool *pool, struct loop *loop) {
    struct place *place = MEM_NEW(struct place);
    place->loop = loop;
    place->socket = pool->socket;
    list_init(&place->idle);
    list_init(&place->shared);
    list_init(&place->kept);
    names_init(&place->names, loop);
    secure_init(&place->secure, loop, pool->authorities);
    pool->places = mem_resize(pool->places, (pool->count + 1) * sizeof(struct place *));
    pool->places[pool->count++] = place;
}

/* --- which carrier ------------------------------------------------------------------------- */

/* The first of these variables that is set, or NULL. */
static const char *first_set(const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes our environment */
        const char *value = getenv(names[i]);
        if (value && *value) return value;
    }
    return NULL;
}

/* libcurl's own lists, in its spelling: HTTP_PROXY could be a header of CGI. no_proxy=* means that no
 * proxy is asked, so libcurl is not needed. */
static bool environment_has_proxy(void) {
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                          "all_proxy", "ALL_PROXY"};
    static const char *const none[] = {"no_proxy", "NO_PROXY"};
    const char *without = first_set(none, ARRAY_LEN(none));
    if (without && strcmp(without, "*") == 0) return false;
    return first_set(proxies, ARRAY_LEN(proxies)) != NULL;
}

/* A proxy cannot reach a Unix socket. */
static bool asks_proxy(const struct http_pool *pool) {
    return !pool->socket.len && environment_has_proxy();
}

bool http_pool_need(struct http_pool *pool, struct err *e) {
    const struct curl *curl;
    if (asks_proxy(pool) && !curl_load(&curl, e)) return false;
    atomic_store(&pool->needed, true);
    return true;
}

static bool carry_with_curl(struct http_call *call, const struct http_request *request,
                            struct err *e) {
    struct place *place = call->place;
    const struct curl *curl;
    if (!curl_load(&curl, e)) return false;
    if (!place->lane) place->lane = lane_new(curl, place->loop);
    return easy_carry(call, place->lane, request, e);
}

/* A proxy connects for us and a user name becomes a header: libcurl knows how. */
static bool http_carry(const struct http_pool *pool, struct http_call *call,
                       const struct http_request *request, struct err *e) {
    struct url url = {0};
    if (!atomic_load(&pool->needed))
        return err_set(e, ERR_UNAVAILABLE, "asking other servers was not prepared");
    if (!request->method.len || !request_is_line(request->method))
        return err_set(e, ERR_INVALID_ARGUMENT, "the request has no method");
    if (!request->url.len || !request_is_line(request->url))
        return err_set(e, ERR_INVALID_ARGUMENT, "the URL is empty, or has a line break in it");
    switch (url_read(request->url, &url)) {
    case URL_FINE: break;
    case URL_BROKEN: return err_set(e, ERR_INVALID_ARGUMENT, "this is no URL");
    case URL_OTHER_SCHEME:
        return err_set(e, ERR_INVALID_ARGUMENT, "only http: and https: are asked");
    case URL_RARE: return carry_with_curl(call, request, e);
    }
    if (request->reach == HTTP_PUBLIC_ONLY && url.user.at)
        return err_set(e, ERR_PERMISSION_DENIED, "a URL with a user name in it is not asked");
    bool rare = url.user.at || (asks_proxy(pool) && request->reach != HTTP_PUBLIC_ONLY);
    return rare ? carry_with_curl(call, request, e) : direct_carry(call, request, e);
}

/* --- public functions --------------------------------------------------------------------- */

struct place *http_place_of(const struct http_pool *pool, const struct loop *loop) {
    size_t at = 0;
    while (at < pool->count && pool->places[at]->loop != loop) at++;
    assert(at < pool->count); /* http_pool_add() */
    return pool->places[at];
}

void http_pool_leave(struct http_pool *pool, struct loop *loop) {
    struct place *place = http_place_of(pool, loop);
    grpc_keep_leave(place);
    assert(place->calls == 0);
    link_close_idle(place);
    h2_close_all(place);
    secure_leave(&place->secure);
    names_leave(&place->names);
    lane_free(place->lane);
    place->lane = NULL;
    free(place->read);
    place->read = NULL;
}

void http_pool_free(struct http_pool *pool) {
    if (!pool) return;
    for (size_t i = 0; i < pool->count; i++) {
        assert(!pool->places[i]->lane && pool->places[i]->calls == 0); /* http_pool_leave() */
        assert(list_empty(&pool->places[i]->idle) && list_empty(&pool->places[i]->shared));
        secure_done(&pool->places[i]->secure);
        free(pool->places[i]);
    }
    authorities_unref(pool->authorities);
    free(pool->places);
    free(pool);
}

struct http_call *http_start(struct http_pool *pool, struct loop *loop,
                             const struct http_request *request, const struct http_sink *sink,
                             void *ctx) {
    struct err why;
    assert(loop_uv(loop)); /* a fake loop has no sockets: see test/fake/http_fake.h */
    struct http_call *call = http_call_new(http_place_of(pool, loop), request, sink, ctx);
    if (!http_carry(pool, call, request, &why)) http_call_refuse(call, &why);
    return call;
}
