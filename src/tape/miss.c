#include "tape/miss.h"

#include "base/utf8.h"

#define PATH_MAX_BYTES 120
#define SHOWN_BYTES 60
#define SHOWN_BEFORE_BYTES 16 /* shown of the text before a difference */

static size_t common_head(struct str a, struct str b) {
    size_t len = 0;
    while (len < a.len && len < b.len && a.at[len] == b.at[len]) len++;
    return len;
}

static size_t common_tail(struct str a, struct str b) {
    size_t len = 0;
    while (len < a.len && len < b.len && a.at[a.len - 1 - len] == b.at[b.len - 1 - len]) len++;
    return len;
}

size_t miss_nearness(struct str recorded, struct str asked) {
    return common_head(recorded, asked) + common_tail(recorded, asked);
}

/* --- the first difference ----------------------------------------------------------------- */

struct difference {
    struct buf path;
    struct json recorded, asked; /* JSON_NONE: absent */
};

static bool same(struct json a, struct json b) {
    return a.kind == b.kind && str_equal(a.raw, b.raw);
}

/* Step into the first member that differs. False: none does. */
static bool step_object(struct difference *at) {
    struct json_reader reader = json_enter(at->recorded);
    struct json key, recorded, asked = {0};
    bool found = false;
    while (!found && json_next_member(&reader, &key, &recorded)) {
        struct buf name;
        buf_init(&name, key.raw.len);
        json_text(key, &name);
        asked = json_find(at->asked, buf_str(&name));
        found = !same(recorded, asked);
        if (found)
            buf_printf(&at->path, "%s" STR_FMT, at->path.len ? "." : "",
                       STR_ARG(buf_str(&name)));
        buf_done(&name);
    }
    if (!found) return false;
    at->recorded = recorded;
    at->asked = asked;
    return true;
}

static bool step_array(struct difference *at) {
    struct json_reader a = json_enter(at->recorded), b = json_enter(at->asked);
    for (size_t i = 0;; i++) {
        struct json recorded = {0}, asked = {0};
        bool more = json_next_item(&a, &recorded);
        more = json_next_item(&b, &asked) || more;
        if (!more) return false;
        if (same(recorded, asked)) continue;
        buf_printf(&at->path, "[%zu]", i);
        at->recorded = recorded;
        at->asked = asked;
        return true;
    }
}

static void swap(struct difference *at) {
    struct json recorded = at->recorded;
    at->recorded = at->asked;
    at->asked = recorded;
}

static bool miss_step(struct difference *at) {
    if (at->recorded.kind != at->asked.kind) return false;
    if (at->recorded.kind == JSON_ARRAY) return step_array(at);
    if (at->recorded.kind != JSON_OBJECT) return false;
    if (step_object(at)) return true;
    swap(at); /* members that only the other object has */
    bool found = step_object(at);
    swap(at);
    return found;
}

/* --- showing a value ---------------------------------------------------------------------- */

/* Move back to the start of a character. */
static size_t boundary(struct str text, size_t at) {
    while (at && at < text.len && ((unsigned char)text.at[at] & 0xC0) == 0x80) at--;
    return at;
}

static void miss_show(struct json value, size_t from, struct buf *out) {
    if (value.kind == JSON_NONE) {
        buf_append(out, STR("nothing"));
        return;
    }
    size_t before =
        from > SHOWN_BEFORE_BYTES ? boundary(value.raw, from - SHOWN_BEFORE_BYTES) : 0;
    struct str rest = str_skip(value.raw, before);
    struct str shown = str_head(rest, utf8_cut(rest, SHOWN_BYTES));
    buf_printf(out, "%s" STR_FMT "%s", before ? "..." : "", STR_ARG(shown),
               shown.len < rest.len ? "..." : "");
}

void miss_append(struct str recorded, struct str asked, struct buf *out) {
    struct difference at = {.recorded = json_of(recorded), .asked = json_of(asked)};
    buf_init(&at.path, 64 * KIB);
    while (miss_step(&at)) {
    }
    size_t from = common_head(at.recorded.raw, at.asked.raw);
    struct str path = str_head(buf_str(&at.path), utf8_cut(buf_str(&at.path), PATH_MAX_BYTES));
    buf_printf(out, STR_FMT ": recorded ", STR_ARG(path.len ? path : STR("request")));
    miss_show(at.recorded, from, out);
    buf_append(out, STR(", asked "));
    miss_show(at.asked, from, out);
    buf_done(&at.path);
}
