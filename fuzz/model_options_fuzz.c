/* Options of a turn as its first event keeps them: what reads is written as what reads the same; and a
 * reply ends at its stop sequences as in one piece, however it is cut. */
#include "provider/model_options.h"
#include "turn/stop_sequences.h"

#include <assert.h>

#define TEXT_MAX_BYTES (16 * MIB)

static void write_options(const struct model_options *options, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    model_options_write(options, &json);
    json_close(&json);
}

static void check_again(const struct model_options *options) {
    struct arena *arena = arena_new(TEXT_MAX_BYTES);
    struct model_options again;
    struct buf once, twice;
    struct err e;
    buf_init(&once, TEXT_MAX_BYTES);
    buf_init(&twice, TEXT_MAX_BYTES);
    write_options(options, &once);
    bool reads = model_options_read(json_of(buf_str(&once)), arena, &again, &e);
    assert(reads);
    write_options(&again, &twice);
    assert(str_equal(buf_str(&once), buf_str(&twice)));
    buf_done(&once);
    buf_done(&twice);
    arena_free(arena);
}

/* How much of `text` is shown, given in pieces of `piece` bytes. */
static size_t shown_bytes(const struct model_options *options, struct str text, size_t piece) {
    struct stop_sequences stops;
    struct str stop;
    struct buf shown;
    bool found = false;
    buf_init(&shown, TEXT_MAX_BYTES);
    stop_sequences_init(&stops, MODEL_STOP_MAX_BYTES);
    stop_sequences_begin(&stops, options->stops, options->stop_count);
    for (; text.len && !found; text = str_skip(text, piece))
        found = stop_sequences_take(&stops, str_head(text, piece), &shown, &stop);
    if (!found) stop_sequences_end(&stops, &shown);
    size_t bytes = shown.len;
    stop_sequences_done(&stops);
    buf_done(&shown);
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct arena *arena = arena_new(TEXT_MAX_BYTES);
    struct str text = str_of(data, size), rest;
    struct str first = str_split(text, '\n', &rest);
    struct model_options options;
    struct json object = {.kind = JSON_NONE};
    struct err e;
    if (json_read(first, &object, &e) && model_options_read(object, arena, &options, &e)) {
        check_again(&options);
        size_t whole = shown_bytes(&options, rest, rest.len + 1);
        for (size_t piece = 1; piece <= 3; piece++)
            assert(shown_bytes(&options, rest, piece) == whole);
    }
    arena_free(arena);
    return 0;
}
