/* audit: the newest records of the audit log that the caller may see, and whether the log is as it
 * was written. */
#include "base/log.h"
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "store/audit_look.h"
#include "store/audit_scan.h"

#include <stdlib.h>

#define LIST_USUAL 100
#define BODY_MAX_BYTES (16 * MIB)
#define VERDICT_MAX_BYTES (256 * KIB)

static void refuse_unread(struct route_call *call, const struct err *failed) {
    log_often(LOG_WARNING, "audit: %s", failed->text);
    route_refuse(call, 503, STR("STORE_UNAVAILABLE"),
                 "the audit log cannot be read now; try again later");
}

/* --- GET /weir/v1/audit ------------------------------------------------------------------- */

struct audit_list {
    struct route_call *call;
    struct audit_ask *ask;
};

static void audit_over(void *ctx) {
    struct audit_list *list = ctx;
    audit_forget(list->ask);
    free(list);
}

static const struct route_watch watch = {.left = audit_over, .closed = audit_over};

/* A page ends after as much as the store looks at in one go, so it may be short, even empty, and
 * still have a `next`. */
static void write_page(const struct audit_page *page, struct json_writer *json) {
    struct buf record;
    buf_init(&record, 64 * KIB);
    json_member_array(json, "records");
    for (size_t i = 0; i < page->count; i++) {
        buf_clear(&record);
        audit_record_json(&page->records[i], &record);
        json_write_raw(json, buf_str(&record));
    }
    json_close(json);
    if (!page->scanned.end) json_member_u64(json, "next", page->scanned.cursor);
    json_member_bool(json, "more", !page->scanned.end);
    buf_done(&record);
}

static void weir_audit_on_page(const struct audit_page *page, const struct err *failed,
                               void *ctx) {
    struct audit_list *list = ctx;
    struct route_json reply;
    list->ask = NULL;
    if (failed) {
        refuse_unread(list->call, failed);
        return;
    }
    write_page(page, route_json_object(&reply, BODY_MAX_BYTES));
    route_json_reply(&reply, list->call, 200);
}

static bool take_filter(struct api_request *request, struct str name, enum audit_text text,
                        struct audit_filter *filter) {
    struct str value;
    if (!api_request_value(request, name, &value)) return false;
    if (value.len) filter->texts[text] = value;
    return true;
}

static bool take_query(struct api_request *request, struct audit_query *query) {
    struct audit_filter *filter = &query->filter;
    int64_t before;
    *query = (struct audit_query){.order = AUDIT_NEWEST_FIRST};
    if (!api_request_whose(request, &filter->texts[AUDIT_WORKSPACE],
                           &filter->texts[AUDIT_USER]) ||
        !take_filter(request, STR("domain"), AUDIT_DOMAIN, filter) ||
        !take_filter(request, STR("operation"), AUDIT_OPERATION, filter) ||
        !api_request_limit(request, LIST_USUAL, AUDIT_PAGE_MAX, &query->limit) ||
        !api_request_number(request, STR("before"), &before))
        return false;
    if (before < 0 || before == INT64_MAX)
        return api_request_refuse(request, 422, "before must be the `next` of a page");
    query->cursor = (uint64_t)before;
    return true;
}

void api_list_audit(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "user",   "domain", "operation",
                                        "limit",     "before", NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    struct audit_query query;
    if (!api_request_begin(&request, call, instance, names)) return;
    if (take_query(&request, &query)) {
        struct audit_list *list = MEM_NEW(struct audit_list);
        list->call = call;
        route_watch(call, &watch, list);
        list->ask =
            audit_page_start(instance->store, instance->loop, &query, weir_audit_on_page, list);
    }
    arena_free(request.arena);
}

/* --- GET /weir/v1/audit/chain ------------------------------------------------------------- */

struct chain_call {
    struct route_call *call;
    struct audit_look_ask *ask;
};

static void chain_over(void *ctx) {
    struct chain_call *chain = ctx;
    audit_look_forget(chain->ask);
    free(chain);
}

static const struct route_watch chain_watch = {.left = chain_over, .closed = chain_over};

static void write_verdict(struct json_writer *json, const struct audit_looked *looked) {
    const struct audit_verdict *verdict = &looked->verdict;
    char hex[2 * AUDIT_HASH_BYTES];
    struct str hash = {(const char *)verdict->head.hash, AUDIT_HASH_BYTES};
    if (looked->looked) {
        json_member_bool(json, "verified", verdict->faults == 0);
    } else {
        json_member_null(json, "verified"); /* too long to look at here */
    }
    json_member_u64(json, "first", verdict->first);
    json_member_u64(json, "last", verdict->last);
    json_member_u64(json, "bytes", verdict->bytes);
    json_member_str(json, "hash", looked->looked ? audit_hex(hash, hex) : STR_EMPTY);
    json_member_u64(json, "fault_count", verdict->faults);
    json_member_array(json, "faults");
    for (size_t i = 0; i < looked->fault_count; i++) {
        json_open_object(json);
        json_member_u64(json, "seq", looked->faults[i].seq);
        json_member_str(json, "text", str_from(looked->faults[i].text));
        json_close(json);
    }
    json_close(json);
}

static void on_looked(const struct audit_looked *looked, const struct err *failed, void *ctx) {
    struct chain_call *chain = ctx;
    struct route_json reply;
    chain->ask = NULL;
    if (failed) {
        refuse_unread(chain->call, failed);
        return;
    }
    write_verdict(route_json_object(&reply, VERDICT_MAX_BYTES), looked);
    route_json_reply(&reply, chain->call, 200);
}

void api_get_audit_chain(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_request request;
    if (!api_view_begin(&request, call, instance)) return;
    struct chain_call *chain = MEM_NEW(struct chain_call);
    chain->call = call;
    route_watch(call, &chain_watch, chain);
    chain->ask = audit_look_start(instance->store, instance->loop, on_looked, chain);
    arena_free(request.arena);
}
