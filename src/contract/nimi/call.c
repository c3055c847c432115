#include "contract/nimi/call.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "contract/nimi/audit/note.h"
#include "contract/nimi/auth/auth.h"
#include "contract/nimi/bearer.h"
#include "contract/nimi/facts.h"
#include "contract/nimi/fetch.h"
#include "contract/nimi/grant/use.h"
#include "contract/nimi/once.h"
#include "server/exchange_trace.h"
#include "store/store.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>

/* --- the eight interceptors --------------------------------------------------------------- */

/* False: the call is refused with *fault. The metadata can still be read. */
typedef bool intercept_fn(struct nimi_call *call, struct fault *fault);

/* The listener adds the version header (nimi_site), so that refused calls have it too. */
static bool add_version(struct nimi_call *call, struct fault *fault) {
    (void)call, (void)fault;
    return true;
}

static bool is_replica(const struct nimi_call *call) {
    const struct store *store = call->instance->host->engine->store;
    return store && store_is_shared(store);
}

/* Another replica would know nothing of it. */
static bool check_alone(const struct nimi_call *call, struct fault *fault) {
    if (!(call->row->facts & NIMI_ALONE) || !is_replica(call)) return true;
    fault->reason = 0;
    return err_set(&fault->why, ERR_FAILED_PRECONDITION,
                   "this method keeps its state in one process, and store.replica makes this "
                   "one of several; serve it from a daemon without store.replica");
}

/* The protocol gives these refusals no reason code. */
static bool check_lifecycle(struct nimi_call *call, struct fault *fault) {
    enum lifecycle state = nimi_runtime_state(call->instance->runtime);
    if (lifecycle_admits(state, call->row->facts & NIMI_READS)) return check_alone(call, fault);
    fault->reason = 0;
    return err_set(&fault->why, ERR_UNAVAILABLE,
                   state == LIFE_STOPPING ? "runtime is shutting down"
                                          : "runtime is not running");
}

/* Probes and reads of the runtime's state are not counted. A token is renewed, so its subject is
 * counted. */
static bool is_rated(const struct nimi_call *call) {
    return !(call->row->facts & NIMI_READS);
}

static bool refuse_rate(const struct err *why, struct fault *fault) {
    *fault = (struct fault){.reason = NIMI_AI_PROVIDER_RATE_LIMITED, .why = *why};
    return false;
}

static bool note_activity(struct nimi_call *call, struct fault *fault) {
    struct err e;
    list_append(&call->instance->calls, &call->link);
    call->instance->call_count++;
    return !is_rated(call) || rpc_take_address_rate(call->rpc, &e) || refuse_rate(&e, fault);
}

static bool check_protocol(struct nimi_call *call, struct fault *fault) {
    enum envelope_form form = call->row->facts & NIMI_BARE ? ENVELOPE_BARE : ENVELOPE_WHOLE;
    struct str frame = lent_read(rpc_metadata(call->rpc, STR("x-nimi-stream-frame"), NULL));
    call->brief = frame.at && str_equal(frame, STR("terminal"));
    return envelope_read(call->rpc, form, &call->envelope, fault);
}

/* The session of a replica is looked for once it knows of those of others. */
static bool check_caller(struct nimi_call *call, struct fault *fault) {
    grant_use_take(call);
    auth_take_session(call);
    return (is_replica(call) || auth_check_session(call, fault)) && bearer_check(call, fault);
}

static bool check_caller_rate(struct nimi_call *call, struct fault *fault) {
    struct err e;
    return !is_rated(call) || rpc_take_caller_rate(call->rpc, call->subject, &e) ||
           refuse_rate(&e, fault);
}

/* It is entered again after the wait. */
static bool check_rights(struct nimi_call *call, struct fault *fault) {
    if (facts_wait(call)) {
        call->passed--;
        return true;
    }
    return (!is_replica(call) || auth_check_session(call, fault)) &&
           bearer_authorize(call, fault) && grant_use_begin(call, fault) &&
           check_caller_rate(call, fault);
}

/* Hide the key. The ten-step chain still sees that there was one. */
static bool scrub(struct nimi_call *call, struct fault *fault) {
    (void)fault;
    if (call->envelope.provider_api_key.len) call->envelope.provider_api_key = STR("***");
    return true;
}

/* The record is written when the call is over. */
static bool begin_audit(struct nimi_call *call, struct fault *fault) {
    (void)fault;
    call->audited = true;
    return true;
}

static const struct {
    const char *name;
    intercept_fn *enter;
} interceptors[] = {
    {"version", add_version},     {"lifecycle", check_lifecycle}, {"activity", note_activity},
    {"protocol", check_protocol}, {"authn", check_caller},        {"authz", check_rights},
    {"credential-scrub", scrub},  {"audit", begin_audit},
};

const char *nimi_interceptor_name(size_t index) {
    return index < ARRAY_LEN(interceptors) ? interceptors[index].name : NULL;
}

static void write_record(const struct nimi_call *call) {
    if (!call->audited) return;
    audit_note_call(call);
    log_debug("nimi " STR_FMT " app=" STR_FMT " trace=%s status=%s reason=%s ms=%llu",
              STR_ARG(call->row->path), STR_ARG(str_head(call->envelope.app_id, 80)),
              call->trace, err_kinds[call->code].name, reason_get(call->reason)->name,
              (unsigned long long)(loop_now_ms(call->instance->host->loop) - call->opened_ms));
}

/* --- ending ------------------------------------------------------------------------------- */

static void call_wait_no_more(struct nimi_call *call) {
    replies_leave(call->ask);
    call->ask = NULL;
    bearer_leave(call);
    facts_leave(call);
    buf_release(&call->held.message);
}

static void note_end(struct nimi_call *call, enum err_code code, int reason) {
    assert(!call->over);
    call->over = true;
    call->code = code;
    call->reason = reason;
    call_wait_no_more(call);
}

void nimi_reply_again(struct nimi_call *call, struct str reply) {
    note_end(call, ERR_NONE, 0);
    if (call->once) {
        once_made(call->once, reply);
        return;
    }
    rpc_send(call->rpc, reply);
    rpc_end(call->rpc, ERR_NONE, STR_EMPTY);
}

#define SMALL_REPLY_BYTES (64 * KIB)

/* What was only looked at can be asked for again. A reply may wait long for its reader, so those that
 * are large need room below the ceiling. */
static bool reply_has_memory(const struct nimi_call *call, size_t len, struct err *e) {
    bool looks = call->row->facts & (NIMI_READS | NIMI_LOOKS);
    return !looks || len <= SMALL_REPLY_BYTES || mem_check(len, e);
}

void nimi_reply(struct nimi_call *call, const struct pb_message *type, const void *message) {
    struct buf reply;
    struct err e;
    buf_init(&reply, 4 * MIB);
    if (!pb_encode(type, message, &reply)) {
        nimi_refuse_for(call, NIMI_AI_OUTPUT_INVALID,
                        "the reply is longer than a message may be; ask for less");
    } else if (!reply_has_memory(call, reply.len, &e)) {
        nimi_refuse_code(call, NIMI_AI_PROVIDER_RATE_LIMITED, e.code, "%s", e.text);
    } else {
        nimi_reply_again(call, buf_str(&reply));
    }
    buf_done(&reply);
}

void nimi_refuse(struct nimi_call *call, const struct fault *fault) {
    note_end(call, fault->why.code, fault->reason);
    if (call->once) {
        once_failed(call->once, fault);
    } else {
        fault_end(call->rpc, fault, nimi_trace(call));
    }
}

void nimi_refuse_for(struct nimi_call *call, int reason, const char *format, ...) {
    struct fault fault;
    va_list values;
    va_start(values, format);
    fault_set_list(&fault, reason, reason_get(reason)->code, format, values);
    va_end(values);
    nimi_refuse(call, &fault);
}

void nimi_refuse_code(struct nimi_call *call, int reason, enum err_code code,
                      const char *format, ...) {
    struct fault fault;
    va_list values;
    va_start(values, format);
    fault_set_list(&fault, reason, code, format, values);
    va_end(values);
    nimi_refuse(call, &fault);
}

void nimi_cut(struct nimi_call *call, const struct fault *fault) {
    audit_note_refused(call, fault);
    nimi_refuse(call, fault);
    if (call->work && call->work->cancelled) call->work->cancelled(CAUSE_LEFT, call->work_ctx);
}

void nimi_end(struct nimi_call *call, enum err_code code, struct str message) {
    struct fault fault = {.reason = 0};
    if (call->once) {
        assert(code != ERR_NONE);
        err_set(&fault.why, code, STR_FMT, STR_ARG(message));
        nimi_refuse(call, &fault);
        return;
    }
    note_end(call, code, 0);
    rpc_end(call->rpc, code, message);
}

struct str nimi_keep(struct nimi_call *call, struct str text) {
    return call->once ? once_keep(call->once, text) : rpc_keep(call->rpc, text);
}

void nimi_waited(struct nimi_call *call, uint64_t waited_ms) {
    char digits[24];
    struct buf text = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    if (call->once) {
        once_waited(call->once, waited_ms);
        return;
    }
    buf_append_u64(&text, waited_ms);
    rpc_trailer(call->rpc, STR("x-nimi-queue-wait-ms"), buf_str(&text));
}

static bool outlast_stop(struct nimi_call *call) {
    if (!call->work || !call->work->outlasts_stop || call->once) return false;
    rpc_hurry(call->rpc, call->instance->settings->shutdown_ms / 2, NIMI_STOPPING_TEXT);
    return true;
}

/* A call that came during the stop may outlast it as little as earlier ones. */
void nimi_work(struct nimi_call *call, const struct nimi_work *work, void *ctx) {
    call->work = work;
    call->work_ctx = ctx;
    if (!call->once && rpc_is_stopping(call->rpc)) outlast_stop(call);
}

/* --- parts of a stream_wire --------------------------------------------------------------- */

static struct rpc_call *rpc_of_work(void *ctx) {
    return (*(struct nimi_call **)ctx)->rpc;
}

size_t nimi_queued(void *ctx) {
    return rpc_pressure(rpc_of_work(ctx));
}

size_t nimi_nothing_queued(void *ctx) {
    (void)ctx;
    return 0;
}

void nimi_wake_at(size_t low, void *ctx) {
    rpc_wake_at(rpc_of_work(ctx), low);
}

uint64_t nimi_stalled_ms(void *ctx) {
    return rpc_stalled_ms(rpc_of_work(ctx));
}

/* --- the request -------------------------------------------------------------------------- */

void nimi_begin(struct nimi_call *call, const void *request, struct arena *arena) {
    call->arena = arena;
    call->row->begin(call, request);
    call->arena = NULL;
}

static void call_hand_over(struct nimi_call *call, const void *request, struct arena *arena) {
    bool once = call->row->facts & NIMI_ONCE && call->envelope.idempotency_key.len;
    if (call->work) {
        call->work->message(request, call->work_ctx);
    } else if (once) {
        once_begin(call, request, arena);
    } else {
        nimi_begin(call, request, arena);
    }
}

static void take_message(struct nimi_call *call, struct lent message) {
    const struct nimi_row *row = call->row;
    struct fault fault;
    struct err e;
    if (!row->type) {
        row->begin(call, NULL);
        return;
    }
    struct arena *arena = arena_new(9 * lent_read(message).len + MIB);
    void *request = arena_alloc(arena, row->type->size);
    if (!pb_decode(row->type, message, arena, request, &e)) {
        nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID,
                        "the request is not such a message: %s", e.text);
    } else if (!call->work &&
               !(bearer_bind(call, request, &fault) && grant_use_bind(call, request, &fault))) {
        nimi_refuse(call, &fault);
    } else {
        call_hand_over(call, request, arena);
    }
    arena_free(arena);
}

static bool waits(const struct nimi_call *call) {
    return call->token_wait || call->facts_wait;
}

/* No further message comes before the first one was taken. */
static void call_hold(struct nimi_call *call, struct lent message) {
    buf_init(&call->held.message, rpc_method(call->rpc)->request_max_bytes);
    buf_append(&call->held.message, lent_read(message));
    call->held.has_message = true;
}

static void on_message(struct rpc_call *rpc, struct lent message, void *ctx) {
    struct nimi_call *call = ctx;
    (void)rpc;
    if (call->over) return;
    if (waits(call))
        call_hold(call, message);
    else
        take_message(call, message);
}

static void take_end(struct nimi_call *call) {
    if (call->over || call->row->kind != RPC_CLIENT_STREAM) return;
    if (call->work) {
        call->work->half_closed(call->work_ctx);
    } else {
        call->row->begin(call, NULL);
    }
}

static void on_half_closed(struct rpc_call *rpc, void *ctx) {
    struct nimi_call *call = ctx;
    (void)rpc;
    if (waits(call))
        call->held.half_closed = true;
    else
        take_end(call);
}

/* Only uploads are client streams; a chunk that is too large has its own reason code. */
static void on_too_large(struct rpc_call *rpc, const struct err *why, void *ctx) {
    struct nimi_call *call = ctx;
    if (call->over || rpc_method(rpc)->kind != RPC_CLIENT_STREAM) return;
    nimi_refuse_for(call, NIMI_AI_ARTIFACT_UPLOAD_TOO_LARGE,
                    "a chunk has more bytes than a message may: %s; send smaller chunks",
                    why->text);
}

/* --- the call ----------------------------------------------------------------------------- */

/* Keep the host that the caller used, for URLs, if the HTTP listener has no host of its own. */
static void note_host(struct nimi_call *call) {
    const struct nimi_files *files = &call->instance->runtime->files;
    call->host = STR_EMPTY;
    if (!files->port || files->host[0]) return;
    struct str host = fetch_host(exchange_authority(rpc_exchange(call->rpc)));
    if (host.len) call->host = rpc_keep(call->rpc, host);
}

/* Pass the interceptors that are left, until one refuses the call or lets it wait. */
static void call_pass(struct nimi_call *call) {
    struct fault fault = {.reason = 0};
    while (call->passed < ARRAY_LEN(interceptors)) {
        if (!interceptors[call->passed++].enter(call, &fault)) {
            audit_note_refused(call, &fault);
            nimi_refuse(call, &fault);
            return;
        }
        if (waits(call)) return;
    }
}

void nimi_resume(struct nimi_call *call) {
    call_pass(call);
    if (waits(call)) return;
    struct nimi_held held = call->held;
    call->held = (struct nimi_held){.has_message = false};
    if (!call->over && held.has_message) take_message(call, lent_of(buf_str(&held.message)));
    if (held.half_closed) take_end(call);
    buf_done(&held.message);
}

static void *nimi_call_on_open(struct rpc_call *rpc, void *service_ctx) {
    struct nimi_call *call = MEM_NEW(struct nimi_call);
    call->rpc = rpc;
    call->loop = rpc_loop(rpc);
    call->instance = service_ctx;
    call->row = nimi_row_of(call->instance, rpc_method(rpc));
    list_init(&call->link);
    ulid_new(call->trace);
    note_host(call);
    call->peer = rpc_keep(rpc, fetch_host(exchange_peer(rpc_exchange(rpc))));
    call->opened_ms = loop_now_ms(call->loop);
    call->caller_trace = exchange_trace(rpc_exchange(rpc));
    call_pass(call);
    return call;
}

static void nimi_call_on_drained(struct rpc_call *rpc, void *ctx) {
    const struct nimi_call *call = ctx;
    (void)rpc;
    if (call->work && call->work->drained) call->work->drained(call->work_ctx);
}

/* Cut streams and waiting calls at once (K3). Calls that only read have been answered
 * already. */
static void on_stopping(struct rpc_call *rpc, void *ctx) {
    struct nimi_call *call = ctx;
    (void)rpc;
    if (call->over || outlast_stop(call)) return;
    if (call->work && call->work->stopping) call->work->stopping(call->work_ctx);
    if (!call->over) nimi_end(call, ERR_CANCELLED, NIMI_STOPPING_TEXT);
}

static void on_cancelled(struct rpc_call *rpc, enum rpc_cancel why, void *ctx) {
    static const struct {
        enum close_cause cause;
        enum err_code code;
    } causes[] = {
        [RPC_PEER_LEFT] = {CAUSE_LEFT, ERR_CANCELLED},
        [RPC_DEADLINE] = {CAUSE_DEADLINE, ERR_DEADLINE_EXCEEDED},
        [RPC_STALLED] = {CAUSE_STALLED, ERR_RESOURCE_EXHAUSTED},
        [RPC_STOPPED] = {CAUSE_STOPPING, ERR_CANCELLED},
        [RPC_BROKEN] = {CAUSE_LEFT, ERR_INTERNAL},
    };
    struct nimi_call *call = ctx;
    (void)rpc;
    call_wait_no_more(call);
    call->over = true;
    call->code = causes[why].code;
    if (call->work && call->work->cancelled)
        call->work->cancelled(causes[why].cause, call->work_ctx);
}

static void nimi_call_on_closed(void *ctx) {
    struct nimi_call *call = ctx;
    if (call->work && call->work->closed) call->work->closed(call->work_ctx);
    write_record(call);
    if (list_linked(&call->link)) {
        list_remove(&call->link);
        call->instance->call_count--;
    }
    buf_done(&call->held.message);
    free(call->grant);
    free(call->caller_trace);
    free(call);
}

const struct rpc_handler nimi_handler = {
    .open = nimi_call_on_open,
    .message = on_message,
    .half_closed = on_half_closed,
    .too_large = on_too_large,
    .drained = nimi_call_on_drained,
    .stopping = on_stopping,
    .cancelled = on_cancelled,
    .closed = nimi_call_on_closed,
};
