#include "base/mem.h"
#include "contract/nimi/agent/agent.h"
#include "contract/nimi/agent/change.h"
#include "contract/nimi/agent/life.h"
#include "contract/nimi/kept_call.h"
#include "contract/nimi/page.h"
#include "proto/nimi.pb.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define REPLY_MAX_BYTES (2 * MIB) /* of agents in one list; one always fits */
#define ARENA_BYTES (32 * MIB)
#define REASON_MAX_BYTES 1024

/* A call while the store has it. */
struct agent_work {
    struct kept_call kept;
    struct page page; /* of a list */
};

static struct agent_work *work_new(struct nimi_call *call,
                                   const struct nimi_agent_request_context *context,
                                   struct str agent) {
    struct agent_work *work = MEM_NEW(struct agent_work);
    if (kept_call_begin(&work->kept, call, EVENT_LOG_AGENT,
                        context ? context->app_id : STR_EMPTY,
                        context ? context->subject_user_id : STR_EMPTY, agent))
        return work;
    free(work);
    return NULL;
}

static void work_end(struct agent_work *work) {
    kept_call_end(&work->kept);
    free(work);
}

static void work_refuse(struct agent_work *work, const struct fault *fault) {
    kept_call_refuse(&work->kept, fault);
    free(work);
}

static struct agent_where where_of(const struct agent_work *work) {
    return (struct agent_where){work->kept.log.owner, work->kept.log.name};
}

/* Nothing but our own code writes these bytes. */
static void agent_of(const struct agent_item *item, struct arena *arena,
                     struct nimi_initialize_agent_response *ret) {
    struct err e;
    if (!pb_decode_view(&nimi_initialize_agent_response_table, item->body, arena, ret, &e))
        *ret = (struct nimi_initialize_agent_response){.agent = NULL};
}

/* --- one agent ---------------------------------------------------------------------------- */

/* How each call answers with an agent. */
typedef void answer_fn(struct nimi_call *call,
                       const struct nimi_initialize_agent_response *agent);

static void answer_with(struct agent_work *work, const struct agents_answer *answer,
                        const struct err *failed, answer_fn *say) {
    struct nimi_call *call =
        kept_call_answered(&work->kept, failed, !failed && answer->changed);
    if (call) {
        struct arena *arena = arena_new(ARENA_BYTES);
        struct nimi_initialize_agent_response agent;
        agent_of(&answer->items[0], arena, &agent);
        say(call, &agent);
        arena_free(arena);
    }
    work_end(work);
}

static void say_initialized(struct nimi_call *call,
                            const struct nimi_initialize_agent_response *agent) {
    nimi_reply(call, &nimi_initialize_agent_response_table, agent);
}

static void say_terminated(struct nimi_call *call,
                           const struct nimi_initialize_agent_response *agent) {
    static const struct nimi_ack done = {.ok = true, .reason_code = NIMI_ACTION_EXECUTED};
    (void)agent;
    nimi_reply(call, &nimi_terminate_agent_response_table,
               &(struct nimi_terminate_agent_response){.ack = &done});
}

static void say_agent(struct nimi_call *call,
                      const struct nimi_initialize_agent_response *agent) {
    nimi_reply(call, &nimi_get_agent_response_table,
               &(struct nimi_get_agent_response){.agent = agent->agent});
}

static void say_state(struct nimi_call *call,
                      const struct nimi_initialize_agent_response *agent) {
    nimi_reply(call, &nimi_get_agent_state_response_table,
               &(struct nimi_get_agent_state_response){.state = agent->state});
}

static void say_updated(struct nimi_call *call,
                        const struct nimi_initialize_agent_response *agent) {
    nimi_reply(call, &nimi_update_agent_state_response_table,
               &(struct nimi_update_agent_state_response){.state = agent->state});
}

#define ANSWERED(name, say)                                                                    \
    static void name(const struct agents_answer *answer, const struct err *failed,             \
                     void *ctx) {                                                              \
        answer_with(ctx, answer, failed, say);                                                 \
    }

ANSWERED(on_initialized, say_initialized)
ANSWERED(on_terminated, say_terminated)
ANSWERED(on_agent, say_agent)
ANSWERED(on_state, say_state)
ANSWERED(on_updated, say_updated)

/* A call about one agent. NULL: it was refused. */
static struct agent_work *work_of_one(struct nimi_call *call,
                                      const struct nimi_agent_request_context *context,
                                      struct str agent) {
    struct agent_work *work = work_new(call, context, agent);
    struct fault fault;
    if (!work || owner_id("agent_id", agent, &fault)) return work;
    work_refuse(work, &fault);
    return NULL;
}

static void start_change(struct agent_work *work, const struct change_kind *kind,
                         const void *request, agents_done_fn *done) {
    const struct agent_where where = where_of(work);
    const struct agents_change change = change_new(kind, request);
    agents_change_start(work->kept.store, work->kept.call->loop, &where, &change, done, work);
}

void agent_initialize(struct nimi_call *call, const void *request) {
    const struct nimi_initialize_agent_request *from = request;
    struct agent_work *work = work_of_one(call, from->context, from->agent_id);
    struct fault fault;
    if (!work) return;
    if (change_check_initialize(from, &fault)) {
        start_change(work, &change_initialize, from, on_initialized);
    } else {
        work_refuse(work, &fault);
    }
}

void agent_terminate(struct nimi_call *call, const void *request) {
    const struct nimi_terminate_agent_request *from = request;
    struct agent_work *work = work_of_one(call, from->context, from->agent_id);
    struct fault fault;
    if (!work) return;
    if (from->reason.len <= REASON_MAX_BYTES) {
        start_change(work, &change_terminate, from, on_terminated);
    } else {
        fault_set(&fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
                  "reason has %zu bytes, at most %d are allowed", from->reason.len,
                  REASON_MAX_BYTES);
        work_refuse(work, &fault);
    }
}

void agent_update_state(struct nimi_call *call, const void *request) {
    const struct nimi_update_agent_state_request *from = request;
    struct agent_work *work = work_of_one(call, from->context, from->agent_id);
    struct fault fault;
    if (!work) return;
    if (change_check_update(from, &fault)) {
        start_change(work, &change_update, from, on_updated);
    } else {
        work_refuse(work, &fault);
    }
}

static void agents_look_up(struct nimi_call *call,
                           const struct nimi_agent_request_context *context, struct str agent,
                           agents_done_fn *done) {
    struct agent_work *work = work_of_one(call, context, agent);
    if (!work) return;
    const struct agent_where where = where_of(work);
    agents_get_start(work->kept.store, call->loop, &where, done, work);
}

void agent_get(struct nimi_call *call, const void *request) {
    const struct nimi_get_agent_request *from = request;
    agents_look_up(call, from->context, from->agent_id, on_agent);
}

void agent_get_state(struct nimi_call *call, const void *request) {
    const struct nimi_get_agent_state_request *from = request;
    agents_look_up(call, from->context, from->agent_id, on_state);
}

/* --- all of them -------------------------------------------------------------------------- */

/* A page goes on after "MADE NAME" of its last agent. */
static void put_place(const struct page *page, const struct agent_item *last, struct buf *out) {
    struct buf text;
    buf_init(&text, PAGE_TOKEN_MAX_BYTES);
    buf_printf(&text, "%" PRId64 " " STR_FMT, last->made_us, STR_ARG(last->name));
    page_next(page, buf_str(&text), out);
    buf_done(&text);
}

static bool agents_read_place(const struct page *page, struct agents_query *ret,
                              struct fault *fault) {
    struct str at = str_split(page->cursor, ' ', &ret->after_name);
    if (page->cursor.len == 0 || (str_to_i64(at, &ret->after_us) && ret->after_name.len))
        return true;
    return fault_set(fault, NIMI_PAGE_TOKEN_INVALID,
                     "this page_token is not of this list; begin again without one");
}

static void on_agents_listed(const struct agents_answer *answer, const struct err *failed,
                             void *ctx) {
    struct agent_work *work = ctx;
    struct nimi_call *call = kept_call_answered(&work->kept, failed, false);
    if (call) {
        struct nimi_agent_record agents[AGENTS_ANSWER_MAX];
        struct arena *arena = arena_new(ARENA_BYTES);
        struct buf next;
        size_t count = 0;
        buf_init(&next, 2 * PAGE_TOKEN_MAX_BYTES);
        for (size_t i = 0; i < answer->count; i++) {
            struct nimi_initialize_agent_response agent;
            agent_of(&answer->items[i], arena, &agent);
            if (agent.agent) agents[count++] = *agent.agent;
        }
        if (answer->more) put_place(&work->page, &answer->items[answer->count - 1], &next);
        nimi_reply(call, &nimi_list_agents_response_table,
                   &(struct nimi_list_agents_response){.agents = agents,
                                                       .agents_count = count,
                                                       .next_page_token = buf_str(&next)});
        buf_done(&next);
        arena_free(arena);
    }
    work_end(work);
}

static bool choose_agents(struct agent_work *work, const struct nimi_list_agents_request *from,
                          struct agents_query *ret, struct fault *fault) {
    char numbers[32];
    if (from->lifecycle_filter < 0 || from->lifecycle_filter >= LIFE_STATUS_COUNT)
        return fault_set(fault, NIMI_PROTOCOL_ENVELOPE_INVALID, "there is no status %d",
                         from->lifecycle_filter);
    ret->status = from->lifecycle_filter;
    ret->autonomous = from->has_autonomy_enabled ? from->autonomy_enabled : -1;
    ret->max_bytes = REPLY_MAX_BYTES;
    snprintf(numbers, sizeof(numbers), "%d %d", ret->status, ret->autonomous);
    const struct str filter[] = {work->kept.call->row->path, work->kept.log.owner.app,
                                 work->kept.log.owner.subject, str_from(numbers)};
    if (!owner_size("page_size", from->page_size, fault) ||
        !page_begin(from->page_size, from->page_token, filter, ARRAY_LEN(filter), &work->page,
                    fault))
        return false;
    ret->limit = work->page.size;
    return agents_read_place(&work->page, ret, fault);
}

void agent_list(struct nimi_call *call, const void *request) {
    const struct nimi_list_agents_request *from = request;
    struct agent_work *work = work_new(call, from->context, STR_EMPTY);
    struct agents_query query = {.after_name = STR_EMPTY};
    struct fault fault;
    if (!work) return;
    if (!choose_agents(work, from, &query, &fault)) {
        work_refuse(work, &fault);
        return;
    }
    agents_list_start(work->kept.store, call->loop, &work->kept.log.owner, &query,
                      on_agents_listed, work);
}
