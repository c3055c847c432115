/* status: which weir this is, and what it does now. */
#include "base/version.h"
#include "contract/weir/inner.h"
#include "record/run_state.h"
#include "wire/json.h"

#include <unistd.h>

struct count {
    const struct api_caller *caller;
    uint64_t runs[RUN_STATE_COUNT];
};

/* Only what the caller may see, so that no workspace learns how busy another one is. */
static void status_count(const struct live *live, void *ctx) {
    struct count *count = ctx;
    int state = atomic_load(&live->state);
    if (state >= 0 && state < RUN_STATE_COUNT &&
        api_may_see(count->caller, live->workspace, live->user))
        count->runs[state]++;
}

void api_get_status(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_request request;
    struct route_json reply;
    if (!api_request_begin(&request, call, instance, NULL)) return;
    struct count count = {.caller = &request.caller};
    directory_each(instance->directory, status_count, &count);
    struct json_writer *json = route_json_object(&reply, 4 * KIB);
    json_member_str(json, "name", STR("weir"));
    json_member_str(json, "version", STR(WEIR_VERSION));
    json_member_i64(json, "pid", getpid());
    json_member_str(json, "state", instance->stopping ? STR("stopping") : STR("serving"));
    json_member_object(json, "runs");
    for (int state = RUN_QUEUED; state <= RUN_WAITING; state++) {
        json_key(json, states_name(run_states, (enum run_state)state));
        json_write_u64(json, count.runs[state]);
    }
    json_close(json);
    route_json_reply(&reply, call, 200);
    arena_free(request.arena);
}
