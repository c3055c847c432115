#include "base/rate.h"

#include "base/map.h"
#include "base/mem.h"

#include <stdlib.h>

#define SWEEP_MS 1000

/* When the bucket will be full: that is all one must know of a bucket. */
struct bucket {
    uint64_t key; /* hashed */
    uint64_t full_us;
};

struct rate {
    struct rate_limit limit;
    struct map *buckets;
    uint64_t late_us; /* the bucket of all that came too late */
    uint64_t swept_ms;
};

/* --- a limit as text -------------------------------------------------------------------------- */

static const struct {
    char unit;
    uint64_t ms;
} units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}};

bool rate_limit_read(struct str text, struct rate_limit *ret, struct err *e) {
    struct str unit, count = str_split(text, '/', &unit);
    struct rate_limit limit = {0};
    *ret = limit;
    if (str_equal(text, STR("off")) || str_equal(text, STR("0"))) return true;
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (str_equal(unit, str_of(&units[i].unit, 1))) limit.per_ms = units[i].ms;
    }
    bool good = limit.per_ms && str_to_u64(count, &limit.count) && limit.count > 0 &&
                limit.count <= RATE_COUNT_MAX;
    if (good) *ret = limit;
    return good || err_set(e, ERR_INVALID_ARGUMENT,
                           "a rate is a number in a time: 10/s, 600/m, 5000/h, or off");
}

bool rate_limit_append(struct buf *out, struct rate_limit limit) {
    if (!limit.count) return buf_append(out, STR("off"));
    buf_append_u64(out, limit.count);
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        if (units[i].ms == limit.per_ms)
            return buf_append_byte(out, '/') && buf_append_byte(out, units[i].unit);
    }
    return false;
}

/* --- buckets ---------------------------------------------------------------------------------- */

struct rate *rate_new(struct rate_limit limit) {
    if (!limit.count) return NULL;
    struct rate *rate = MEM_NEW(struct rate);
    rate->limit = limit;
    rate->buckets = map_new();
    return rate;
}

void rate_free(struct rate *rate) {
    size_t cursor = 0;
    struct str key;
    void *value;
    if (!rate) return;
    while (map_next(rate->buckets, &cursor, &key, &value)) free(value);
    map_free(rate->buckets);
    free(rate);
}

static struct str rate_key_of(const uint64_t *hash) {
    return str_of((const char *)hash, sizeof(*hash));
}

/* Take the full buckets out into `ret`, which has room for all. */
static size_t find_full(const struct rate *rate, uint64_t now_us, struct bucket **ret) {
    size_t cursor = 0, count = 0;
    struct str key;
    void *value;
    while (map_next(rate->buckets, &cursor, &key, &value)) {
        struct bucket *bucket = value;
        if (bucket->full_us <= now_us) ret[count++] = bucket;
    }
    return count;
}

/* Forget the full buckets, but not with each new key when none is full. */
static void sweep(struct rate *rate, uint64_t now_ms) {
    if (rate->swept_ms && now_ms - rate->swept_ms < SWEEP_MS) return;
    rate->swept_ms = now_ms;
    struct bucket **full = mem_alloc(map_count(rate->buckets) * sizeof(void *));
    size_t count = find_full(rate, now_ms * 1000, full);
    for (size_t i = 0; i < count; i++) {
        map_remove(rate->buckets, rate_key_of(&full[i]->key));
        free(full[i]);
    }
    free(full);
}

static uint64_t *bucket_of(struct rate *rate, struct str key, uint64_t now_ms) {
    uint64_t hash = map_hash(key);
    struct bucket *bucket = map_find(rate->buckets, rate_key_of(&hash));
    if (bucket) return &bucket->full_us;
    if (map_count(rate->buckets) >= RATE_KEYS_MAX) sweep(rate, now_ms);
    if (map_count(rate->buckets) >= RATE_KEYS_MAX) return &rate->late_us;
    bucket = MEM_NEW(struct bucket);
    bucket->key = hash;
    map_put(rate->buckets, rate_key_of(&bucket->key), bucket);
    return &bucket->full_us;
}

/* Microseconds in which one token comes. */
static uint64_t token_us(const struct rate *rate) {
    return rate->limit.per_ms * 1000 / rate->limit.count;
}

/* A bucket that is full in `n` times token_us() lacks n tokens. */
uint64_t rate_take(struct rate *rate, struct str key, uint64_t now_ms,
                   struct rate_room *ret_room) {
    if (ret_room) *ret_room = (struct rate_room){0};
    if (!rate) return 0;
    uint64_t now_us = now_ms * 1000, step_us = token_us(rate), wait_ms = 0;
    uint64_t *full_us = bucket_of(rate, key, now_ms);
    uint64_t from_us = *full_us > now_us ? *full_us : now_us;
    uint64_t lacks_us = from_us - now_us, most_us = step_us * rate->limit.count;
    if (lacks_us + step_us <= most_us)
        *full_us = from_us + step_us;
    else
        wait_ms = (lacks_us + step_us - most_us + 999) / 1000;
    if (ret_room) {
        lacks_us = *full_us > now_us ? *full_us - now_us : 0;
        *ret_room = (struct rate_room){.limit = rate->limit,
                                       .left = (most_us - lacks_us) / step_us,
                                       .reset_ms = (lacks_us + 999) / 1000,
                                       .wait_ms = wait_ms};
    }
    return wait_ms;
}

size_t rate_count(const struct rate *rate) {
    return rate ? map_count(rate->buckets) : 0;
}
