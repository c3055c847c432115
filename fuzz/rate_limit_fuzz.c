/* Any text as a rate: what is read has bounds, and reads again as it is written. */
#include "base/rate.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct rate_limit limit, again;
    struct err e;
    char room[64];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (!rate_limit_read(str_of((const char *)data, size), &limit, &e)) return 0;
    assert(limit.count <= RATE_COUNT_MAX && (!limit.count || limit.per_ms >= 1000));
    assert(rate_limit_append(&text, limit));
    assert(rate_limit_read(buf_str(&text), &again, &e) && rate_limit_equal(limit, again));
    return 0;
}
