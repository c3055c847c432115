#include "contract/nimi/once.h"

#include "contract/nimi/audit/note.h"

#include "base/clock.h"
#include "base/mem.h"
#include "wire/digest.h"

#include <assert.h>
#include <stdlib.h>

#define KEPT_MAX_BYTES (4 * MIB) /* for copies of one call's ids and names */

/* A shared call. */
struct once {
    struct nimi_call call;
    struct list link; /* in instance->shared */
    struct arena *arena;
    struct reply_making *making; /* NULL: it has ended */
    bool granted;
    uint64_t waited_ms;
    struct task over;
};

/* --- the shared call ---------------------------------------------------------------------- */

/* Frees the call after its end, when none of its functions is on the stack. */
static void on_over(void *ctx) {
    struct once *once = ctx;
    if (once->call.work && once->call.work->closed)
        once->call.work->closed(once->call.work_ctx);
    audit_note_call(&once->call);
    list_remove(&once->link);
    arena_free(once->arena);
    free(once);
}

static void once_end(struct once *once, const struct write_outcome *outcome) {
    replies_made(once->making, outcome, clock_mono_ms());
    once->making = NULL;
    loop_defer(once->call.loop, &once->over);
}

void once_made(struct once *once, struct str reply) {
    once_end(once, &(struct write_outcome){
                       .reply = reply, .granted = once->granted, .waited_ms = once->waited_ms});
}

void once_failed(struct once *once, const struct fault *fault) {
    once_end(once, &(struct write_outcome){.fault = fault,
                                           .reply = STR_EMPTY,
                                           .granted = once->granted,
                                           .waited_ms = once->waited_ms});
}

/* No call waits any more. The work is cancelled as if its caller had left. */
static void on_left(void *ctx) {
    struct once *once = ctx;
    struct nimi_call *call = &once->call;
    struct fault fault = {.reason = 0};
    if (call->over) return;
    call->over = true;
    if (call->work && call->work->cancelled) call->work->cancelled(CAUSE_LEFT, call->work_ctx);
    err_set(&fault.why, ERR_CANCELLED, "no caller waits for it any more");
    once_failed(once, &fault);
}

void once_stop_all(struct nimi_instance *instance) {
    LIST_EACH(&instance->shared, link) {
        struct nimi_call *call = &CONTAINER_OF(link, struct once, link)->call;
        if (!call->over && call->work && call->work->stopping)
            call->work->stopping(call->work_ctx);
        if (!call->over) nimi_end(call, ERR_CANCELLED, NIMI_STOPPING_TEXT);
    }
}

struct str once_keep(struct once *once, struct str text) {
    struct str kept = STR_EMPTY;
    bool fits = arena_str(once->arena, text, &kept);
    assert(fits); /* each is part of a bounded request */
    (void)fits;
    return kept;
}

void once_waited(struct once *once, uint64_t waited_ms) {
    once->granted = true;
    once->waited_ms = waited_ms;
}

/* Copy the members that later steps of the chain read. The others have been used already. */
static void copy_envelope(struct once *once, const struct envelope *from) {
    struct envelope *to = &once->call.envelope;
    to->app_id = once_keep(once, from->app_id);
    to->participant_id = once_keep(once, from->participant_id);
    to->idempotency_key = once_keep(once, from->idempotency_key);
    to->caller_kind = once_keep(once, from->caller_kind);
    to->caller_id = once_keep(once, from->caller_id);
    to->surface_id = once_keep(once, from->surface_id);
    to->key_source = once_keep(once, from->key_source);
    to->provider_type = once_keep(once, from->provider_type);
    to->provider_endpoint = once_keep(once, from->provider_endpoint);
    to->provider_api_key = once_keep(once, from->provider_api_key);
}

/* Create the shared call that makes the write for `first` and later callers. */
static struct nimi_call *share(struct nimi_call *first) {
    struct once *once = MEM_NEW(struct once);
    struct nimi_call *call = &once->call;
    once->arena = arena_new(KEPT_MAX_BYTES);
    task_init(&once->over, on_over, once);
    *call = (struct nimi_call){.once = once,
                               .loop = first->loop,
                               .instance = first->instance,
                               .row = first->row,
                               .brief = first->brief,
                               .audited = true,
                               .opened_ms = first->opened_ms};
    memcpy(call->trace, first->trace, sizeof(call->trace));
    list_init(&call->link);
    copy_envelope(once, &first->envelope);
    call->subject = once_keep(once, first->subject);
    call->scope = once_keep(once, first->scope);
    call->session = once_keep(once, first->session);
    call->peer = once_keep(once, first->peer);
    once->making = reply_making_of(first->ask, on_left, once);
    list_append(&first->instance->shared, &once->link);
    return call;
}

/* --- the calls that wait ------------------------------------------------------------------ */

static void on_outcome(const struct write_outcome *outcome, void *ctx) {
    struct nimi_call *call = ctx;
    call->ask = NULL;
    if (outcome->granted) nimi_waited(call, outcome->waited_ms);
    if (outcome->fault) {
        nimi_refuse(call, outcome->fault);
    } else {
        nimi_reply_again(call, outcome->reply);
    }
}

static void refuse_conflict(struct nimi_call *call) {
    struct fault fault;
    fault_set(&fault, NIMI_PROTOCOL_ENVELOPE_INVALID,
              "x-nimi-idempotency-key was used for another request; send a new key");
    nimi_refuse(call, &fault);
}

static void digest_request(const struct nimi_call *call, const void *request, uint8_t *ret) {
    struct buf bytes;
    buf_init(&bytes, 64 * MIB);
    pb_encode(call->row->type, request, &bytes);
    digest_text(buf_str(&bytes), ret);
    buf_done(&bytes);
}

struct str once_key(struct nimi_call *call) {
    const struct envelope *envelope = &call->envelope;
    struct buf key;
    if (envelope->idempotency_key.len == 0) return STR_EMPTY;
    buf_init(&key, 8 * ENVELOPE_VALUE_MAX_BYTES);
    /* Lengths are included, so that "ab", "c" differs from "a", "bc". */
    buf_printf(&key, STR_FMT " %zu " STR_FMT " %zu " STR_FMT " %zu " STR_FMT " " STR_FMT,
               STR_ARG(call->row->path), envelope->app_id.len, STR_ARG(envelope->app_id),
               envelope->participant_id.len, STR_ARG(envelope->participant_id),
               call->subject.len, STR_ARG(call->subject), STR_ARG(envelope->idempotency_key));
    struct str kept = nimi_keep(call, buf_str(&key));
    buf_done(&key);
    return kept;
}

void once_begin(struct nimi_call *call, const void *request, struct arena *arena) {
    uint8_t print[REPLIES_DIGEST_BYTES];
    struct buf stored;
    struct replies *replies = nimi_runtime_replies(call->instance->runtime);
    buf_init(&stored, REPLIES_MAX_BYTES);
    digest_request(call, request, print);
    call->audited = false; /* the shared call is */
    struct reply_question question = {.key = once_key(call),
                                      .digest = print,
                                      .now_ms = clock_mono_ms(),
                                      .loop = call->loop,
                                      .on_outcome = on_outcome,
                                      .ctx = call};
    switch (replies_ask(replies, &question, &stored, &call->ask)) {
    case REPLY_NEW: call->row->begin(share(call), request, arena); break;
    case REPLY_WAITS: break;
    case REPLY_STORED: nimi_reply_again(call, buf_str(&stored)); break;
    case REPLY_CONFLICT: refuse_conflict(call); break;
    }
    buf_done(&stored);
}
