#include "tool/tzif.h"

#define HEADER_BYTES 44
#define KIND_BYTES 6
/* The range of an offset (RFC 9636 3.2). */
#define OFFSET_MIN_S (-25 * 3600)
#define OFFSET_MAX_S (26 * 3600)

struct header {
    unsigned version;
    size_t ut_flags, standard_flags, leap_seconds, times, kinds, name_bytes;
};

static uint64_t big_endian(struct str bytes, size_t at, size_t count) {
    uint64_t number = 0;
    for (size_t i = 0; i < count; i++) number = number << 8 | (unsigned char)bytes.at[at + i];
    return number;
}

static bool malformed(struct err *e, const char *what) {
    return err_set(e, ERR_MALFORMED, "no time zone file: %s", what);
}

static bool tzif_read_header(struct str *rest, struct header *ret, struct err *e) {
    if (rest->len < HEADER_BYTES || !str_starts(*rest, STR("TZif")))
        return malformed(e, "its header is missing");
    ret->version = (unsigned char)rest->at[4];
    size_t *const counts[] = {&ret->ut_flags, &ret->standard_flags, &ret->leap_seconds,
                              &ret->times,    &ret->kinds,          &ret->name_bytes};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++)
        *counts[i] = (size_t)big_endian(*rest, 20 + 4 * i, 4);
    *rest = str_skip(*rest, HEADER_BYTES);
    return true;
}

/* Cut off the next `count` items; false when there are fewer. */
static bool cut(struct str *rest, size_t count, size_t item_bytes, struct str *ret) {
    if (count > rest->len / item_bytes) return false;
    *ret = str_head(*rest, count * item_bytes);
    *rest = str_skip(*rest, count * item_bytes);
    return true;
}

static bool cut_block(struct str *rest, const struct header *header, size_t time_bytes,
                      struct tzif *zone, struct err *e) {
    struct str names, leaps, flags;
    zone->time_bytes = time_bytes;
    zone->time_count = header->times;
    zone->kind_count = header->kinds;
    return (cut(rest, header->times, time_bytes, &zone->times) &&
            cut(rest, header->times, 1, &zone->which) &&
            cut(rest, header->kinds, KIND_BYTES, &zone->kinds) &&
            cut(rest, header->name_bytes, 1, &names) &&
            cut(rest, header->leap_seconds, time_bytes + 4, &leaps) &&
            cut(rest, header->standard_flags, 1, &flags) &&
            cut(rest, header->ut_flags, 1, &flags)) ||
           malformed(e, "it ends too early");
}

static int64_t time_at(const struct tzif *zone, size_t index) {
    uint64_t raw = big_endian(zone->times, index * zone->time_bytes, zone->time_bytes);
    return zone->time_bytes == 8 ? (int64_t)raw : (int32_t)(uint32_t)raw;
}

static int32_t kind_offset(const struct tzif *zone, size_t kind) {
    return (int32_t)(uint32_t)big_endian(zone->kinds, kind * KIND_BYTES, 4);
}

static bool tzif_check(const struct tzif *zone, const struct header *header, struct err *e) {
    if (header->leap_seconds)
        return err_set(e, ERR_UNIMPLEMENTED, "this time zone file counts leap seconds");
    if (zone->kind_count == 0) return malformed(e, "it knows no offset");
    for (size_t i = 0; i < zone->kind_count; i++) {
        int32_t offset_s = kind_offset(zone, i);
        if (offset_s <= OFFSET_MIN_S || offset_s >= OFFSET_MAX_S)
            return malformed(e, "an offset is larger than a day");
    }
    for (size_t i = 0; i < zone->time_count; i++) {
        if ((unsigned char)zone->which.at[i] >= zone->kind_count)
            return malformed(e, "a time has no offset");
        if (i > 0 && time_at(zone, i) <= time_at(zone, i - 1))
            return malformed(e, "its times are not in order");
    }
    return true;
}

static bool read_footer(struct str rest, struct tzif *zone, struct err *e) {
    if (!str_starts(rest, STR("\n"))) return malformed(e, "its last line is missing");
    rest = str_skip(rest, 1);
    size_t end = str_find_byte(rest, '\n');
    if (end == rest.len) return malformed(e, "its last line has no end");
    zone->ruled = end > 0;
    return end == 0 || tzrule_read(str_head(rest, end), &zone->rule, e);
}

bool tzif_read(struct str bytes, struct tzif *ret, struct err *e) {
    struct header header = {0};
    struct tzif zone = {0};
    struct str rest = bytes;
    if (!tzif_read_header(&rest, &header, e) || !cut_block(&rest, &header, 4, &zone, e))
        return false;
    if (header.version != 0) { /* skip the 32-bit block, for readers older than 2005 */
        if (!tzif_read_header(&rest, &header, e) || !cut_block(&rest, &header, 8, &zone, e))
            return false;
        if (!read_footer(rest, &zone, e)) return false;
    }
    if (!tzif_check(&zone, &header, e)) return false;
    *ret = zone;
    return true;
}

int32_t tzif_offset(const struct tzif *zone, int64_t unix_s) {
    size_t low = 0, high = zone->time_count; /* the first later time is in this range */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (time_at(zone, middle) <= unix_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == zone->time_count && zone->ruled) return tzrule_offset(&zone->rule, unix_s);
    size_t kind = low > 0 ? (unsigned char)zone->which.at[low - 1] : 0;
    return kind_offset(zone, kind);
}
