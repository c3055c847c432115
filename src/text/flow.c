#include "text/flow.h"

struct flow flow_of(struct buf *out) {
    return (struct flow){.out = out};
}

void flow_break(struct flow *flow, unsigned count) {
    if (flow->prefix_len) return;
    if (count > flow->breaks) flow->breaks = count;
    flow->blank = false;
}

void flow_blank(struct flow *flow) {
    flow->blank = true;
}

void flow_prefix(struct flow *flow, struct str prefix) {
    prefix = str_head(prefix, FLOW_PREFIX_MAX_BYTES);
    memcpy(flow->prefix, prefix.at, prefix.len);
    flow->prefix_len = prefix.len;
}

void flow_no_prefix(struct flow *flow) {
    flow->prefix_len = 0;
}

/* Write the pending line breaks, blank and prefix before the next text. */
static void begin_text(struct flow *flow) {
    struct str so_far = buf_str(flow->out);
    size_t there = 0;
    while (there < so_far.len && so_far.at[so_far.len - 1 - there] == '\n') there++;
    bool line_start = so_far.len == there;
    if (!line_start) {
        for (; there < flow->breaks; there++) buf_append_byte(flow->out, '\n');
    }
    if (flow->blank && !line_start && there == 0 && !flow->prefix_len)
        buf_append_byte(flow->out, ' ');
    buf_append(flow->out, str_of(flow->prefix, flow->prefix_len));
    flow->breaks = 0;
    flow->blank = false;
    flow->prefix_len = 0;
}

/* Length of the white space at the start: ASCII's and the no-break space. */
static size_t space_len(struct str text) {
    size_t len = 0;
    while (len < text.len) {
        struct str rest = str_skip(text, len);
        size_t one = strchr(" \t\n\r\f\v", rest.at[0]) && rest.at[0] ? 1 : 0;
        if (str_starts(rest, STR("\xC2\xA0"))) one = 2;
        if (one == 0) break;
        len += one;
    }
    return len;
}

static size_t word_len(struct str text) {
    size_t len = 0;
    while (len < text.len && space_len(str_of(text.at + len, text.len - len > 1 ? 2 : 1)) == 0)
        len++;
    return len;
}

void flow_text(struct flow *flow, struct str text) {
    while (text.len && buf_ok(flow->out)) {
        size_t space = space_len(text);
        if (space) flow->blank = true;
        text = str_skip(text, space);
        if (text.len == 0) return;
        size_t word = word_len(text);
        begin_text(flow);
        buf_append(flow->out, str_head(text, word));
        text = str_skip(text, word);
    }
}

void flow_raw(struct flow *flow, struct str text) {
    if (text.len == 0) return;
    begin_text(flow);
    buf_append(flow->out, text);
}
