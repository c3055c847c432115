#include "contract/nimi/once.h"

#include "contract/nimi/audit/note.h"
#include "contract/nimi/shared_once.h"

#include "base/clock.h"
#include "base/mem.h"
#include "wire/digest.h"

#include <assert.h>
#include <stdlib.h>

#define KEPT_EXTRA_BYTES (128 * KIB) /* for copies of the envelope's texts, of 4 KiB at most */

/* A shared call. */
struct once {
    struct nimi_call call;
    struct list link; /* in instance->shared */
    struct arena *arena;
    struct reply_write *pending; /* NULL: it has ended */
    bool granted;
    uint64_t waited_ms;
    struct task over;
    /* Among replicas. */
    struct shared_once *claim; /* NULL: not shared, or ended */
    struct buf request;        /* encoded, until the claim is answered */
    struct buf made;           /* the reply that is being kept */
    bool replayed;             /* another replica made it */
};

/* --- the shared call ---------------------------------------------------------------------- */

/* Frees the call after its end, when none of its functions is on the stack. */
static void once_on_over(void *ctx) {
    struct once *once = ctx;
    if (once->call.work && once->call.work->closed)
        once->call.work->closed(once->call.work_ctx);
    if (!once->replayed) audit_note_call(&once->call);
    buf_done(&once->request);
    buf_done(&once->made);
    list_remove(&once->link);
    arena_free(once->arena);
    free(once);
}

static void once_answer(struct once *once, struct str reply, const struct fault *fault) {
    replies_made(once->pending,
                 &(struct write_outcome){.fault = fault,
                                         .reply = reply,
                                         .granted = once->granted,
                                         .waited_ms = once->waited_ms},
                 clock_mono_ms());
    once->pending = NULL;
    loop_defer(once->call.loop, &once->over);
}

static int64_t kept_until_ms(void) {
    return clock_unix_ms() + (int64_t)REPLIES_KEPT_MS;
}

/* Only now may anyone hear of it. */
static void once_on_kept(void *ctx) {
    struct once *once = ctx;
    once_answer(once, buf_str(&once->made), NULL);
}

struct kept_reply *once_with_effect(struct nimi_call *call, struct str reply,
                                    struct kept_reply *ret) {
    struct once *once = call->once;
    if (!once || !once->claim) return NULL;
    *ret = shared_once_reply(once->claim, reply, kept_until_ms());
    return ret;
}

static void end_claim(struct once *once) {
    if (once->claim) shared_once_end(once->claim);
    once->claim = NULL;
}

void once_made(struct once *once, struct str reply) {
    struct shared_once *claim = once->claim;
    once->claim = NULL;
    if (!claim) {
        once_answer(once, reply, NULL);
        return;
    }
    buf_init(&once->made, ONCE_REPLY_MAX_BYTES);
    buf_append(&once->made, reply);
    shared_once_keep(claim, buf_str(&once->made), kept_until_ms(), once_on_kept);
}

void once_made_with_effect(struct nimi_call *call, struct str reply) {
    if (call->once) end_claim(call->once);
    nimi_reply_again(call, reply);
}

void once_failed(struct once *once, const struct fault *fault) {
    end_claim(once);
    once_answer(once, STR_EMPTY, fault);
}

/* No call waits any more. The work is cancelled as if its caller had left. */
static void once_on_left(void *ctx) {
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
    assert(fits); /* there is room for all of a request; see share() */
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
    /* Each text of the request is kept at most twice. */
    once->arena =
        arena_new(2 * first->instance->settings->message_max_bytes + KEPT_EXTRA_BYTES);
    task_init(&once->over, once_on_over, once);
    buf_init(&once->request, 0); /* make() gives it room */
    *call = (struct nimi_call){.once = once,
                               .loop = first->loop,
                               .instance = first->instance,
                               .row = first->row,
                               .brief = first->brief,
                               .audited = true,
                               .opened_ms = first->opened_ms};
    memcpy(call->trace, first->trace, sizeof(call->trace));
    if (first->caller_trace)
        call->caller_trace = trace_context_copy(first->caller_trace, once->arena);
    list_init(&call->link);
    copy_envelope(once, &first->envelope);
    call->subject = once_keep(once, first->subject);
    call->scope = once_keep(once, first->scope);
    call->session = once_keep(once, first->session);
    call->peer = once_keep(once, first->peer);
    call->grant_id = once_keep(once, first->grant_id);
    once->pending = reply_write_of(first->ask, once_on_left, once);
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
    nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID,
                    "x-nimi-idempotency-key was used for another request; send a new key");
}

static void digest_request(const struct nimi_call *call, const void *request, uint8_t *ret) {
    struct buf bytes;
    buf_init(&bytes, pb_encoded_len(call->row->type, request));
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

/* --- among replicas ----------------------------------------------------------------------- */

/* This replica makes it. The request was decoded before. */
static void make_now(struct once *once) {
    struct nimi_call *call = &once->call;
    struct str bytes = buf_str(&once->request);
    struct arena *arena = arena_new(9 * bytes.len + MIB);
    void *request = arena_alloc(arena, call->row->type->size);
    struct err e;
    if (pb_decode_view(call->row->type, bytes, arena, request, &e)) {
        nimi_begin(call, request, arena);
    } else {
        nimi_refuse_for(call, NIMI_PROTOCOL_ENVELOPE_INVALID, "%s", e.text);
    }
    arena_free(arena);
}

void once_refusal(const struct err *why, struct fault *ret) {
    if (why->code == ERR_RESOURCE_EXHAUSTED)
        fault_set(ret, NIMI_AI_PROVIDER_RATE_LIMITED, "%s, or send it without a key",
                  why->text);
    else
        fault_set_code(ret, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_UNAVAILABLE,
                       "it is unknown now whether this was asked before; ask again later: %s",
                       why->text);
}

static void refuse_unclaimed(struct nimi_call *call, const struct err *why) {
    struct fault fault;
    once_refusal(why, &fault);
    nimi_refuse(call, &fault);
}

static void on_claim(enum once_claimed found, struct str reply, const struct err *failed,
                     void *ctx) {
    struct once *once = ctx;
    bool mine = !failed && found == ONCE_NEW;
    if (!mine) once->claim = NULL;
    once->replayed = !mine;
    if (failed)
        refuse_unclaimed(&once->call, failed);
    else if (mine)
        make_now(once);
    else if (found == ONCE_KEPT)
        nimi_reply_again(&once->call, reply);
    else
        refuse_conflict(&once->call);
}

/* The shared call begins at once, or when no other replica has made it. */
static void make(struct once *once, const struct reply_question *question, const void *request,
                 struct arena *arena) {
    struct nimi_call *call = &once->call;
    struct store *store = call->instance->host->engine->store;
    if (!store || !store_is_shared(store) || call->row->facts & NIMI_SECRET) {
        nimi_begin(call, request, arena);
        return;
    }
    buf_done(&once->request);
    buf_init(&once->request, pb_encoded_len(call->row->type, request));
    pb_encode(call->row->type, request, &once->request);
    once->claim = shared_once_start(
        &(struct shared_once_options){.store = store,
                                      .loop = call->loop,
                                      .key = question->key,
                                      .print = question->digest,
                                      .owner = nimi_share_owner(call, call->envelope.app_id),
                                      .on_answer = on_claim,
                                      .ctx = once});
}

void once_begin(struct nimi_call *call, const void *request, struct arena *arena) {
    uint8_t print[REPLIES_DIGEST_BYTES];
    struct buf stored;
    struct replies *replies = call->instance->runtime->replies;
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
    case REPLY_NEW: make(share(call)->once, &question, request, arena); break;
    case REPLY_WAITS: break;
    case REPLY_STORED: nimi_reply_again(call, buf_str(&stored)); break;
    case REPLY_CONFLICT: refuse_conflict(call); break;
    }
    buf_done(&stored);
}
