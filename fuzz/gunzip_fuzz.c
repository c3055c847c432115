/* The first byte says how the rest is cut into pieces, and whether the reader stops after each
 * of what comes out: neither may change it. */
#include "client/gunzip.h"

#include "base/buf.h"

#include <assert.h>

#define SEEN_MAX_BYTES (4 * MIB)

struct reader {
    struct buf seen;
    bool stops;
};

static bool on_bytes(struct str bytes, void *ctx) {
    struct reader *reader = ctx;
    assert(bytes.len > 0);
    buf_append(&reader->seen, bytes);
    return !reader->stops;
}

static bool go_to_the_end(struct gunzip *gunzip) {
    struct err e;
    while (gunzip_waits(gunzip)) {
        if (!gunzip_go(gunzip, &e)) return false;
    }
    return true;
}

/* 0 broken, 1 more is missing, 2 whole. */
static int read_all(struct str bytes, size_t piece, struct reader *reader) {
    struct err e;
    bool fine = true;
    struct gunzip *gunzip = gunzip_new(on_bytes, reader);
    for (; bytes.len && fine; bytes = str_skip(bytes, piece))
        fine = gunzip_feed(gunzip, str_head(bytes, piece), &e) && go_to_the_end(gunzip);
    int result = fine ? 1 + gunzip_whole(gunzip) : 0;
    gunzip_free(gunzip);
    return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2 || size > 64 * KIB) return 0;
    struct str input = str_of(data + 1, size - 1);
    struct reader whole = {0}, cut = {.stops = data[0] & 1};
    buf_init(&whole.seen, SEEN_MAX_BYTES);
    buf_init(&cut.seen, SEEN_MAX_BYTES);
    int first = read_all(input, size, &whole);
    assert(read_all(input, (size_t)data[0] / 2 % 16 + 1, &cut) == first);
    if (first) assert(str_equal(buf_str(&whole.seen), buf_str(&cut.seen)));
    buf_done(&whole.seen);
    buf_done(&cut.seen);
    return 0;
}
