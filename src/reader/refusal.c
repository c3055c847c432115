/* refusal: the reason in a status, or in the answer that stands for one. */
#include "base/attr.h"
#include "base/utf8.h"
#include "proto/nimi.pb.h"
#include "reader/reader.h"
#include "wire/json.h"

#define ARENA_MAX_BYTES (256 * KIB)

/* --- which reasons a later try can help --------------------------------------------------- */

static const struct {
    int code; /* 0: it has no number */
    struct str name;
} helpable[] = {
    /* clang-format off */
    {NIMI_AI_PROVIDER_UNAVAILABLE,  STR_INIT("AI_PROVIDER_UNAVAILABLE")},
    {NIMI_AI_PROVIDER_TIMEOUT,      STR_INIT("AI_PROVIDER_TIMEOUT")},
    {NIMI_AI_PROVIDER_RATE_LIMITED, STR_INIT("AI_PROVIDER_RATE_LIMITED")},
    {NIMI_AI_STREAM_BROKEN,         STR_INIT("AI_STREAM_BROKEN")},
    {NIMI_SESSION_EXPIRED,          STR_INIT("SESSION_EXPIRED")},
    {0,                             STR_INIT("RUNTIME_UNAVAILABLE")},
    {0,                             STR_INIT("RUNTIME_BRIDGE_DAEMON_UNAVAILABLE")},
    /* clang-format on */
};

bool reader_reason_can_help(struct str reason, int reason_code) {
    for (size_t i = 0; i < ARRAY_LEN(helpable); i++) {
        bool by_code = reason_code && helpable[i].code == reason_code;
        if (by_code || str_equal(reason, helpable[i].name)) return true;
    }
    return false;
}

/* --- keeping ------------------------------------------------------------------------------ */

static void refusal_keep(struct buf *into, struct str text) {
    buf_clear(into);
    buf_append(into, str_head(text, utf8_cut(text, into->max_bytes)));
}

/* Whether it is the name of a reason: capitals, digits and underscores. */
static bool is_reason(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) return false;
    }
    return text.len > 0 && text.len <= READER_REASON_MAX_BYTES;
}

/* A completing frame has said it already, and better. */
static bool settled(const struct reader *reader) {
    return reader->state >= READER_FINISHED;
}

/* --- a status message --------------------------------------------------------------------- */

/* The text of one of two members. */
static struct str refusal_text_of(struct json object, struct str name, struct str other,
                                  struct arena *arena) {
    struct json value = json_find(object, name);
    struct str text = STR_EMPTY;
    if (value.kind != JSON_STRING) value = json_find(object, other);
    if (value.kind == JSON_STRING && !json_str(value, arena, &text)) return STR_EMPTY;
    return text;
}

/* The JSON object inside the text. */
static bool find_object(struct str text, struct json *ret) {
    struct err none;
    size_t begin = str_find_byte(text, '{'), end = text.len;
    while (end > begin && text.at[end - 1] != '}') end--;
    return end > begin && json_read(str_skip(str_head(text, end), begin), ret, &none) &&
           ret->kind == JSON_OBJECT;
}

static bool read_object(struct reader *reader, struct json object) {
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    struct str reason = refusal_text_of(object, STR("reasonCode"), STR("reason_code"), arena);
    bool found = is_reason(reason);
    if (found) {
        struct str said = refusal_text_of(object, STR("message"), STR("actionHint"), arena);
        refusal_keep(&reader->reason, reason);
        if (said.len) refusal_keep(&reader->message, said);
        if (json_bool(json_find(object, STR("retryable")), &reader->retryable))
            reader->stated = true;
    }
    arena_free(arena);
    return found;
}

void reader_status_message(struct reader *reader, struct str message) {
    struct json object;
    struct str rest, head;
    if (settled(reader)) return;
    if (!reader->message.len) refusal_keep(&reader->message, message);
    if (reader->reason.len) return;
    if (find_object(message, &object) && read_object(reader, object)) return;
    head = str_split(message, ':', &rest);
    if (is_reason(head)) refusal_keep(&reader->reason, head);
}

/* --- google.rpc.Status -------------------------------------------------------------------- */

struct metadata {
    struct str key, value;
};
struct error_info {
    struct str reason, domain;
    const struct metadata *metadata;
    size_t metadata_count;
};
struct any {
    struct str type_url, value;
};
struct details {
    int32_t code;
    struct str message;
    const struct any *details;
    size_t details_count;
};

#define TEXT(number, type, member)                                                             \
    { number, PB_STRING, PB_IMPLICIT, offsetof(struct type, member), 0, NULL, #member }

static const struct pb_field metadata_fields[] = {TEXT(1, metadata, key),
                                                  TEXT(2, metadata, value)};
static const struct pb_message metadata_table = {
    "google.rpc.ErrorInfo.MetadataEntry", metadata_fields, 2, 2, sizeof(struct metadata), true};
static const struct pb_field error_info_fields[] = {
    TEXT(1, error_info, reason),
    TEXT(2, error_info, domain),
    {3, PB_MESSAGE, PB_REPEATED, offsetof(struct error_info, metadata),
     offsetof(struct error_info, metadata_count), &metadata_table, "metadata"}};
static const struct pb_message error_info_table = {
    "google.rpc.ErrorInfo", error_info_fields, 3, 3, sizeof(struct error_info), false};
static const struct pb_field any_fields[] = {
    TEXT(1, any, type_url),
    {2, PB_BYTES, PB_IMPLICIT, offsetof(struct any, value), 0, NULL, "value"}};
static const struct pb_message any_table = {"google.protobuf.Any", any_fields, 2, 2,
                                            sizeof(struct any),    false};
static const struct pb_field details_fields[] = {
    {1, PB_INT32, PB_IMPLICIT, offsetof(struct details, code), 0, NULL, "code"},
    TEXT(2, details, message),
    {3, PB_MESSAGE, PB_REPEATED, offsetof(struct details, details),
     offsetof(struct details, details_count), &any_table, "details"}};
static const struct pb_message details_table = {"google.rpc.Status",    details_fields, 3, 3,
                                                sizeof(struct details), false};

static void read_info(struct reader *reader, const struct error_info *info) {
    if (!is_reason(info->reason)) return;
    refusal_keep(&reader->reason, info->reason);
    for (size_t i = 0; i < info->metadata_count; i++) {
        if (!str_equal(info->metadata[i].key, STR("retryable"))) continue;
        reader->stated = true;
        reader->retryable = str_equal(info->metadata[i].value, STR("true"));
    }
}

void reader_status_details(struct reader *reader, struct str bytes) {
    struct details details;
    struct error_info info;
    struct err none;
    if (settled(reader)) return;
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    bool good = pb_decode_view(&details_table, bytes, arena, &details, &none);
    for (size_t i = 0; good && i < details.details_count; i++) {
        const struct any *any = &details.details[i];
        if (str_ends(any->type_url, STR("/google.rpc.ErrorInfo")) &&
            pb_decode_view(&error_info_table, any->value, arena, &info, &none))
            read_info(reader, &info);
    }
    if (good && details.message.len) refusal_keep(&reader->message, details.message);
    arena_free(arena);
}

/* --- an HTTP answer ----------------------------------------------------------------------- */

static enum err_code code_of_http(unsigned status) {
    if (status == 400) return ERR_INVALID_ARGUMENT;
    for (int code = ERR_CANCELLED; code <= ERR_UNAUTHENTICATED; code++) {
        bool same = err_kinds[code].http_status == (int)status;
        if (same && code != ERR_UNKNOWN) return (enum err_code)code;
    }
    if (status / 100 == 4) return ERR_INVALID_ARGUMENT;
    return status / 100 == 5 ? ERR_INTERNAL : ERR_UNKNOWN;
}

/* {"error": {"code", "message"}}, {"error": "text"}, {"detail": "text"}. */
static void read_http_error(struct reader *reader, struct str body) {
    struct json answer;
    struct err none;
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    if (json_read(body, &answer, &none)) {
        struct json error = json_find(answer, STR("error"));
        struct str code = refusal_text_of(error, STR("code"), STR("code"), arena);
        struct str said = refusal_text_of(error, STR("message"), STR("message"), arena);
        if (!said.len) said = refusal_text_of(answer, STR("detail"), STR("error"), arena);
        if (said.len) refusal_keep(&reader->message, said);
        if (is_reason(code)) refusal_keep(&reader->reason, code);
    }
    if (!reader->message.len) refusal_keep(&reader->message, str_trim(body));
    arena_free(arena);
}

enum err_code reader_http_refusal(struct reader *reader, unsigned status, struct str body) {
    /* These say by themselves that nothing was executed. Another 5xx may have come after it. */
    bool before = status / 100 == 4 || status == 501 || status == 503;
    if (!settled(reader)) {
        read_http_error(reader, body);
        if (before && !reader->reason.len) refusal_keep(&reader->reason, STR("UNSPECIFIED"));
        if (!before) buf_clear(&reader->reason);
    }
    return code_of_http(status);
}
