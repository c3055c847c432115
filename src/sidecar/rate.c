#include "sidecar/rate.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

#include <stdlib.h>

/* When the bucket will be full: it is enough to know a bucket. */
struct bucket {
    struct text key;
    uint64_t full_us;
};

struct rate {
    struct sidecar_rate limit;
    struct map *buckets;
    uint64_t late_us; /* the bucket of those who came too late */
    uint64_t swept_ms;
};

struct rate *rate_new(struct sidecar_rate limit) {
    if (!limit.count) return NULL;
    struct rate *rate = MEM_NEW(struct rate);
    rate->limit = limit;
    rate->buckets = map_new();
    return rate;
}

static void bucket_free(struct bucket *bucket) {
    text_done(&bucket->key);
    free(bucket);
}

void rate_free(struct rate *rate) {
    size_t cursor = 0;
    struct str key;
    void *value;
    if (!rate) return;
    while (map_next(rate->buckets, &cursor, &key, &value)) bucket_free(value);
    map_free(rate->buckets);
    free(rate);
}

/* Microseconds in which one token comes. */
static uint64_t token_us(const struct rate *rate) {
    return rate->limit.per_ms * 1000 / rate->limit.count;
}

/* Forget the full buckets, at most once in the time of the rate. */
static void sweep(struct rate *rate, uint64_t now_ms) {
    if (rate->swept_ms && now_ms - rate->swept_ms < rate->limit.per_ms) return;
    rate->swept_ms = now_ms;
    bool found = true;
    while (found) {
        size_t cursor = 0;
        struct str key;
        void *value;
        struct bucket *old[64];
        size_t count = 0;
        while (count < ARRAY_LEN(old) && map_next(rate->buckets, &cursor, &key, &value)) {
            struct bucket *bucket = value;
            if (bucket->full_us <= now_ms * 1000) old[count++] = bucket;
        }
        for (size_t i = 0; i < count; i++) {
            map_remove(rate->buckets, text_str(old[i]->key));
            bucket_free(old[i]);
        }
        found = count == ARRAY_LEN(old);
    }
}

static uint64_t *bucket_of(struct rate *rate, struct str key, uint64_t now_ms) {
    struct bucket *bucket = map_find(rate->buckets, key);
    if (bucket) return &bucket->full_us;
    if (map_count(rate->buckets) >= RATE_KEYS_MAX) sweep(rate, now_ms);
    if (map_count(rate->buckets) >= RATE_KEYS_MAX) return &rate->late_us;
    bucket = MEM_NEW(struct bucket);
    bucket->key = text_copy(key);
    map_put(rate->buckets, text_str(bucket->key), bucket);
    return &bucket->full_us;
}

/* A bucket that is full in `n` times token_us() lacks n tokens. */
uint64_t rate_take(struct rate *rate, struct str key, uint64_t now_ms) {
    if (!rate) return 0;
    uint64_t now_us = now_ms * 1000, step_us = token_us(rate);
    uint64_t *full_us = bucket_of(rate, key, now_ms);
    uint64_t from_us = *full_us > now_us ? *full_us : now_us;
    uint64_t lacks_us = from_us - now_us, most_us = step_us * rate->limit.count;
    if (lacks_us + step_us <= most_us) {
        *full_us = from_us + step_us;
        return 0;
    }
    return (lacks_us + step_us - most_us + 999) / 1000;
}

size_t rate_count(const struct rate *rate) {
    return rate ? map_count(rate->buckets) : 0;
}
