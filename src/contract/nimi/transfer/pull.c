#include "contract/nimi/transfer/pull.h"

#include "base/map.h"
#include "base/utf8.h"
#include "wire/json.h"

#define LINE_DEPTH_MAX 4

void pull_init(struct pull *pull) {
    *pull = (struct pull){.outcome = PULL_GOES_ON};
    lines_init(&pull->lines, PULL_LINE_MAX_BYTES);
}

void pull_done(struct pull *pull) {
    lines_done(&pull->lines);
}

/* --- texts and numbers -------------------------------------------------------------------- */

/* Keep a string, cut at a character. False: it is no string. */
static bool pull_keep_text(struct pull *pull, struct json value) {
    struct buf text;
    buf_init(&text, PULL_LINE_MAX_BYTES);
    bool read = json_text(value, &text);
    size_t len = utf8_cut(buf_str(&text), PULL_TEXT_BYTES - 1);
    if (read) {
        if (len) memcpy(pull->text, text.at, len);
        pull->text[len] = '\0';
    }
    buf_done(&text);
    return read;
}

/* A number of bytes; 0 when it is not there. */
static bool pull_read_bytes(struct json value, int64_t *ret) {
    *ret = 0;
    return value.kind == JSON_NONE || value.kind == JSON_NULL ||
           (json_i64(value, ret) && *ret >= 0);
}

/* --- layers ------------------------------------------------------------------------------- */

static struct pull_layer *layer_get(struct pull *pull, struct str digest, struct err *e) {
    uint64_t hash = map_hash(digest);
    for (size_t i = 0; i < pull->layer_count; i++) {
        if (pull->layers[i].digest == hash) return &pull->layers[i];
    }
    if (pull->layer_count == PULL_LAYERS_MAX) {
        err_set(e, ERR_TOO_LARGE, "the model has more than %d layers", PULL_LAYERS_MAX);
        return NULL;
    }
    struct pull_layer *layer = &pull->layers[pull->layer_count++];
    layer->digest = hash;
    return layer;
}

static bool sum_layers(struct pull *pull, struct err *e) {
    int64_t received = 0, total = 0;
    for (size_t i = 0; i < pull->layer_count; i++) {
        if (__builtin_add_overflow(total, pull->layers[i].total, &total))
            return err_set(e, ERR_MALFORMED, "the sizes of the layers cannot be true");
        received += pull->layers[i].completed; /* never more than the total */
    }
    pull->received = received;
    pull->total = total;
    return true;
}

static bool take_layer(struct pull *pull, const struct json *members, struct err *e) {
    int64_t total, completed;
    if (members[2].kind == JSON_NONE) return true;
    if (members[2].kind != JSON_STRING) return err_set(e, ERR_MALFORMED, "a digest is no text");
    if (!pull_read_bytes(members[3], &total) || !pull_read_bytes(members[4], &completed))
        return err_set(e, ERR_MALFORMED, "a size is no number of bytes");
    if (completed > total)
        return err_set(e, ERR_MALFORMED, "more bytes have come (%lld) than there are (%lld)",
                       (long long)completed, (long long)total);
    struct pull_layer *layer = layer_get(pull, members[2].raw, e);
    if (!layer) return false;
    layer->total = total;
    layer->completed = completed;
    return sum_layers(pull, e);
}

/* --- lines -------------------------------------------------------------------------------- */

static bool pull_take_line(struct pull *pull, struct str line, struct err *e) {
    static const struct str keys[] = {STR_INIT("status"), STR_INIT("error"), STR_INIT("digest"),
                                      STR_INIT("total"), STR_INIT("completed")};
    struct json object, members[ARRAY_LEN(keys)];
    if (str_trim(line).len == 0 || pull->outcome != PULL_GOES_ON) return true;
    if (!json_read_depth(line, LINE_DEPTH_MAX, &object, e))
        return err_add(e, "a line of the server's answer");
    json_find_each(object, keys, ARRAY_LEN(keys), members);
    if (object.kind == JSON_OBJECT && pull_keep_text(pull, members[1])) {
        pull->outcome = PULL_FAILED;
        return true;
    }
    if (object.kind != JSON_OBJECT || !pull_keep_text(pull, members[0]))
        return err_set(e, ERR_MALFORMED,
                       "a line of the server's answer has neither a status nor an error");
    if (json_is(members[0], STR("success"))) pull->outcome = PULL_SUCCEEDED;
    return take_layer(pull, members, e);
}

static bool too_long(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "a line of the server's answer is longer than %zu bytes",
                   (size_t)PULL_LINE_MAX_BYTES);
}

bool pull_feed(struct pull *pull, struct str bytes, struct err *e) {
    struct str line;
    enum lines_found found = LINES_NONE;
    while (bytes.len) {
        struct str piece = str_head(bytes, PULL_LINE_MAX_BYTES);
        bytes = str_skip(bytes, piece.len);
        if (!lines_feed(&pull->lines, piece)) return too_long(e);
        while ((found = lines_next(&pull->lines, &line)) == LINES_ONE) {
            if (!pull_take_line(pull, line, e)) return false;
        }
        if (found == LINES_TOO_LONG) return too_long(e);
    }
    return true;
}

bool pull_end(struct pull *pull, struct err *e) {
    if (lines_waiting(&pull->lines) && !pull_feed(pull, STR("\n"), e)) return false;
    return pull->outcome != PULL_GOES_ON ||
           err_set(e, ERR_UNAVAILABLE, "the server's answer ended before the model was there");
}
