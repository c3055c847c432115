/* A file of any bytes is read as a recording or refused, and what is read is written again so
 * that it reads the same; what no request answers is told in words, whatever stands in it. */
#include "base/attr.h"
#include "tape/call.h"
#include "tape/miss.h"

#include <assert.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_at(struct str text) {
    for (size_t i = 0; i < text.len; i++) assert(text.at);
}

/* Once written, it stays as it is. */
static void write_again(const struct tape_call *call, struct buf *out) {
    static const struct str known[] = {STR_INIT("house-key-4711")};
    static const struct mask mask = {known, ARRAY_LEN(known)};
    if (!tape_call_encode(call, &mask, out)) abort();
}

static void tell_miss(const struct tape_call *a, const struct tape_call *b) {
    struct buf told;
    buf_init(&told, 256 * KIB);
    if (!str_equal(a->request, b->request)) {
        miss_append(a->request, b->request, &told);
        assert(told.len && buf_ok(&told));
    }
    miss_append(STR("{\"agent\":\"a\",\"messages\":[]}"), a->request, &told);
    buf_done(&told);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    struct tape_call call, back;
    struct arena *arena = arena_new(8 * MIB);
    if (tape_call_decode(str_of(data, size), arena, &call, &e)) {
        struct buf once, twice;
        buf_init(&once, 64 * MIB);
        buf_init(&twice, 64 * MIB);
        for (size_t i = 0; i < call.event_count; i++) look_at(call.events[i].reply.text);
        write_again(&call, &once);
        struct arena *more = arena_new(64 * MIB);
        if (!tape_call_decode(buf_str(&once), more, &back, &e)) abort();
        assert(back.kind == call.kind && back.event_count == call.event_count);
        write_again(&back, &twice);
        assert(str_equal(buf_str(&once), buf_str(&twice)));
        tell_miss(&call, &back);
        arena_free(more);
        buf_done(&once);
        buf_done(&twice);
    } else {
        assert(e.code != ERR_NONE && e.text[0] != '\0');
    }
    arena_free(arena);
    return 0;
}
