#include "base/rate_limits.h"

#include "base/mem.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

static const struct {
    struct str name, refusal;
} scopes[RATE_SCOPES] = {
    [RATE_ADDRESS] = {STR_INIT("address"), STR_INIT("too many requests from this address")},
    [RATE_TOKEN] = {STR_INIT("token"), STR_INIT("too many requests with this token")},
    [RATE_AGENT] = {STR_INIT("agent"), STR_INIT("too many requests to this agent")},
};

struct rate_limits {
    atomic_bool on[RATE_SCOPES];
    pthread_mutex_t lock;
    struct {
        struct rate_limit limit;
        struct rate *rate; /* NULL: off */
    } of[RATE_SCOPES];     /* guarded */
};

struct str rate_scope_name(enum rate_scope scope) {
    return scopes[scope].name;
}

struct str rate_scope_refusal(enum rate_scope scope) {
    return scopes[scope].refusal;
}

bool rate_refuse(enum rate_scope scope, const struct rate_room *room, struct err *e) {
    err_set(e, ERR_RESOURCE_EXHAUSTED, STR_FMT "; try again in %llu s",
            STR_ARG(scopes[scope].refusal), (unsigned long long)rate_wait_s(room));
    e->retry_after_ms = (uint32_t)room->wait_ms; /* an hour at most */
    return false;
}

struct rate_limits *rate_limits_new(const struct rate_limit limits[static RATE_SCOPES]) {
    struct rate_limits *rates = MEM_NEW(struct rate_limits);
    pthread_mutex_init(&rates->lock, NULL);
    rate_limits_use(rates, limits);
    return rates;
}

void rate_limits_free(struct rate_limits *rates) {
    if (!rates) return;
    for (size_t i = 0; i < RATE_SCOPES; i++) rate_free(rates->of[i].rate);
    pthread_mutex_destroy(&rates->lock);
    free(rates);
}

static void use_one(struct rate_limits *rates, size_t scope, struct rate_limit limit) {
    if (rate_limit_equal(rates->of[scope].limit, limit)) return;
    rate_free(rates->of[scope].rate);
    rates->of[scope].limit = limit;
    rates->of[scope].rate = rate_new(limit);
    atomic_store(&rates->on[scope], limit.count > 0);
}

void rate_limits_use(struct rate_limits *rates,
                     const struct rate_limit limits[static RATE_SCOPES]) {
    pthread_mutex_lock(&rates->lock);
    for (size_t i = 0; i < RATE_SCOPES; i++) use_one(rates, i, limits[i]);
    pthread_mutex_unlock(&rates->lock);
}

bool rate_limits_take(struct rate_limits *rates, enum rate_scope scope, struct str key,
                      uint64_t now_ms, struct rate_room *ret) {
    *ret = (struct rate_room){0};
    if (!rates || !key.len) return true;
    if (!atomic_load_explicit(&rates->on[scope], memory_order_relaxed)) return true;
    pthread_mutex_lock(&rates->lock);
    uint64_t wait_ms = rate_take(rates->of[scope].rate, key, now_ms, ret);
    pthread_mutex_unlock(&rates->lock);
    return wait_ms == 0;
}

bool rate_limits_admit(struct rate_limits *rates, enum rate_scope scope, struct str key,
                       uint64_t now_ms, struct err *e) {
    struct rate_room room;
    return rate_limits_take(rates, scope, key, now_ms, &room) || rate_refuse(scope, &room, e);
}
