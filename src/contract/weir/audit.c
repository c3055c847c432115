/* audit: the newest records of the audit log that the caller may see. */
#include "base/log.h"
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "store/audit_scan.h"

#include <inttypes.h>
#include <stdlib.h>

#define LIST_USUAL 100
#define BODY_MAX_BYTES (16 * MIB)

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

static void on_page(const struct audit_page *page, const struct err *failed, void *ctx) {
    struct audit_list *list = ctx;
    struct route_json reply;
    list->ask = NULL;
    if (failed) {
        log_often(LOG_WARNING, "audit: %s", failed->text);
        api_refuse(list->call, 503, STR("STORE_UNAVAILABLE"),
                   "the audit log cannot be read now; try again later");
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
        list->ask = audit_page_start(instance->store, instance->loop, &query, on_page, list);
    }
    arena_free(request.arena);
}
