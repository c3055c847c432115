#include "tool/local.h"

#include "base/utf8.h"

#include <stdlib.h>

void local_tool_init(struct tool *tool) {
    struct err e;
    struct schema *schema;
    if (!schema_read(tool->parameters, &schema, &e)) abort(); /* it is constant and valid */
    tool->schema = schema;
}

void local_tool_done(struct tool *tool) {
    schema_free((struct schema *)tool->schema);
}

void local_tool_free(struct tool *tool) {
    local_tool_done(tool);
    free(tool); /* the first member of the whole */
}

bool local_args(struct str text, struct json *ret, struct err *e) {
    if (!json_read(text, ret, e)) return err_add(e, "the arguments");
    return ret->kind == JSON_OBJECT ||
           err_set(e, ERR_INVALID_ARGUMENT, "the arguments must be an object, not %s",
                   json_kind_name(ret->kind));
}

bool local_result(const struct buf *result, struct err *e) {
    return buf_ok(result) ||
           err_set(e, ERR_TOO_LARGE, "the result is larger than %zu bytes", result->max_bytes);
}

uint64_t local_number(struct json args, struct str name, uint64_t low, uint64_t high,
                      uint64_t absent) {
    int64_t given;
    struct json member = json_find(args, name);
    if (member.kind != JSON_NUMBER) return absent;
    if (!json_i64(member, &given)) return high; /* out of range, or not a whole number */
    if (given < 0 || (uint64_t)given < low) return low;
    return (uint64_t)given > high ? high : (uint64_t)given;
}

static bool local_fits(struct str text, size_t max_bytes) {
    struct buf out;
    buf_init(&out, max_bytes);
    bool fitted = json_put_str(&out, text);
    buf_done(&out);
    return fitted;
}

/* A binary search, because a longer prefix never needs fewer bytes. */
struct str local_fit(struct str text, size_t max_bytes) {
    if (local_fits(text, max_bytes)) return text;
    size_t good = 0, bad = text.len < max_bytes ? text.len : max_bytes;
    while (bad - good > 1) {
        size_t middle = good + (bad - good) / 2;
        if (local_fits(str_head(text, utf8_cut(text, middle)), max_bytes)) {
            good = middle;
        } else {
            bad = middle;
        }
    }
    return str_head(text, utf8_cut(text, good));
}
