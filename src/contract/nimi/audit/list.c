#include "contract/nimi/admit.h"
#include "contract/nimi/audit/audit.h"
#include "contract/nimi/audit/view.h"
#include "contract/nimi/page.h"

#include "base/log.h"
#include "base/mem.h"
#include "session/session.h"

#include <stdio.h>
#include <stdlib.h>

#define REPLY_MAX_BYTES (3 * MIB)
#define SCANS_MAX 16 /* for one page of a list; then it is short and has a token */

/* --- shared ------------------------------------------------------------------------------- */

/* Milliseconds; times before 1970 are 1970. */
static int64_t millis(const struct google_timestamp *at) {
    if (!at || at->seconds <= 0) return 0;
    if (at->seconds > INT64_MAX / 2000) return INT64_MAX / 2;
    return at->seconds * 1000 + at->nanos / 1000000;
}

static void choose_text(struct nimi_call *call, enum audit_text text, struct str value,
                        struct audit_filter *filter) {
    if (value.len) filter->texts[text] = nimi_keep(call, value);
}

bool audit_choose(struct nimi_call *call, const struct audit_choice *choice,
                  struct audit_filter *ret, struct fault *fault) {
    struct str header = call->envelope.app_id, app = choice->app.len ? choice->app : header;
    *ret = (struct audit_filter){.from_ms = millis(choice->from), .to_ms = millis(choice->to)};
    if (choice->to && choice->to->seconds < 0)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                         "to_time is before 1970, when there were no records");
    if (app.len == 0)
        return fault_set_code(fault, NIMI_PRINCIPAL_UNAUTHORIZED, ERR_UNAUTHENTICATED,
                              "name the app whose records to read, in app_id or in "
                              "x-nimi-app-id");
    if (header.len && !str_equal(app, header))
        return fault_set(fault, NIMI_APP_SCOPE_FORBIDDEN,
                         "app_id names another app than x-nimi-app-id; an app reads its own "
                         "records");
    choose_text(call, AUDIT_WORKSPACE, app, ret);
    choose_text(call, AUDIT_USER, choice->subject, ret);
    return true;
}

struct str audit_owner(const struct nimi_call *call, struct str asked) {
    return call->subject.len ? call->subject : asked;
}

struct store *audit_store(struct nimi_call *call) {
    struct store *store = session_table_store(call->instance->host->engine->sessions);
    bool ready = store && nimi_runtime_state(call->instance->runtime) != LIFE_STARTING;
    if (!ready)
        nimi_end(call, ERR_UNAVAILABLE, STR("the store is being opened; ask again later"));
    return ready ? store : NULL;
}

void audit_unread(struct nimi_call *call, const struct err *failed) {
    log_often(LOG_WARNING, "the audit log cannot be read: %s", failed->text);
    nimi_end(call, failed->code == ERR_DATA_LOSS ? ERR_DATA_LOSS : ERR_UNAVAILABLE,
             STR("the audit log cannot be read now"));
}

/* --- ListAuditEvents ---------------------------------------------------------------------- */

/* A list on its way. The reply is gathered as its encoding: events are its first field. */
struct listing {
    struct nimi_call *call;
    struct store *store;
    struct audit_ask *ask;
    struct audit_query query;
    struct page page;
    size_t wanted, scans;
    struct buf reply;
};

#define EVENTS_FIELD 1 /* of ListAuditEventsResponse */
#define TOKEN_FIELD 2

static void add_event(struct listing *listing, const struct audit_record *record) {
    struct audit_view view;
    audit_view_init(&view, record);
    pb_encode_member(EVENTS_FIELD, &nimi_audit_event_record_table, &view.event,
                     &listing->reply);
}

static void end_listing(struct listing *listing, bool more) {
    char digits[24], room[PAGE_TOKEN_MAX_BYTES];
    struct buf token = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (more) {
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)listing->query.cursor);
        page_next(&listing->page, str_from(digits), &token);
        pb_append_str(&listing->reply, TOKEN_FIELD, buf_str(&token));
    }
    nimi_reply_again(listing->call, buf_str(&listing->reply));
}

static void list_read_on(struct listing *listing);

static void audit_list_on_listed(const struct audit_page *page, const struct err *failed,
                                 void *ctx) {
    struct listing *listing = ctx;
    listing->ask = NULL;
    if (listing->call->over) return;
    if (failed) {
        audit_unread(listing->call, failed);
        return;
    }
    for (size_t i = 0; i < page->count; i++) add_event(listing, &page->records[i]);
    listing->wanted -= page->count;
    listing->query.cursor = page->scanned.cursor;
    bool more = !page->scanned.end;
    if (!more || listing->wanted == 0 || ++listing->scans == SCANS_MAX) {
        end_listing(listing, more);
    } else {
        list_read_on(listing);
    }
}

static void list_read_on(struct listing *listing) {
    listing->query.limit = listing->wanted;
    listing->ask = audit_page_start(listing->store, listing->call->loop, &listing->query,
                                    audit_list_on_listed, listing);
}

static void on_list_closed(void *ctx) {
    struct listing *listing = ctx;
    audit_forget(listing->ask);
    buf_done(&listing->reply);
    free(listing);
}

static const struct nimi_work list_events = {.closed = on_list_closed};

static bool choose_events(struct nimi_call *call,
                          const struct nimi_list_audit_events_request *from,
                          struct listing *listing, struct fault *fault) {
    const struct audit_choice choice = {from->app_id, audit_owner(call, from->subject_user_id),
                                        from->from_time, from->to_time};
    struct audit_filter *filter = &listing->query.filter;
    if (!audit_choose(call, &choice, filter, fault)) return false;
    if (from->reason_code && !audit_view_filter(from->reason_code, filter))
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "there is no reason_code %d",
                         from->reason_code);
    choose_text(call, AUDIT_DOMAIN, from->domain, filter);
    choose_text(call, AUDIT_CALLER, from->caller_id, filter);
    choose_text(call, AUDIT_CALLER_KIND, audit_view_caller_name(from->caller_kind), filter);
    return true;
}

/* The token goes on before a record's number. */
static bool choose_page(struct nimi_call *call,
                        const struct nimi_list_audit_events_request *from,
                        struct listing *listing, struct fault *fault) {
    char numbers[96];
    snprintf(numbers, sizeof(numbers), "%d %d %lld %lld", from->reason_code, from->caller_kind,
             (long long)listing->query.filter.from_ms, (long long)listing->query.filter.to_ms);
    const struct str filter[] = {
        call->row->path,       listing->query.filter.texts[AUDIT_WORKSPACE],
        from->subject_user_id, from->domain,
        from->caller_id,       str_from(numbers)};
    if (!page_begin(from->page_size, from->page_token, filter, ARRAY_LEN(filter),
                    &listing->page, fault))
        return false;
    listing->wanted = listing->page.size;
    struct str cursor = listing->page.cursor;
    if (cursor.len == 0 ||
        (str_to_u64(cursor, &listing->query.cursor) && listing->query.cursor < INT64_MAX))
        return true;
    return fault_set(fault, NIMI_PAGE_TOKEN_INVALID,
                     "this page_token is not of this list; begin again without one");
}

void audit_list_events(struct nimi_call *call, const void *request) {
    struct listing *listing = MEM_NEW(struct listing);
    struct fault fault;
    listing->call = call;
    listing->query.order = AUDIT_NEWEST_FIRST;
    buf_init(&listing->reply, REPLY_MAX_BYTES);
    nimi_work(call, &list_events, listing);
    if (!choose_events(call, request, listing, &fault) ||
        !choose_page(call, request, listing, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    listing->store = audit_store(call);
    if (listing->store) list_read_on(listing);
}
