/* dialect_limits: where a dialect stops: the room for a body, the calls of one reply. */
#ifndef WEIR_TEST_PROVIDER_DIALECT_LIMITS_H
#define WEIR_TEST_PROVIDER_DIALECT_LIMITS_H

#include "helper/assert_str.h"
#include "helper/transcript.h"

#include "provider/dialect.h"

/* The body is written whole where it fits, and refused at every smaller limit. */
static inline void assert_stops_at_its_limit(const struct dialect *dialect,
                                             const struct dialect_settings *settings,
                                             const struct provider_request *request) {
    struct buf whole;
    struct err e;
    buf_init(&whole, KIB);
    assert_true(dialect->body(settings, request, &whole, &e));
    for (size_t limit = 0; limit <= whole.len; limit++) {
        struct buf out;
        buf_init(&out, limit);
        assert_int_equal(dialect->body(settings, request, &out, &e), limit == whole.len);
        if (limit < whole.len) assert_int_equal(e.code, ERR_TOO_LARGE);
        buf_done(&out);
    }
    buf_done(&whole);
}

/* A stream of many calls, each written by `put_call`, then `end`, which names the model m. The
 * reply has the first 1024 of them. */
static inline void assert_calls_are_bounded(const struct dialect *dialect,
                                            void (*put_call)(struct buf *out, unsigned index),
                                            struct str end) {
    static const unsigned counts[] = {101, 1024, 1100};
    for (size_t at = 0; at < ARRAY_LEN(counts); at++) {
        struct buf stream, out;
        buf_init(&stream, MIB);
        buf_init(&out, MIB);
        for (unsigned i = 0; i < counts[at]; i++) put_call(&stream, i);
        buf_append(&stream, end);
        transcript_record(dialect, buf_str(&stream), 4096, &out);
        struct str heard = buf_str(&out);
        assert_true(str_ends(heard, STR("done m\n")));
        unsigned calls = 0;
        for (; str_starts(heard, STR("call ")); calls++) str_split(heard, '\n', &heard);
        assert_int_equal(calls, counts[at] > 1024 ? 1024 : counts[at]);
        buf_done(&stream);
        buf_done(&out);
    }
}

#endif
