#include "wire/json_unique.h"

#include "base/map.h"
#include "base/utf8.h"

#define KEY_SHOWN_BYTES 80

static bool note_key(struct map *seen, struct json key, struct err *e) {
    struct buf name;
    buf_init(&name, key.raw.len);
    bool fresh = json_text(key, &name) && !map_put(seen, buf_str(&name), seen);
    struct str shown = str_head(buf_str(&name), utf8_cut(buf_str(&name), KEY_SHOWN_BYTES));
    if (!fresh)
        err_set(e, ERR_INVALID_ARGUMENT, "the member '" STR_FMT "' stands twice; give it once",
                STR_ARG(shown));
    buf_done(&name);
    return fresh;
}

static bool check_object(struct json object, struct err *e) {
    struct json_reader reader = json_enter(object);
    struct json key, value;
    struct map *seen = map_new();
    bool good = true;
    while (good && json_next_member(&reader, &key, &value))
        good = note_key(seen, key, e) && json_check_unique(value, e);
    map_free(seen);
    return good;
}

/* No deeper than JSON_DEPTH_MAX. */
bool json_check_unique(struct json value, struct err *e) {
    struct json_reader reader = json_enter(value);
    struct json item;
    if (value.kind == JSON_OBJECT) return check_object(value, e);
    while (json_next_item(&reader, &item)) {
        if (!json_check_unique(item, e)) return false;
    }
    return true;
}
