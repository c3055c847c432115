#include "client/head.h"

#include <stdio.h>
#include <time.h>

void head_done(struct head *head) {
    text_done(&head->session);
}

static void read_status(struct head *head, struct str line) {
    struct str rest;
    head_done(head);
    *head = (struct head){.retry_after_ms = -1};
    str_split(line, ' ', &rest);
    rest = str_trim(rest);
    uint64_t status;
    if (rest.len >= 3 && str_to_u64(str_head(rest, 3), &status))
        head->status = (unsigned)status;
}

/* --- fields ------------------------------------------------------------------------------- */

/* Values that do not fit are absent. */
static void head_keep(struct str value, char *room, size_t room_bytes, size_t *ret_len) {
    *ret_len = 0;
    if (value.len == 0 || value.len > room_bytes) return;
    memcpy(room, value.at, value.len);
    *ret_len = value.len;
}

#define KEEPS(name, member)                                                                    \
    static void name(struct head *head, struct str value, int64_t now_unix_ms) {               \
        (void)now_unix_ms;                                                                     \
        head_keep(value, head->member, sizeof(head->member), &head->member##_len);             \
    }

KEEPS(read_content_type, content_type)
KEEPS(read_version, version)
KEEPS(read_etag, etag)
KEEPS(read_range, range)
KEEPS(read_region, region)
KEEPS(read_run, run)

static void read_session(struct head *head, struct str value, int64_t now_unix_ms) {
    (void)now_unix_ms;
    text_done(&head->session);
    head->session = text_copy(value);
}

/* The three forms of RFC 9110 5.6.7; senders write the first. */
static const char *const date_forms[] = {
    "%a, %d %b %Y %H:%M:%S GMT",
    "%A, %d-%b-%y %H:%M:%S GMT",
    "%a %b %e %H:%M:%S %Y",
};

static bool read_date(struct str value, int64_t *ret_unix_ms) {
    char text[64];
    if (value.len >= sizeof(text)) return false;
    snprintf(text, sizeof(text), STR_FMT, STR_ARG(value));
    for (size_t i = 0; i < ARRAY_LEN(date_forms); i++) {
        struct tm tm = {0};
        const char *end = strptime(text, date_forms[i], &tm);
        if (!end || *end) continue;
        *ret_unix_ms = (int64_t)timegm(&tm) * 1000;
        return true;
    }
    return false;
}

static void read_retry_after(struct head *head, struct str value, int64_t now_unix_ms) {
    uint64_t seconds;
    int64_t then_ms;
    if (str_to_u64(value, &seconds)) {
        bool fits = seconds < INT64_MAX / 1000;
        head->retry_after_ms = fits ? (int64_t)seconds * 1000 : INT64_MAX;
    } else if (read_date(value, &then_ms)) {
        head->retry_after_ms = then_ms > now_unix_ms ? then_ms - now_unix_ms : 0;
    }
}

static void read_server_date(struct head *head, struct str value, int64_t now_unix_ms) {
    (void)now_unix_ms;
    if (!read_date(value, &head->date_ms)) head->date_ms = 0;
}

static void read_coding(struct head *head, struct str value, int64_t now_unix_ms) {
    (void)now_unix_ms;
    if (value.len == 0 || str_equal_nocase(value, STR("identity"))) return;
    bool gzip = str_equal_nocase(value, STR("gzip")) || str_equal_nocase(value, STR("x-gzip"));
    /* Compressed twice is nothing that we asked for. */
    head->coding = gzip && head->coding == CODING_NONE ? CODING_GZIP : CODING_UNKNOWN;
}

static void read_location(struct head *head, struct str value, int64_t now_unix_ms) {
    (void)now_unix_ms;
    head->location |= value.len > 0;
}

static const struct {
    struct str name;
    void (*read)(struct head *head, struct str value, int64_t now_unix_ms);
} fields[] = {
    {STR_INIT("content-type"), read_content_type},
    {STR_INIT("mcp-session-id"), read_session},
    {STR_INIT("retry-after"), read_retry_after},
    {STR_INIT("content-encoding"), read_coding},
    {STR_INIT("location"), read_location},
    {STR_INIT("x-runtime-contract-version"), read_version},
    {STR_INIT("etag"), read_etag},
    {STR_INIT("content-range"), read_range},
    {STR_INIT("x-amz-bucket-region"), read_region},
    {STR_INIT("x-weir-run-id"), read_run},
    {STR_INIT("date"), read_server_date},
};

/* --- lines -------------------------------------------------------------------------------- */

bool head_line(struct head *head, struct str line, int64_t now_unix_ms) {
    line = str_trim(line);
    if (line.len == 0) return true;
    if (str_starts(line, STR("HTTP/"))) {
        read_status(head, line);
        return false;
    }
    struct str value, name = str_split(line, ':', &value);
    if (!value.at) return false;
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (!str_equal_nocase(name, fields[i].name)) continue;
        fields[i].read(head, str_trim(value), now_unix_ms);
    }
    return false;
}
