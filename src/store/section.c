#include "store/store.h"
#include "store/varint.h"

#include <assert.h>

#define SECTION_HEAD_BYTES (3 * VARINT_MAX_BYTES)

static size_t put_head(char at[static SECTION_HEAD_BYTES], uint64_t run, uint64_t first_seq,
                       size_t len) {
    assert(run != 0 && first_seq != 0);
    size_t head = varint_put(at, run);
    head += varint_put(at + head, first_seq);
    return head + varint_put(at + head, len);
}

bool store_section_append(struct buf *row, uint64_t run, uint64_t first_seq,
                          struct str events) {
    if (events.len == 0) return buf_ok(row);
    char head[SECTION_HEAD_BYTES];
    size_t len = put_head(head, run, first_seq, events.len);
    /* Append both or neither: a row always holds whole sections. */
    char *at = buf_room(row, len + events.len);
    if (!at) return false;
    memcpy(at, head, len);
    memcpy(at + len, events.at, events.len);
    buf_grew(row, len + events.len);
    return true;
}

bool store_section_begin(struct buf *row, uint64_t run, uint64_t first_seq, size_t len) {
    char head[SECTION_HEAD_BYTES];
    assert(len);
    size_t head_len = put_head(head, run, first_seq, len);
    return buf_room(row, head_len + len) && buf_append(row, str_of(head, head_len));
}

bool store_section_next(struct str *row, struct store_section *ret, bool *ret_bad) {
    if (row->len == 0) return false;
    struct str rest = *row;
    struct store_section section = {.row = 0};
    uint64_t len;
    bool whole = varint_take(&rest, &section.run) && varint_take(&rest, &section.first_seq) &&
                 varint_take(&rest, &len) && len <= rest.len;
    if (!whole || section.run == 0 || section.first_seq == 0 || len == 0) {
        *ret_bad = true;
        return false;
    }
    section.events = str_head(rest, (size_t)len);
    *row = str_skip(rest, (size_t)len);
    *ret = section;
    return true;
}
