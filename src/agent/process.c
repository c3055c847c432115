/* The kind of provider that process agents are, and one call of it. */
#include "agent/process.h"

#include "agent/process_inner.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* --- calls -------------------------------------------------------------------------------- */

static void call_free(struct provider_call *call) {
    list_remove(&call->link);
    task_cancel(&call->task);
    gate_done(&call->gate);
    buf_done(&call->model);
    free(call);
}

/* After its end has been told, or its cancel, the last callback frees it. */
static bool leave(struct provider_call *call) {
    bool alive = !call->dropped;
    if (--call->inside == 0 && (call->dropped || call->gate.over)) call_free(call);
    return alive;
}

bool process_call_give(struct provider_call *call, const struct reply_event *event) {
    call->inside++;
    gate_take(event, &call->gate);
    return leave(call);
}

bool process_call_release(struct provider_call *call) {
    call->inside++;
    gate_release(&call->gate);
    return leave(call);
}

/* The listener may ask again from within: the process is no longer this call's. */
void process_call_end(struct provider_call *call, const struct reply_event *event) {
    call->process = NULL;
    (void)process_call_give(call, event);
}

static void go_on(void *ctx) {
    struct provider_call *call = ctx;
    if (call->process) {
        process_read(call->process);
    } else {
        (void)process_call_release(call);
    }
}

static struct provider_call *start(struct provider *provider, struct loop *loop,
                                   const struct provider_request *request,
                                   reply_event_fn *on_reply, void *ctx) {
    struct process_provider *own = CONTAINER_OF(provider, struct process_provider, base);
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->provider = own;
    call->place = process_place_of(own->pool, loop);
    call->request = request;
    call->usage = USAGE_UNKNOWN;
    buf_init(&call->model, KIB);
    gate_init(&call->gate, on_reply, ctx);
    task_init(&call->task, go_on, call);
    list_append(&call->place->waiting, &call->link);
    process_place_serve(call->place);
    return call;
}

static void pause_call(struct provider_call *call) {
    call->gate.closed = true;
}

static void resume_call(struct provider_call *call) {
    call->gate.closed = false;
    if (!list_linked(&call->link)) loop_defer(call->place->loop, &call->task);
}

static void cancel(struct provider_call *call) {
    struct process *process = call->process;
    call->process = NULL;
    call->dropped = call->gate.shut = true;
    if (!call->inside) call_free(call);
    if (!process) return;
    process->call = NULL;
    process_drop(process);
}

/* --- the provider ------------------------------------------------------------------------- */

static void free_provider(struct provider *provider) {
    struct process_provider *own = CONTAINER_OF(provider, struct process_provider, base);
    free(own->args);
    free(own->environment);
    buf_done(&own->texts);
    free(own);
}

static const struct provider_kind kind = {.name = "process",
                                          .start = start,
                                          .pause = pause_call,
                                          .resume = resume_call,
                                          .cancel = cancel,
                                          .free = free_provider};

static size_t count_of(const char *const *list) {
    size_t count = 0;
    while (list[count]) count++;
    return count;
}

static void keep(struct buf *texts, const char *text) {
    buf_append(texts, str_from(text));
    buf_append_byte(texts, '\0');
}

static const char **point(const char **at, size_t count) {
    const char **list = mem_zero(count + 1, sizeof(char *));
    for (size_t i = 0; i < count; i++) {
        list[i] = *at;
        *at += strlen(*at) + 1;
    }
    return list;
}

struct provider *process_provider_new(const struct process_options *options) {
    struct process_provider *own = MEM_NEW(struct process_provider);
    size_t args = count_of(options->args), variables = count_of(options->environment);
    buf_init(&own->texts, MIB);
    keep(&own->texts, options->path);
    for (size_t i = 0; i < args; i++) keep(&own->texts, options->args[i]);
    for (size_t i = 0; i < variables; i++) keep(&own->texts, options->environment[i]);
    size_t key_len = own->texts.len;
    buf_append(&own->texts, options->name);
    const char *at = own->texts.at;
    own->key = str_of(own->texts.at, key_len);
    own->path = at;
    at += strlen(at) + 1;
    own->args = point(&at, args);
    own->environment = point(&at, variables);
    own->name = str_skip(buf_str(&own->texts), key_len);
    own->base = (struct provider){&kind, own->name};
    own->pool = options->pool;
    own->processes_max = options->processes_max;
    own->stall_ms = options->stall_ms;
    return &own->base;
}
