/* A row of the log from anywhere, as it stands on disk and before it gets there: what is made
 * whole or refused, and what is made shorter comes back as it was. */
#include "store/shorten.h"

#include <assert.h>

#define WHOLE_MAX_BYTES (1 * MIB)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void there_and_back(struct str row) {
    struct buf shorter, again;
    struct err e;
    buf_init(&shorter, row.len + 1);
    buf_init(&again, row.len + 1);
    const struct shorten_end end = shorten_find(row);
    if (shorten_row(row, &end, &shorter)) {
        assert(shorten_did(buf_str(&shorter)) && shorter.len < row.len);
        bool whole = shorten_undo(buf_str(&shorter), &again, &e);
        assert(whole && str_equal(buf_str(&again), row));
    }
    buf_done(&shorter);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str row = str_of(size ? (const void *)data : "", size);
    struct buf whole;
    struct err e;
    there_and_back(row);
    buf_init(&whole, WHOLE_MAX_BYTES);
    if (shorten_undo(row, &whole, &e)) there_and_back(buf_str(&whole));
    buf_done(&whole);
    return 0;
}
