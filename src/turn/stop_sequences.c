#include "turn/stop_sequences.h"

void stop_sequences_init(struct stop_sequences *stops, size_t max_bytes) {
    *stops = (struct stop_sequences){.count = 0};
    buf_init(&stops->held, max_bytes);
}

void stop_sequences_done(struct stop_sequences *stops) {
    buf_done(&stops->held);
}

void stop_sequences_begin(struct stop_sequences *stops, const struct str *list, size_t count) {
    stops->list = list;
    stops->count = count;
    buf_clear(&stops->held);
}

/* Where the first one begins, and which; text.len: there is none. */
static size_t find_first(const struct stop_sequences *stops, struct str text,
                         struct str *ret_stop) {
    size_t first = text.len;
    for (size_t i = 0; i < stops->count; i++) {
        size_t at = str_find(text, stops->list[i]);
        if (at >= first) continue;
        first = at;
        *ret_stop = stops->list[i];
    }
    return first;
}

/* The longest end of the text that begins a sequence. */
static size_t begun_bytes(const struct stop_sequences *stops, struct str text) {
    size_t longest = 0;
    for (size_t i = 0; i < stops->count; i++) {
        struct str stop = stops->list[i];
        size_t len = stop.len - 1 < text.len ? stop.len - 1 : text.len;
        while (len > longest && !str_ends(text, str_head(stop, len))) len--;
        if (len > longest) longest = len;
    }
    return longest;
}

bool stop_sequences_take(struct stop_sequences *stops, struct str text, struct buf *out,
                         struct str *ret_stop) {
    struct buf joined;
    buf_init(&joined, stops->held.len + text.len);
    buf_append(&joined, buf_str(&stops->held));
    buf_append(&joined, text);
    struct str all = buf_str(&joined);
    size_t end = find_first(stops, all, ret_stop);
    bool found = end < all.len;
    if (!found) end -= begun_bytes(stops, all);
    buf_append(out, str_head(all, end));
    buf_clear(&stops->held);
    if (!found) buf_append(&stops->held, str_skip(all, end));
    buf_done(&joined);
    return found;
}

void stop_sequences_end(struct stop_sequences *stops, struct buf *out) {
    buf_append(out, buf_str(&stops->held));
    buf_clear(&stops->held);
}
