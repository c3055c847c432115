/* time: the tool `current_time`, the local time in a time zone.
 *
 * {"zone":"Asia/Tokyo"} gives {"time":"2026-03-01T21:00:00+09:00","zone":"Asia/Tokyo",
 * "weekday":"Sunday","unix":1772366400}. With "at", a time with an offset, it converts that
 * time instead of now. Zones come from the machine (package tzdata); UTC always works.
 */
#include "base/clock.h"
#include "base/file.h"
#include "tool/computed.h"
#include "tool/local.h"
#include "tool/tzif.h"
#include "wire/moment.h"

#define ZONE_FOLDER "/usr/share/zoneinfo/"
#define ZONE_NAME_MAX_BYTES 64

/* Names are parts of letters, digits and signs, joined by '/'. Without dots no name leads out
 * of the folder. A part is never empty. */
static bool name_is_safe(struct str name) {
    char before = '/';
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool plain = str_is_alnum(c) || c == '_' || c == '+' || c == '-';
        if (!plain && (c != '/' || before == '/')) return false;
        before = c;
    }
    return name.len > 0 && name.len <= ZONE_NAME_MAX_BYTES && before != '/';
}

static bool is_utc(struct str name) {
    return str_equal_nocase(name, STR("UTC")) || str_equal_nocase(name, STR("Z"));
}

static bool no_zone(struct str name, struct err *e) {
    return err_set(e, ERR_NOT_FOUND,
                   "no time zone '" STR_FMT "'; use an IANA name such as Europe/Berlin or UTC",
                   STR_ARG(str_head(name, ZONE_NAME_MAX_BYTES)));
}

static bool read_zone(struct str name, struct buf *file, struct tzif *ret, struct err *e) {
    struct buf path;
    buf_init(&path, sizeof ZONE_FOLDER + ZONE_NAME_MAX_BYTES);
    buf_append(&path, STR(ZONE_FOLDER));
    buf_append(&path, name);
    struct err why; /* names a path, which is not for the model */
    bool read = file_read(buf_str(&path), file, &why) && tzif_read(buf_str(file), ret, &why);
    buf_done(&path);
    return read || no_zone(name, e);
}

static bool offset_at(struct str name, int64_t unix_s, int32_t *ret_s, struct err *e) {
    if (is_utc(name)) {
        *ret_s = 0;
        return true;
    }
    if (!name_is_safe(name)) return no_zone(name, e);
    struct tzif zone;
    struct buf file;
    buf_init(&file, TZIF_MAX_BYTES);
    bool read = read_zone(name, &file, &zone, e);
    if (read) *ret_s = tzif_offset(&zone, unix_s);
    buf_done(&file);
    return read;
}

static bool moment_of(struct json args, struct arena *arena, int64_t *ret, struct err *e) {
    struct str at;
    if (json_str(json_find(args, STR("at")), arena, &at)) return moment_read(at, ret, e);
    *ret = clock_unix_ms() / 1000;
    return true;
}

static bool report_time(struct json args, struct arena *arena, struct buf *out, struct err *e) {
    struct str zone;
    int64_t unix_s;
    int32_t offset_s = 0;
    if (!json_str(json_find(args, STR("zone")), arena, &zone)) zone = STR("UTC");
    if (!moment_of(args, arena, &unix_s, e) || !offset_at(zone, unix_s, &offset_s, e))
        return false;

    struct buf text;
    buf_init(&text, 64);
    bool written = moment_put(&text, unix_s, offset_s) ||
                   err_set(e, ERR_OUT_OF_RANGE, "there the year has no four digits");
    if (written) {
        struct json_writer w = json_writer(out);
        json_open_object(&w);
        json_member_str(&w, "time", buf_str(&text));
        json_member_str(&w, "zone", zone);
        json_member_str(&w, "weekday", moment_weekday(unix_s, offset_s));
        json_member_i64(&w, "unix", unix_s);
        json_close(&w);
    }
    buf_done(&text);
    return written;
}

const struct computed current_time_tool = {
    .name = STR_INIT("current_time"),
    .description = STR_INIT("Tell date and time in a time zone, now or at a given moment."),
    .parameters =
        STR_INIT("{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
                 "\"zone\":{\"type\":\"string\","
                 "\"description\":\"IANA name such as Europe/Berlin; UTC when left out.\"},"
                 "\"at\":{\"type\":\"string\",\"description\":\"A moment to convert instead of "
                 "now, with "
                 "its offset: 2026-03-01T12:00:00+01:00.\"}," LOCAL_DESCRIPTION "}}"),
    .idempotent = true,
    .compute = report_time,
};
