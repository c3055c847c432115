/* gzip: compressed bytes of a hostile peer, under several limits.
 *
 * Whatever fits a limit must come out the same under a larger one, nothing may grow past its
 * limit, and what is deflated must inflate to itself.
 */
#include "rpc/gzip.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LARGE_BYTES (1 * MIB)

static void must(bool holds) {
    if (!holds) abort();
}

static void inflate_within(struct str input, size_t max_bytes, bool fits, struct str all) {
    struct buf out;
    struct err e;
    buf_init(&out, max_bytes);
    bool ok = gzip_inflate(input, &out, &e);
    must(out.len <= max_bytes);
    must(ok == (fits && all.len <= max_bytes));
    if (ok) must(str_equal(buf_str(&out), all));
    buf_done(&out);
}

static void there_and_back(struct str input) {
    struct buf squeezed, back;
    struct err e;
    buf_init(&squeezed, LARGE_BYTES);
    buf_init(&back, input.len);
    if (gzip_deflate(input, &squeezed)) {
        must(squeezed.len < input.len);
        must(gzip_inflate(buf_str(&squeezed), &back, &e));
        must(str_equal(buf_str(&back), input));
    }
    buf_done(&squeezed);
    buf_done(&back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str input = str_of(data, size);
    struct buf all;
    struct err e;
    buf_init(&all, LARGE_BYTES);
    bool fits = gzip_inflate(input, &all, &e);
    must(fits || e.code == ERR_INTERNAL || e.code == ERR_TOO_LARGE);
    if (fits) {
        inflate_within(input, all.len, true, buf_str(&all));
        if (all.len) inflate_within(input, all.len - 1, true, buf_str(&all));
    }
    inflate_within(input, 0, fits, buf_str(&all));
    buf_done(&all);
    there_and_back(input);
    return 0;
}
