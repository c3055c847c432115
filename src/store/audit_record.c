#include "store/audit_record.h"

#include "base/secret.h"
#include "base/utf8.h"
#include "store/varint.h"
#include "wire/json.h"
#include "wire/moment.h"

/* --- the tags ----------------------------------------------------------------------------- */

#define NUMBER_TAGS 63 /* tags from here on are numbers */
#define KIND_TAG 63    /* an index of `kinds`, in place of a domain and an operation */
#define SAID_TAG 71    /* bits: what is as it was said last */

/* The bits of SAID_TAG are on disk. A text's bit is its tag: those from AUDIT_WORKSPACE up to
 * AUDIT_REASON have one. */
#define SAID_TIME (UINT64_C(1) << 0)
#define SAID_RUN (UINT64_C(1) << 1)
#define SAID_TEXT(text) (UINT64_C(1) << texts[text].tag)
#define SAID_FIRST AUDIT_WORKSPACE
#define SAID_LAST AUDIT_REASON

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

static char *audit_record_put_text(char *at, unsigned char tag, struct str text) {
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

/* A record that is being written. */
struct encoding {
    const struct audit_record *record;
    struct audit_said *said; /* NULL: it stands by itself */
    char *room, *at;
    uint64_t refers; /* bits of SAID_TAG */
    size_t said_now; /* how many of its texts are said for those after it */
    struct {
        size_t text, place, len;
    } says[SAID_LAST - SAID_FIRST + 1];
};

static void put_time(struct encoding *all) {
    int64_t at_ms = all->record->at_ms > 0 ? all->record->at_ms : 0;
    bool same = all->said && all->said->some && all->said->at_ms == at_ms;
    if (same) all->refers |= SAID_TIME;
    all->at += varint_put(all->at, same ? 0 : (uint64_t)at_ms);
}

/* A text that those after it may refer to, and that may refer itself. */
static void put_said_text(struct encoding *all, size_t i, struct str text) {
    if (all->said && str_equal(text, all->said->texts[i])) {
        all->refers |= SAID_TEXT(i);
        return;
    }
    all->at = audit_record_put_text(all->at, texts[i].tag, text);
    all->says[all->said_now].text = i;
    all->says[all->said_now].place = (size_t)(all->at - all->room) - text.len;
    all->says[all->said_now++].len = text.len;
}

static void put_detail(struct encoding *all) {
    char detail_room[4 * AUDIT_DETAIL_MAX_BYTES];
    struct buf detail = {
        .at = detail_room, .room = sizeof(detail_room), .max_bytes = sizeof(detail_room)};
    append_hidden(&detail, all->record->texts[AUDIT_DETAIL], AUDIT_DETAIL_MAX_BYTES);
    all->at = audit_record_put_text(all->at, texts[AUDIT_DETAIL].tag, buf_str(&detail));
}

static void put_texts(struct encoding *all, size_t kind) {
    for (size_t i = kind ? AUDIT_WORKSPACE : AUDIT_DOMAIN; i < AUDIT_DETAIL; i++) {
        if (!all->record->texts[i].len) continue;
        struct str text = cut_text(all->record, i);
        if (i >= SAID_FIRST && i <= SAID_LAST)
            put_said_text(all, i, text);
        else
            all->at = audit_record_put_text(all->at, texts[i].tag, text);
    }
    if (all->record->texts[AUDIT_DETAIL].len) put_detail(all);
}

static bool run_is_said(const struct encoding *all) {
    return all->said && all->said->has_run && all->said->run == all->record->numbers[AUDIT_RUN];
}

static void put_numbers(struct encoding *all, size_t kind) {
    if (kind) {
        *all->at++ = KIND_TAG;
        *all->at++ = (char)kind;
    }
    for (size_t i = 0; i < AUDIT_NUMBERS; i++) {
        if (!all->record->set[i]) continue;
        if (i == AUDIT_RUN && run_is_said(all)) {
            all->refers |= SAID_RUN;
            continue;
        }
        *all->at++ = (char)numbers[i].tag;
        all->at += varint_put(all->at, all->record->numbers[i]);
    }
    if (!all->refers) return;
    *all->at++ = SAID_TAG;
    all->at += varint_put(all->at, all->refers);
}

/* `body`: the bytes of the record after its length. */
static void say(const struct encoding *all, const char *body) {
    struct audit_said *said = all->said;
    said->some = true;
    said->at_ms = all->record->at_ms > 0 ? all->record->at_ms : 0;
    if (all->record->set[AUDIT_RUN]) {
        said->has_run = true;
        said->run = all->record->numbers[AUDIT_RUN];
    }
    for (size_t i = 0; i < all->said_now; i++)
        said->texts[all->says[i].text] = str_of(body + all->says[i].place, all->says[i].len);
}

bool audit_record_encode(const struct audit_record *record, struct audit_said *said,
                         struct buf *out) {
    char room[AUDIT_RECORD_ENCODED_BYTES], head[VARINT_MAX_BYTES];
    struct encoding all;
    all.record = record; /* its list of texts begins without zeroes */
    all.said = said;
    all.room = all.at = room;
    all.refers = 0;
    all.said_now = 0;
    size_t kind = kind_of(record);
    put_time(&all);
    put_texts(&all, kind);
    put_numbers(&all, kind);
    size_t len = (size_t)(all.at - room), head_len = varint_put(head, len);
    char *to = buf_room(out, head_len + len);
    if (!to) return false;
    memcpy(to, head, head_len);
    /* cppcheck-suppress uninitvar; the put functions wrote there */
    memcpy(to + head_len, room, len);
    buf_grew(out, head_len + len);
    if (said) say(&all, to + head_len);
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

/* Take from `said` what `bits` name. False: it was not said, or the record says it itself. */
static bool take_said(const struct audit_said *said, uint64_t bits, struct audit_record *ret) {
    if (!bits || !said || !said->some) return false;
    if (bits & SAID_TIME) {
        if (ret->at_ms) return false;
        ret->at_ms = said->at_ms;
    }
    if (bits & SAID_RUN) {
        if (!said->has_run || ret->set[AUDIT_RUN]) return false;
        audit_set(ret, AUDIT_RUN, said->run);
    }
    bits &= ~(SAID_TIME | SAID_RUN);
    for (size_t i = SAID_FIRST; i <= SAID_LAST; i++) {
        if (!(bits & SAID_TEXT(i))) continue;
        if (!said->texts[i].len || ret->texts[i].len) return false;
        ret->texts[i] = said->texts[i];
        bits &= ~SAID_TEXT(i);
    }
    return bits == 0;
}

static bool take_field(struct str *rest, unsigned char *last, const struct audit_said *said,
                       struct audit_record *ret, struct err *e) {
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
    if (tag == SAID_TAG)
        return take_said(said, value, ret) ||
               audit_record_bad(e, "it refers to what no record before it says");
    if (tag >= NUMBER_TAGS) {
        keep_number(ret, tag, value);
        return true;
    }
    if (value > rest->len) return audit_record_bad(e, "a text is cut off");
    keep_text(ret, tag, str_head(*rest, (size_t)value));
    *rest = str_skip(*rest, (size_t)value);
    return true;
}

static void hear(struct audit_said *said, const struct audit_record *record) {
    said->some = true;
    said->at_ms = record->at_ms;
    if (record->set[AUDIT_RUN]) {
        said->has_run = true;
        said->run = record->numbers[AUDIT_RUN];
    }
    for (size_t i = SAID_FIRST; i <= SAID_LAST; i++) {
        if (record->texts[i].len) said->texts[i] = record->texts[i];
    }
}

bool audit_record_decode(struct str *bytes, struct audit_said *said, struct audit_record *ret,
                         struct err *e) {
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
        if (!take_field(&rest, &last, said, &record, e)) return false;
    }
    if (said) hear(said, &record);
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
