#include "store/audit_record.h"

#include "base/secret.h"
#include "base/utf8.h"
#include "store/varint.h"
#include "wire/json.h"
#include "wire/moment.h"

/* --- the tags ----------------------------------------------------------------------------- */

#define NUMBER_TAGS 63 /* tags from here on are numbers */
#define KIND_TAG 63    /* an index of `kinds`, in place of a domain and an operation */

/* The indices are on disk: never change one. 0 is none of them. */
static const struct {
    struct str domain, operation;
} kinds[] = {
    {STR_INIT(""), STR_INIT("")},
    {STR_INIT("runtime.run"), STR_INIT("start")},
    {STR_INIT("runtime.run"), STR_INIT("done")},
    {STR_INIT("runtime.run"), STR_INIT("failed")},
    {STR_INIT("runtime.run"), STR_INIT("cancelled")},
};

static const struct {
    unsigned char tag;
    const char *name;
} texts[AUDIT_TEXTS] = {
    [AUDIT_DOMAIN] = {1, "domain"},       [AUDIT_OPERATION] = {2, "operation"},
    [AUDIT_WORKSPACE] = {3, "workspace"}, [AUDIT_USER] = {4, "user"},
    [AUDIT_CONTRACT] = {5, "contract"},   [AUDIT_CALLER_KIND] = {6, "caller_kind"},
    [AUDIT_CALLER] = {7, "caller"},       [AUDIT_SURFACE] = {8, "surface"},
    [AUDIT_TRACE] = {9, "trace"},         [AUDIT_CAPABILITY] = {10, "capability"},
    [AUDIT_MODEL] = {11, "model"},        [AUDIT_REASON] = {12, "reason"},
    [AUDIT_DIGEST] = {13, "digest"},      [AUDIT_DETAIL] = {14, "detail"},
};

static const struct {
    unsigned char tag;
    const char *name;
} numbers[AUDIT_NUMBERS] = {
    [AUDIT_RUN] = {64, "run"},
    [AUDIT_OUTCOME] = {65, "outcome"},
    [AUDIT_COUNT] = {66, "count"},
    [AUDIT_INPUT_TOKENS] = {67, "input_tokens"},
    [AUDIT_OUTPUT_TOKENS] = {68, "output_tokens"},
    [AUDIT_COMPUTE_MS] = {69, "compute_ms"},
    [AUDIT_QUEUE_MS] = {70, "queue_ms"},
};

const char *audit_text_name(enum audit_text text) {
    return texts[text].name;
}

const char *audit_number_name(enum audit_number number) {
    return numbers[number].name;
}

/* --- encoding ----------------------------------------------------------------------------- */

/* Append `text` without what looks like a secret, at most `max_bytes` of it. */
static void append_hidden(struct buf *out, struct str text, size_t max_bytes) {
    struct secret_span span;
    size_t at = 0, began = out->len;
    text = str_head(text, utf8_cut(text, max_bytes));
    while (secret_next(text, at, NULL, 0, &span)) {
        buf_append(out, str_head(str_skip(text, at), span.from - at));
        buf_append(out, SECRET_HIDDEN);
        at = span.to;
    }
    buf_append(out, str_skip(text, at));
    struct str whole = str_skip(buf_str(out), began);
    out->len = began + utf8_cut(whole, max_bytes);
}

static char *put_text(char *at, unsigned char tag, struct str text) {
    *at++ = (char)tag;
    at += varint_put(at, text.len);
    memcpy(at, text.at, text.len);
    return at + text.len;
}

static struct str cut_text(const struct audit_record *record, size_t text) {
    struct str whole = record->texts[text];
    if (whole.len <= AUDIT_TEXT_MAX_BYTES) return whole;
    return str_head(whole, utf8_cut(whole, AUDIT_TEXT_MAX_BYTES));
}

static size_t kind_of(const struct audit_record *record) {
    for (size_t i = 1; i < ARRAY_LEN(kinds); i++) {
        if (str_equal(kinds[i].operation, record->texts[AUDIT_OPERATION]) &&
            str_equal(kinds[i].domain, record->texts[AUDIT_DOMAIN]))
            return i;
    }
    return 0;
}

bool audit_record_encode(const struct audit_record *record, struct buf *out) {
    char room[AUDIT_RECORD_MAX_BYTES + AUDIT_NUMBERS * (VARINT_MAX_BYTES + 1)], *at = room;
    char detail_room[4 * AUDIT_DETAIL_MAX_BYTES], head[VARINT_MAX_BYTES];
    struct buf detail = {
        .at = detail_room, .room = sizeof(detail_room), .max_bytes = sizeof(detail_room)};
    at += varint_put(at, (uint64_t)(record->at_ms > 0 ? record->at_ms : 0));
    size_t kind = kind_of(record);
    for (size_t i = kind ? AUDIT_WORKSPACE : AUDIT_DOMAIN; i < AUDIT_DETAIL; i++) {
        struct str text = cut_text(record, i);
        if (text.len) at = put_text(at, texts[i].tag, text);
    }
    if (record->texts[AUDIT_DETAIL].len) {
        append_hidden(&detail, record->texts[AUDIT_DETAIL], AUDIT_DETAIL_MAX_BYTES);
        at = put_text(at, texts[AUDIT_DETAIL].tag, buf_str(&detail));
    }
    if (kind) {
        *at++ = KIND_TAG;
        *at++ = (char)kind;
    }
    for (size_t i = 0; i < AUDIT_NUMBERS; i++) {
        if (!record->set[i]) continue;
        *at++ = (char)numbers[i].tag;
        at += varint_put(at, record->numbers[i]);
    }
    size_t len = (size_t)(at - room), head_len = varint_put(head, len);
    char *to = buf_room(out, head_len + len);
    if (!to) return false;
    memcpy(to, head, head_len);
    memcpy(to + head_len, room, len);
    buf_grew(out, head_len + len);
    return true;
}

/* --- decoding ----------------------------------------------------------------------------- */

static bool audit_record_bad(struct err *e, const char *what) {
    return err_set(e, ERR_DATA_LOSS, "audit: a record is damaged: %s", what);
}

static void keep_text(struct audit_record *record, unsigned char tag, struct str value) {
    for (size_t i = 0; i < AUDIT_TEXTS; i++) {
        if (texts[i].tag == tag) record->texts[i] = value;
    }
}

static void keep_number(struct audit_record *record, unsigned char tag, uint64_t value) {
    for (size_t i = 0; i < AUDIT_NUMBERS; i++) {
        if (numbers[i].tag == tag) audit_set(record, (enum audit_number)i, value);
    }
}

static void keep_kind(struct audit_record *record, uint64_t kind) {
    if (kind == 0 || kind >= ARRAY_LEN(kinds)) return; /* of a later version */
    record->texts[AUDIT_DOMAIN] = kinds[kind].domain;
    record->texts[AUDIT_OPERATION] = kinds[kind].operation;
}

static bool take_field(struct str *rest, unsigned char *last, struct audit_record *ret,
                       struct err *e) {
    unsigned char tag = (unsigned char)rest->at[0];
    uint64_t value;
    *rest = str_skip(*rest, 1);
    if (tag <= *last) return audit_record_bad(e, "its fields are out of order");
    *last = tag;
    if (!varint_take(rest, &value)) return audit_record_bad(e, "a field is cut off");
    if (tag == KIND_TAG) {
        keep_kind(ret, value);
        return true;
    }
    if (tag >= NUMBER_TAGS) {
        keep_number(ret, tag, value);
        return true;
    }
    if (value > rest->len) return audit_record_bad(e, "a text is cut off");
    keep_text(ret, tag, str_head(*rest, (size_t)value));
    *rest = str_skip(*rest, (size_t)value);
    return true;
}

bool audit_record_decode(struct str *bytes, struct audit_record *ret, struct err *e) {
    struct str after = *bytes, rest;
    struct audit_record record = {.seq = 0};
    unsigned char last = 0;
    uint64_t len, at_ms;
    if (!varint_take(&after, &len) || len > after.len)
        return audit_record_bad(e, "its end is missing");
    rest = str_head(after, (size_t)len);
    if (!varint_take(&rest, &at_ms) || at_ms > INT64_MAX)
        return audit_record_bad(e, "it has no time");
    record.at_ms = (int64_t)at_ms;
    while (rest.len) {
        if (!take_field(&rest, &last, &record, e)) return false;
    }
    *ret = record;
    *bytes = str_skip(after, (size_t)len);
    return true;
}

/* --- JSON --------------------------------------------------------------------------------- */

struct str audit_hex(struct str digest, char room[2 * AUDIT_DIGEST_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    digest = str_head(digest, AUDIT_DIGEST_BYTES);
    for (size_t i = 0; i < digest.len; i++) {
        room[2 * i] = digits[(unsigned char)digest.at[i] >> 4];
        room[2 * i + 1] = digits[(unsigned char)digest.at[i] & 15];
    }
    return str_of(room, 2 * digest.len);
}

bool audit_time(int64_t at_ms, struct buf *out) {
    size_t began = out->len;
    if (!moment_put(out, at_ms / 1000, 0)) return false;
    out->len = began + strlen("yyyy-mm-ddThh:mm:ss"); /* moment_put() writes no milliseconds */
    return buf_printf(out, ".%03dZ", (int)(at_ms % 1000));
}

static void write_time(struct json_writer *json, int64_t at_ms) {
    char room[64];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (audit_time(at_ms, &text)) {
        json_member_str(json, "at", buf_str(&text));
    } else {
        json_member_null(json, "at");
    }
}

static void write_outcome(struct json_writer *json, uint64_t outcome) {
    if (outcome < ERR_CODE_COUNT) {
        json_member_str(json, numbers[AUDIT_OUTCOME].name, str_from(err_kinds[outcome].name));
    } else {
        json_member_u64(json, numbers[AUDIT_OUTCOME].name, outcome);
    }
}

static void write_number(struct json_writer *json, size_t number, uint64_t value) {
    char digits[24];
    struct buf text = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    if (number == AUDIT_OUTCOME) {
        write_outcome(json, value);
    } else if (number == AUDIT_RUN) { /* exceeds the number range of some JSON readers */
        buf_append_u64(&text, value);
        json_member_str(json, numbers[number].name, buf_str(&text));
    } else {
        json_member_u64(json, numbers[number].name, value);
    }
}

bool audit_record_json(const struct audit_record *record, struct buf *out) {
    char hex[2 * AUDIT_DIGEST_BYTES];
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_u64(&json, "seq", record->seq);
    write_time(&json, record->at_ms);
    for (size_t i = 0; i < AUDIT_TEXTS; i++) {
        struct str text = record->texts[i];
        if (text.len == 0) continue;
        if (i == AUDIT_DIGEST) {
            json_member_str(&json, texts[i].name, audit_hex(text, hex));
        } else {
            json_member_str(&json, texts[i].name, text);
        }
    }
    for (size_t i = 0; i < AUDIT_NUMBERS; i++) {
        if (record->set[i]) write_number(&json, i, record->numbers[i]);
    }
    json_close(&json);
    return buf_ok(out);
}
