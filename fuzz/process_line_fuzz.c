/* process_line: whatever a process agent writes and however it arrives, its lines are the same,
 * and each is a line of the protocol or is refused with a reason.
 *
 *     STEP bytes ...      they arrive STEP + 1 at a time */
#include "agent/process_line.h"
#include "wire/lines.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define LINE_MAX_BYTES 512

static void check_line(struct str text) {
    struct arena *arena = arena_new(2 * text.len + KIB);
    struct process_line line;
    struct err e;
    if (!process_line_read(text, arena, &line, &e)) {
        assert(e.text[0]);
    } else if (line.kind == PROCESS_CALL) {
        struct json_reader reader = json_enter(line.calls);
        struct json call, object;
        struct str tool, args;
        while (json_next_item(&reader, &call)) {
            process_call_read(call, arena, &tool, &args);
            assert(json_read(args, &object, &e) && object.kind == JSON_OBJECT);
        }
    }
    arena_free(arena);
}

/* The lines one after the other, and how they end. */
static void read_all(struct str bytes, size_t step, struct buf *ret) {
    struct lines lines;
    enum lines_found found = LINES_NONE;
    lines_init(&lines, LINE_MAX_BYTES);
    for (; bytes.len && found != LINES_TOO_LONG; bytes = str_skip(bytes, step)) {
        struct str line;
        bool fed = lines_feed(&lines, str_head(bytes, step));
        assert(fed);
        while ((found = lines_next(&lines, &line)) == LINES_ONE) {
            buf_append(ret, line);
            buf_append_byte(ret, '\n');
            if (step == 1) check_line(line);
        }
    }
    buf_append_byte(ret, found == LINES_TOO_LONG ? '!' : '.');
    lines_done(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str bytes = str_of(data + 1, size - 1);
    struct buf one, other;
    buf_init(&one, 2 * size + KIB);
    buf_init(&other, 2 * size + KIB);
    read_all(bytes, 1, &one);
    read_all(bytes, (size_t)data[0] + 1, &other);
    assert(str_equal(buf_str(&one), buf_str(&other)));
    buf_done(&other);
    buf_done(&one);
    return 0;
}
