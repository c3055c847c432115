#include "sidecar/sse_frames.h"

#define MARK STR("\xef\xbb\xbf") /* a byte order mark, which may begin a stream */

void sse_frames_init(struct sse_frames *frames, size_t limit_bytes) {
    *frames = (struct sse_frames){.limit_bytes = limit_bytes};
    buf_init(&frames->lines, limit_bytes + 1);
    buf_init(&frames->data, limit_bytes + 1);
}

void sse_frames_done(struct sse_frames *frames) {
    buf_done(&frames->lines);
    buf_done(&frames->data);
}

bool sse_frames_midway(const struct sse_frames *frames) {
    return frames->lines.len > 0;
}

/* --- one frame ------------------------------------------------------------------------------- */

/* "name: value"; one space after the colon does not count. A comment has the name "". */
static struct str split_field(struct str line, struct str *ret_value) {
    struct str value, name = str_split(line, ':', &value);
    *ret_value = str_starts(value, STR(" ")) ? str_skip(value, 1) : value;
    return name;
}

static void add_data(struct sse_frames *frames, struct sse_frame *frame, struct str value) {
    if (!frame->data.at) {
        frame->data = value.at ? value : STR_EMPTY;
        return;
    }
    if (!frames->data.len) buf_append(&frames->data, frame->data);
    buf_append_byte(&frames->data, '\n');
    buf_append(&frames->data, value);
    frame->data = buf_str(&frames->data);
}

static struct sse_frame read_frame(struct sse_frames *frames) {
    struct sse_frame frame = {.bytes = buf_str(&frames->lines), .event = STR_EMPTY};
    struct str rest = frame.bytes;
    buf_clear(&frames->data);
    while (rest.len) {
        struct str value, line = str_split(rest, '\n', &rest);
        struct str name = split_field(line, &value);
        if (str_equal(name, STR("event"))) frame.event = value;
        if (str_equal(name, STR("data"))) add_data(frames, &frame, value);
    }
    return frame;
}

/* --- lines ----------------------------------------------------------------------------------- */

static void drop_mark(struct sse_frames *frames) {
    bool first = !frames->began;
    if (first && str_starts(buf_str(&frames->lines), MARK)) buf_drop(&frames->lines, MARK.len);
    frames->began = true;
}

/* A line is complete; its LF is not written yet. */
static void end_line(struct sse_frames *frames, sse_frame_fn *on_frame, void *ctx) {
    drop_mark(frames);
    bool empty = frames->lines.len == frames->line;
    if (!empty) {
        buf_append_byte(&frames->lines, '\n');
        frames->line = frames->lines.len;
        return;
    }
    if (frames->lines.len) {
        struct sse_frame frame = read_frame(frames);
        frames->stopped |= !on_frame(&frame, ctx);
    }
    buf_clear(&frames->lines);
    frames->line = 0;
}

/* Length of the start of `bytes` without a line end. */
static size_t plain_len(struct str bytes) {
    size_t len = str_find_byte(bytes, '\n');
    return str_find_byte(str_head(bytes, len), '\r');
}

bool sse_frames_feed(struct sse_frames *frames, struct str bytes, sse_frame_fn *on_frame,
                     void *ctx, struct err *e) {
    while (bytes.len && !frames->stopped) {
        if (frames->skips_lf && bytes.at[0] == '\n') bytes = str_skip(bytes, 1);
        frames->skips_lf = false;
        size_t len = plain_len(bytes);
        buf_append(&frames->lines, str_head(bytes, len));
        if (!buf_ok(&frames->lines) || frames->lines.len > frames->limit_bytes)
            return err_set(e, ERR_TOO_LARGE, "an event is longer than %zu bytes",
                           frames->limit_bytes);
        if (len == bytes.len) return true;
        frames->skips_lf = bytes.at[len] == '\r';
        bytes = str_skip(bytes, len + 1);
        end_line(frames, on_frame, ctx);
    }
    return true;
}
