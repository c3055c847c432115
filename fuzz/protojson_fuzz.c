/* Messages that are written as JSON must be the same message when they are read again; JSON that
 * is read must be written without loss. The first byte chooses. */
#include "wire/protojson.h"

#include "test/kitchen.pb.h"

#include <assert.h>
#include <string.h>

#define ROOM (4 * MIB)

/* The message as JSON, and back; false: it cannot be written. */
static bool round_trip(const struct protojson *json, const struct kitchen_sink *sink,
                       struct arena *arena, struct buf *text, struct kitchen_sink *ret) {
    struct json from;
    struct err e;
    if (!protojson_write(json, &kitchen_sink_table, sink, text)) return false;
    assert(json_read(buf_str(text), &from, &e));
    memset(ret, 0, sizeof(*ret));
    bool fine = protojson_read(json, &kitchen_sink_table, from, arena, ret, &e);
    /* A moment outside of the calendar has no text of its own. */
    assert(fine || str_find(buf_str(text), STR("\"nanos\"")) < text->len);
    return fine;
}

static void check(const struct protojson *json, const struct kitchen_sink *sink,
                  struct arena *arena) {
    struct kitchen_sink again;
    struct buf text, second, a, b;
    buf_init(&text, ROOM);
    buf_init(&second, ROOM);
    buf_init(&a, ROOM);
    buf_init(&b, ROOM);
    if (round_trip(json, sink, arena, &text, &again)) {
        assert(protojson_write(json, &kitchen_sink_table, &again, &second));
        assert(str_equal(buf_str(&text), buf_str(&second)));
        assert(pb_encode(&kitchen_sink_table, sink, &a));
        assert(pb_encode(&kitchen_sink_table, &again, &b));
        assert(a.len == b.len); /* the bits of a NaN may differ */
    }
    buf_done(&text);
    buf_done(&second);
    buf_done(&a);
    buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct protojson *json;
    struct kitchen_sink sink;
    struct json from;
    struct err e;
    if (size < 1) return 0;
    struct str input = str_of(data + 1, size - 1);
    struct arena *arena = arena_new(8 * MIB);
    assert(protojson_new(&kitchen_descriptor, 1, &json, &e));
    memset(&sink, 0, sizeof(sink));
    bool read = data[0] & 1
                    ? json_read(input, &from, &e) &&
                          protojson_read(json, &kitchen_sink_table, from, arena, &sink, &e)
                    : pb_decode_view(&kitchen_sink_table, input, arena, &sink, &e);
    if (read) check(json, &sink, arena);
    protojson_free(json);
    arena_free(arena);
    return 0;
}
