#include "contract/nimi/memory/memory.h"

#include "contract/nimi/log_subscription.h"
#include "contract/nimi/memory/locator.h"
#include "contract/nimi/owner.h"
#include "proto/nimi.pb.h"

/* --- from the log ------------------------------------------------------------------------- */

static bool read_bank(struct str body, struct arena *arena,
                      const struct nimi_memory_bank **ret) {
    struct nimi_memory_bank *bank = ARENA_NEW(arena, struct nimi_memory_bank);
    struct err e;
    *ret = bank;
    return bank && pb_decode_view(&nimi_memory_bank_table, body, arena, bank, &e);
}

static bool read_record(struct str body, struct arena *arena,
                        const struct nimi_memory_record **ret) {
    struct nimi_memory_record *record = ARENA_NEW(arena, struct nimi_memory_record);
    struct err e;
    *ret = record;
    return record && pb_decode_view(&nimi_memory_record_table, body, arena, record, &e);
}

/* Each id is followed by a newline. */
static bool read_ids(struct str body, struct arena *arena, struct nimi_memory_event *event) {
    struct nimi_memory_deleted_detail *detail =
        ARENA_NEW(arena, struct nimi_memory_deleted_detail);
    struct str *ids = arena_alloc(arena, BANK_FORGET_MAX * sizeof(*ids));
    if (!detail || !ids || event->which_detail != NIMI_MEMORY_EVENT_RECORD_DELETED)
        return false;
    detail->reason = event->record_deleted->reason;
    detail->memory_ids = ids;
    while (body.len && detail->memory_ids_count < BANK_FORGET_MAX)
        ids[detail->memory_ids_count++] = str_split(body, '\n', &body);
    event->record_deleted = detail;
    return body.len == 0;
}

static bool add_body(struct str body, struct arena *arena, struct nimi_memory_event *event) {
    switch (event->event_type) {
    case NIMI_MEMORY_EVENT_TYPE_BANK_CREATED:
        event->which_detail = NIMI_MEMORY_EVENT_BANK_CREATED;
        return read_bank(body, arena, &event->bank_created);
    case NIMI_MEMORY_EVENT_TYPE_BANK_DELETED:
        event->which_detail = NIMI_MEMORY_EVENT_BANK_DELETED;
        return read_bank(body, arena, &event->bank_deleted);
    case NIMI_MEMORY_EVENT_TYPE_RECORD_RETAINED:
        event->which_detail = NIMI_MEMORY_EVENT_RECORD_RETAINED;
        return read_record(body, arena, &event->record_retained);
    case NIMI_MEMORY_EVENT_TYPE_RECORD_DELETED: return read_ids(body, arena, event);
    default: return false;
    }
}

static bool read_event(const struct event_log_event *from, struct arena *arena, void **ret,
                       uint64_t **ret_sequence) {
    struct nimi_memory_event *event = ARENA_NEW(arena, struct nimi_memory_event);
    struct err e;
    if (!event || !pb_decode_view(&nimi_memory_event_table, from->bytes, arena, event, &e) ||
        (from->body.len && !add_body(from->body, arena, event)))
        return false;
    *ret = event;
    *ret_sequence = &event->sequence;
    return true;
}

const struct log_kind memory_log = {&nimi_memory_event_table, read_event};

/* --- subscribing -------------------------------------------------------------------------- */

void memory_subscribe(struct nimi_call *call, const void *request) {
    const struct nimi_subscribe_memory_events_request *from = request;
    const struct nimi_memory_request_context *context = from->context;
    struct log_subscription_options options = {
        .kind = &memory_log, .key = {.kind = EVENT_LOG_MEMORY}, .live = true};
    struct fault fault;
    if (!owner_of(call, context ? context->app_id : STR_EMPTY,
                  context ? context->subject_user_id : STR_EMPTY, &options.key.owner, &fault) ||
        !log_subscription_cursor(from->cursor, &options, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    options.store = owner_store(call);
    if (!options.store) return;
    struct locator_filter *filter =
        locator_filter_new(from->scope_filters, from->scope_filters_count, from->owner_filters,
                           from->owner_filters_count, &fault);
    if (!filter) {
        nimi_refuse(call, &fault);
        return;
    }
    options.filter = filter;
    options.wants = locator_filter_wants;
    log_subscription_start(call, &options);
}
