/* The provider kind of process agents, and one call of it. */
#include "agent/process.h"

#include "agent/process_inner.h"
#include "base/mem.h"

#include <stdlib.h>

/* --- calls -------------------------------------------------------------------------------- */

static void process_call_free(struct answer *answer) {
    struct provider_call *call = CONTAINER_OF(answer, struct provider_call, answer);
    list_remove(&call->link);
    task_cancel(&call->task);
    answer_done(answer);
    free(call);
}

/* The listener may make the next call from inside its callback, so the process is released
 * first. */
void process_call_end(struct provider_call *call, const struct reply_event *event) {
    call->process = NULL;
    (void)answer_give(&call->answer, event);
}

static void process_go_on(void *ctx) {
    struct provider_call *call = ctx;
    if (call->process) {
        process_read(call->process);
    } else {
        (void)answer_release(&call->answer);
    }
}

static struct provider_call *agent_process_start(struct provider *provider, struct loop *loop,
                                                 const struct provider_request *request,
                                                 reply_event_fn *on_reply, void *ctx) {
    struct process_provider *own = CONTAINER_OF(provider, struct process_provider, base);
    struct provider_call *call = MEM_NEW(struct provider_call);
    call->provider = own;
    call->place = process_place_of(own->pool, loop);
    call->request = request;
    answer_init(&call->answer, on_reply, ctx, process_call_free);
    task_init(&call->task, process_go_on, call);
    list_append(&call->place->waiting, &call->link);
    process_place_serve(call->place);
    return call;
}

static void process_pause_call(struct provider_call *call) {
    call->answer.gate.closed = true;
}

static void resume_call(struct provider_call *call) {
    call->answer.gate.closed = false;
    if (!list_linked(&call->link)) loop_defer(call->place->loop, &call->task);
}

static void process_cancel(struct provider_call *call) {
    struct process *process = call->process;
    call->process = NULL;
    answer_drop(&call->answer);
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
                                          .start = agent_process_start,
                                          .pause = process_pause_call,
                                          .resume = resume_call,
                                          .cancel = process_cancel,
                                          .free = free_provider};

static size_t process_count_of(const char *const *list) {
    size_t count = 0;
    while (list[count]) count++;
    return count;
}

static void process_keep(struct buf *texts, const char *text) {
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

static struct str path_variable(const char *const *environment) {
    for (; *environment; environment++) {
        struct str variable = str_from(*environment);
        if (str_starts(variable, STR("PATH="))) return str_skip(variable, 5);
    }
    return STR_EMPTY;
}

static struct provider *process_provider_new(const struct agent_options *options,
                                             const char *path) {
    struct process_provider *own = MEM_NEW(struct process_provider);
    size_t args = process_count_of(options->command),
           variables = process_count_of(options->environment);
    buf_init(&own->texts, MIB);
    process_keep(&own->texts, path);
    for (size_t i = 0; i < args; i++) process_keep(&own->texts, options->command[i]);
    for (size_t i = 0; i < variables; i++) process_keep(&own->texts, options->environment[i]);
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
    own->pool = options->processes;
    own->processes_max = options->processes_max;
    own->stall_ms = options->silence_ms;
    return &own->base;
}

static bool process_make(const struct agent_options *options, struct provider **ret,
                         struct err *e) {
    struct buf path;
    struct str program = str_from(options->command[0]);
    buf_init(&path, 64 * KIB);
    bool found = child_find(program, path_variable(options->environment), &path);
    if (found) *ret = process_provider_new(options, path.at);
    buf_done(&path);
    return found || err_set(e, ERR_NOT_FOUND, "there is no program '" STR_FMT "'",
                            STR_ARG(str_head(program, 200)));
}

const struct agent_kind process_agent = {"process", "command", process_make};
