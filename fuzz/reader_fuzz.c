/* The first byte chooses the method, the second how the rest is cut into pieces and how the call
 * ends; cutting must change nothing, and no stream is complete without its completing frame. */
#include "reader/reader.h"

#include "wire/grpc.h"

#include <assert.h>

#define MESSAGE_MAX_BYTES (64 * KIB)

struct seen {
    struct reader reader;
    uint64_t handed_out, dropped, missing, text_bytes;
    bool last;
};

static void take(struct seen *seen, const struct reader_frame *frame) {
    assert(!frame->dropped || (seen->last && !frame->last));
    seen->handed_out += !frame->dropped;
    seen->dropped += frame->dropped;
    seen->missing += frame->missing;
    seen->text_bytes += frame->text.len;
    seen->last = seen->last || frame->last;
}

static void on_event(const struct sse_event *event, void *ctx) {
    struct seen *seen = ctx;
    struct reader_frame frame;
    struct arena *arena = arena_new(MIB);
    reader_event(&seen->reader, event, arena, &frame);
    take(seen, &frame);
    arena_free(arena);
}

static bool read_messages(struct seen *seen, struct str bytes, size_t piece) {
    struct grpc_reader grpc;
    struct grpc_message message;
    struct err e;
    enum grpc_step step = GRPC_MORE;
    grpc_reader_init(&grpc, MESSAGE_MAX_BYTES);
    for (; bytes.len && step != GRPC_BROKEN; bytes = str_skip(bytes, piece)) {
        struct str part = str_head(bytes, piece);
        while ((step = grpc_next(&grpc, &part, &message, &e)) == GRPC_MESSAGE) {
            struct reader_frame frame;
            struct arena *arena = arena_new(MIB);
            reader_message(&seen->reader, message.bytes, arena, &frame);
            take(seen, &frame);
            arena_free(arena);
        }
    }
    bool whole = step != GRPC_BROKEN && grpc_end(&grpc, &e);
    grpc_reader_done(&grpc);
    return whole;
}

static bool read_events(struct seen *seen, struct str bytes, size_t piece) {
    struct err e;
    bool fine = true;
    struct sse *sse = sse_new(MESSAGE_MAX_BYTES, on_event, seen);
    for (; bytes.len && fine; bytes = str_skip(bytes, piece))
        fine = sse_feed(sse, str_head(bytes, piece), &e);
    sse_free(sse);
    return fine;
}

static struct stream_outcome_advice read_all(struct seen *seen,
                                             const struct reader_method *method,
                                             struct str bytes, size_t piece, unsigned end) {
    *seen = (struct seen){.handed_out = 0};
    reader_init(&seen->reader, method, end & 1 ? 2 : 1);
    bool whole = reader_kind_is_http(method->kind) ? read_events(seen, bytes, piece)
                                                   : read_messages(seen, bytes, piece);
    if (end & 2) reader_status_message(&seen->reader, bytes);
    if (end & 4) reader_status_details(&seen->reader, bytes);
    if (end & 8) (void)reader_http_refusal(&seen->reader, 400 + end, bytes);
    const struct reader_end how = {
        .code = whole ? (enum err_code)(end % (ERR_UNAUTHENTICATED + 1)) : ERR_INTERNAL,
        .from_server = whole};
    struct stream_outcome_advice advice = reader_close(&seen->reader, &how);
    if (advice.outcome == STREAM_COMPLETED) assert(seen->last);
    if (method->mode == CLOSE_SUBSCRIPTION) assert(!seen->last);
    assert(seen->handed_out == seen->reader.frames && seen->missing == seen->reader.missing);
    assert((seen->dropped > 0) == !!(seen->reader.faults & FAULT_AFTER_END));
    return advice;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    size_t count = 0;
    while (reader_method_at(count)) count++;
    if (size < 2) return 0;
    const struct reader_method *method = reader_method_at(data[0] % count);
    struct str bytes = str_of(data + 2, size - 2);
    struct seen whole, cut;
    unsigned end = data[1] & 31;
    struct stream_outcome_advice a = read_all(&whole, method, bytes, size, end);
    struct stream_outcome_advice b =
        read_all(&cut, method, bytes, (size_t)data[1] / 32 + 1, end);
    assert(a.outcome == b.outcome && a.repeat == b.repeat && a.wait == b.wait);
    assert(whole.handed_out == cut.handed_out && whole.text_bytes == cut.text_bytes);
    assert(whole.reader.faults == cut.reader.faults);
    reader_done(&whole.reader);
    reader_done(&cut.reader);
    return 0;
}
