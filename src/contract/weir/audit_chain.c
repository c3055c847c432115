/* GET /weir/v1/audit/chain: whether the audit log is as it was written. */
#include "base/log.h"
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "store/audit_look.h"

#include <stdlib.h>

#define BODY_MAX_BYTES (256 * KIB)

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
        log_often(LOG_WARNING, "audit: %s", failed->text);
        api_refuse(chain->call, 503, STR("STORE_UNAVAILABLE"),
                   "the audit log cannot be read now; try again later");
        return;
    }
    write_verdict(route_json_object(&reply, BODY_MAX_BYTES), looked);
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
