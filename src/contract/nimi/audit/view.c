#include "contract/nimi/audit/view.h"

#include "base/utf8.h"
#include "wire/json.h"

#include <assert.h>
#include <stdio.h>

/* --- names -------------------------------------------------------------------------------- */

static const struct {
    struct str name, proto;
} kinds[] = {
    {STR_INIT(""), STR_INIT("CALLER_KIND_UNSPECIFIED")},
    {STR_INIT("desktop-core"), STR_INIT("CALLER_KIND_DESKTOP_CORE")},
    {STR_INIT("desktop-mod"), STR_INIT("CALLER_KIND_DESKTOP_MOD")},
    {STR_INIT("third-party-app"), STR_INIT("CALLER_KIND_THIRD_PARTY_APP")},
    {STR_INIT("third-party-service"), STR_INIT("CALLER_KIND_THIRD_PARTY_SERVICE")},
};

int32_t audit_view_caller_kind(struct str name) {
    for (size_t i = 1; i < ARRAY_LEN(kinds); i++) {
        if (str_equal(name, kinds[i].name)) return (int32_t)i;
    }
    return 0;
}

struct str audit_view_caller_name(int32_t kind) {
    bool known = kind > 0 && (size_t)kind < ARRAY_LEN(kinds);
    return known ? kinds[kind].name : STR_EMPTY;
}

struct str audit_view_text(const struct audit_record *record, enum audit_text text) {
    struct str value = record->texts[text];
    return str_head(value, utf8_valid_prefix(value));
}

/* A record without a reason of this protocol that went well was executed. */
static int32_t view_reason_of(const struct audit_record *record) {
    const struct reason *reason;
    struct str name = record->texts[AUDIT_REASON];
    for (size_t cursor = 0; name.len && reason_next(&cursor, &reason);) {
        if (str_equal(name, str_from(reason->name))) return reason->number;
    }
    bool good = audit_get(record, AUDIT_OUTCOME) == ERR_NONE && !name.len;
    return good ? NIMI_ACTION_EXECUTED : NIMI_REASON_CODE_UNSPECIFIED;
}

bool audit_view_filter(int32_t reason, struct audit_filter *filter) {
    const struct reason *row = reason_get(reason);
    if (row->number != reason) return false;
    filter->texts[AUDIT_REASON] =
        reason == NIMI_ACTION_EXECUTED ? STR_EMPTY : str_from(row->name);
    filter->went_well = reason == NIMI_ACTION_EXECUTED;
    return true;
}

/* --- the payload -------------------------------------------------------------------------- */

static struct google_value *add_member(struct audit_view *view, const char *name) {
    assert(view->count < AUDIT_VIEW_FIELDS);
    struct google_value *value = &view->values[view->count];
    view->fields[view->count++] = (struct google_struct_fields_entry){str_from(name), value};
    return value;
}

static void view_add_text(struct audit_view *view, const char *name, struct str text) {
    if (text.len == 0) return;
    *add_member(view, name) =
        (struct google_value){.which_kind = GOOGLE_VALUE_STRING_VALUE, .string_value = text};
}

static void add_number(struct audit_view *view, const struct audit_record *record,
                       enum audit_number number) {
    if (!record->set[number]) return;
    *add_member(view, audit_number_name(number)) =
        (struct google_value){.which_kind = GOOGLE_VALUE_NUMBER_VALUE,
                              .number_value = (double)record->numbers[number]};
}

static struct str decimal(uint64_t number, char room[static 24]) {
    struct buf text = {.at = room, .room = 24, .max_bytes = 24};
    buf_append_u64(&text, number);
    return buf_str(&text);
}

static void add_payload(struct audit_view *view, const struct audit_record *record) {
    static const enum audit_text texts[] = {AUDIT_CONTRACT, AUDIT_MODEL, AUDIT_REASON,
                                            AUDIT_DETAIL};
    view_add_text(view, "request_id", audit_view_text(record, AUDIT_TRACE));
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        view_add_text(view, audit_text_name(texts[i]), audit_view_text(record, texts[i]));
    view_add_text(view, "digest", audit_hex(record->texts[AUDIT_DIGEST], view->digest));
    if (record->set[AUDIT_RUN])
        view_add_text(view, "run", decimal(record->numbers[AUDIT_RUN], view->run));
    if (record->set[AUDIT_OUTCOME] && record->numbers[AUDIT_OUTCOME] < ERR_CODE_COUNT)
        view_add_text(view, "grpc_code",
                      err_name((enum err_code)record->numbers[AUDIT_OUTCOME]));
    for (size_t i = AUDIT_COUNT; i < AUDIT_NUMBERS; i++)
        add_number(view, record, (enum audit_number)i);
    view->payload = (struct google_struct){view->fields, view->count};
}

void audit_view_init(struct audit_view *view, const struct audit_record *record) {
    view->count = 0;
    view->at = (struct google_timestamp){.seconds = record->at_ms / 1000,
                                         .nanos = (int32_t)(record->at_ms % 1000) * 1000000};
    add_payload(view, record);
    view->event = (struct nimi_audit_event_record){
        .audit_id = decimal(record->seq, view->id),
        .app_id = audit_view_text(record, AUDIT_WORKSPACE),
        .subject_user_id = audit_view_text(record, AUDIT_USER),
        .domain = audit_view_text(record, AUDIT_DOMAIN),
        .operation = audit_view_text(record, AUDIT_OPERATION),
        .reason_code = view_reason_of(record),
        .trace_id = audit_view_text(record, AUDIT_TRACE),
        .timestamp = &view->at,
        .payload = &view->payload,
        .caller_kind = audit_view_caller_kind(record->texts[AUDIT_CALLER_KIND]),
        .caller_id = audit_view_text(record, AUDIT_CALLER),
        .surface_id = audit_view_text(record, AUDIT_SURFACE),
        .principal_id = audit_view_text(record, AUDIT_USER),
        .capability = audit_view_text(record, AUDIT_CAPABILITY)};
}

/* --- JSON --------------------------------------------------------------------------------- */

static void view_member(struct json_writer *json, const char *name, struct str text) {
    if (text.len) json_member_str(json, name, text);
}

static void view_write_time(struct json_writer *json, const struct google_timestamp *at) {
    char room[64];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (!audit_time(at->seconds * 1000 + at->nanos / 1000000, &text)) return;
    json_member_str(json, "timestamp", buf_str(&text));
}

static void write_payload(struct json_writer *json, const struct google_struct *payload) {
    json_member_object(json, "payload");
    for (size_t i = 0; i < payload->fields_count; i++) {
        const struct google_value *value = payload->fields[i].value;
        json_key(json, payload->fields[i].key);
        if (value->which_kind == GOOGLE_VALUE_STRING_VALUE) {
            json_write_str(json, value->string_value);
        } else {
            json_write_double(json, value->number_value);
        }
    }
    json_close(json);
}

void audit_view_json(const struct audit_view *view, struct buf *out) {
    const struct nimi_audit_event_record *event = &view->event;
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    view_member(&json, "audit_id", event->audit_id);
    view_member(&json, "app_id", event->app_id);
    view_member(&json, "subject_user_id", event->subject_user_id);
    view_member(&json, "domain", event->domain);
    view_member(&json, "operation", event->operation);
    if (event->reason_code)
        json_member_str(&json, "reason_code", str_from(reason_get(event->reason_code)->name));
    view_member(&json, "trace_id", event->trace_id);
    view_write_time(&json, event->timestamp);
    write_payload(&json, event->payload);
    if (event->caller_kind)
        json_member_str(&json, "caller_kind", kinds[event->caller_kind].proto);
    view_member(&json, "caller_id", event->caller_id);
    view_member(&json, "surface_id", event->surface_id);
    view_member(&json, "principal_id", event->principal_id);
    view_member(&json, "capability", event->capability);
    json_close(&json);
}
