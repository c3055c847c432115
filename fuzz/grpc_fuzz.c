/* The first byte says how the rest is cut into pieces; cutting must change nothing. Header
 * texts of any bytes must come back after encoding. */
#include "wire/grpc.h"

#include <assert.h>

#define LIMIT 64

/* Read `bytes` in pieces of `piece`; every message and the ending are appended to `seen`. */
static void read_all(struct str bytes, size_t piece, struct buf *seen) {
    struct grpc_reader reader;
    struct grpc_message message;
    struct err e;
    enum grpc_step step = GRPC_MORE;
    grpc_reader_init(&reader, LIMIT);
    while (bytes.len && step != GRPC_BROKEN) {
        struct str part = str_head(bytes, piece);
        bytes = str_skip(bytes, piece);
        while ((step = grpc_next(&reader, &part, &message, &e)) == GRPC_MESSAGE) {
            buf_append_byte(seen, message.compressed ? 'c' : 'p');
            buf_append_u64(seen, message.bytes.len);
            buf_append(seen, message.bytes);
        }
    }
    bool whole = step != GRPC_BROKEN && grpc_end(&reader, &e);
    buf_append(seen, whole ? STR("end") : err_text(&e));
    grpc_reader_done(&reader);
}

static void check_headers(struct str text) {
    struct buf encoded, back, again;
    struct err e;
    uint64_t ns;
    buf_init(&encoded, 4 * KIB);
    buf_init(&back, 8 * KIB);
    buf_init(&again, 4 * KIB);
    assert(grpc_message_encode(&encoded, text));
    assert(encoded.len <= GRPC_STATUS_MESSAGE_MAX_BYTES);
    assert(grpc_message_decode(&back, buf_str(&encoded)));
    assert(grpc_message_encode(&again, buf_str(&back)));
    assert(encoded.len > 1000 || str_equal(buf_str(&again), buf_str(&encoded)));

    if (grpc_timeout_parse(text, &ns, &e)) {
        buf_clear(&encoded);
        assert(ns <= INT64_MAX && text.len <= 9);
        assert(grpc_timeout_append(&encoded, ns));
    }
    buf_clear(&back);
    if (grpc_bin_decode(&back, text, &e)) {
        buf_clear(&encoded);
        grpc_bin_encode(&encoded, buf_str(&back));
        assert(!buf_ok(&encoded) || str_starts(text, buf_str(&encoded)));
    }
    if (grpc_content_type_ok(text)) assert(text.len >= 16);
    buf_done(&encoded);
    buf_done(&back);
    buf_done(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str input = str_of(data + 1, size - 1);
    struct buf whole, cut;
    buf_init(&whole, 64 * (size + 16));
    buf_init(&cut, 64 * (size + 16));
    read_all(input, size, &whole);
    read_all(input, (size_t)data[0] % 16 + 1, &cut);
    assert(str_equal(buf_str(&whole), buf_str(&cut)));
    check_headers(input);
    buf_done(&whole);
    buf_done(&cut);
    return 0;
}
