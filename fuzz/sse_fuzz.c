/* The first byte says how the rest is cut into pieces; cutting must change nothing. Each event
 * that comes out must come out the same after it was written and read once more. */
#include "wire/sse.h"

#include "base/utf8.h"

#include <assert.h>

static void record(const struct sse_event *event, void *ctx) {
    struct buf *seen = ctx;
    assert(utf8_valid(event->type) && utf8_valid(event->data) && utf8_valid(event->id));
    assert(event->type.len > 0);
    const struct str parts[] = {event->type, event->data, event->id};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        buf_append_u64(seen, parts[i].len);
        buf_append_byte(seen, ':');
        buf_append(seen, parts[i]);
    }
}

static void rewrite(const struct sse_event *event, void *ctx) {
    struct buf *out = ctx;
    if (out->len == 0 && event->id.len == 0) sse_append_comment(out, STR("begin"));
    sse_append(out, event->type, event->id, event->data);
}

static bool read_all(struct str bytes, size_t piece, size_t limit, sse_event_fn *on_event,
                     struct buf *out) {
    struct err e;
    struct sse *sse = sse_new(limit, on_event, out);
    bool fine = true;
    for (; bytes.len && fine; bytes = str_skip(bytes, piece))
        fine = sse_feed(sse, str_head(bytes, piece), &e);
    sse_free(sse);
    return fine;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) return 0;
    struct str input = str_of(data + 2, size - 2);
    size_t piece = (size_t)data[0] % 16 + 1, limit = data[1];
    size_t room = 64 * (size + 64) + 4 * size * size; /* an id is repeated in each event */
    struct buf whole, cut, written, again;
    buf_init(&whole, room);
    buf_init(&cut, room);
    buf_init(&written, room);
    buf_init(&again, room);

    bool fine = read_all(input, size, limit, record, &whole);
    assert(read_all(input, piece, limit, record, &cut) == fine);
    assert(str_equal(buf_str(&whole), buf_str(&cut)));

    /* An id that a stream takes back cannot be written, so only streams without are compared.
     */
    read_all(input, size, limit, rewrite, &written);
    if (str_find(input, STR("id")) == input.len) {
        assert(read_all(buf_str(&written), piece, room, record, &again));
        assert(str_equal(buf_str(&again), buf_str(&whole)));
    }
    buf_done(&whole);
    buf_done(&cut);
    buf_done(&written);
    buf_done(&again);
    return 0;
}
