#include "contract/nimi/upload/receive.h"

#include "base/clock.h"
#include "base/mem.h"
#include "contract/nimi/admit.h"
#include "contract/nimi/once.h"
#include "contract/nimi/shared_once.h"
#include "wire/digest.h"
#include "wire/hex.h"

#include <assert.h>
#include <nettle/sha2.h>
#include <stdlib.h>

#define ID_PREFIX STR("artifact_")
#define ID_LEN (sizeof("artifact_") - 1 + ULID_LEN)
#define GATHERED_MAX_BYTES (RECEIVE_CHUNK_MAX_BYTES + UPLOAD_PIECE_BYTES)

const struct state receive_states[RECEIVE_STATE_COUNT] = {
    [RECEIVE_QUEUED] = {"queued", TO(RECEIVE_READING) | TO(RECEIVE_OVER)},
    [RECEIVE_READING] = {"reading",
                         TO(RECEIVE_WRITING) | TO(RECEIVE_CHECKING) | TO(RECEIVE_OVER)},
    [RECEIVE_WRITING] = {"writing", TO(RECEIVE_READING) | TO(RECEIVE_OVER)},
    [RECEIVE_CHECKING] = {"checking", TO(RECEIVE_ENDING) | TO(RECEIVE_OVER)},
    [RECEIVE_ENDING] = {"ending", TO(RECEIVE_OVER)},
    [RECEIVE_OVER] = {"over", 0},
};

struct receipt {
    struct nimi_call *call;
    struct store *store;
    enum receive_state state;
    struct upload upload;       /* its texts belong to the call */
    char id[ID_LEN + 1];        /* the artifact's id */
    struct ticket *ticket;      /* its slot */
    struct timer idle;          /* runs while reading */
    uint64_t sequence;          /* expected of the next chunk */
    struct buf gathered;        /* received; a part may be on its way to the store */
    size_t taken;               /* how many of `gathered` are on the way */
    size_t kept;                /* bytes stored, or on the way to the store */
    struct sha256_ctx hash;     /* of the `kept` bytes */
    char sum[UPLOAD_SUM_BYTES]; /* of all bytes, set at the end */
    struct upload_ask *ask;     /* the open request to the store */
    struct str key; /* under which the reply is stored; empty: the caller sent none */
    uint8_t print[REPLIES_DIGEST_BYTES]; /* what the key stands for */
    struct reply_write *pending;         /* this upload is the one that is made under the key */
    struct shared_once *claim; /* the same, among replicas; NULL: none, or not yet asked for */
    struct buf reply;
    struct buf again; /* the stored reply of an earlier upload with the same key */
};

static void receive_move(struct receipt *receipt, enum receive_state next) {
    assert(states_allow(receive_states, receipt->state, next));
    receipt->state = next;
}

/* --- one upload under one key ------------------------------------------------------------- */

static struct replies *replies_of(const struct receipt *receipt) {
    return receipt->call->instance->runtime->replies;
}

static void end_pending(struct receipt *receipt, const struct write_outcome *outcome) {
    struct reply_write *pending = receipt->pending;
    receipt->pending = NULL;
    if (pending) replies_made(pending, outcome, clock_mono_ms());
}

static void end_claim(struct receipt *receipt) {
    if (receipt->claim) shared_once_end(receipt->claim);
    receipt->claim = NULL;
}

/* Calls that wait for this upload make it themselves. */
static void give_pending_up(struct receipt *receipt) {
    struct fault fault = {.reason = 0};
    err_set(&fault.why, ERR_UNAVAILABLE, "the upload that was waited for was not made");
    end_pending(receipt, &(struct write_outcome){.fault = &fault, .reply = STR_EMPTY});
}

/* --- ending ------------------------------------------------------------------------------- */

static int64_t receive_now_ms(const struct receipt *receipt) {
    return receipt->call->instance->pruner.unix_ms();
}

/* Release everything. Unless the upload is `whole`, what the store has of it is deleted. */
static void receipt_release(struct receipt *receipt, bool whole) {
    struct pruner *pruner = &receipt->call->instance->pruner;
    if (receipt->state == RECEIVE_OVER) return;
    receive_move(receipt, RECEIVE_OVER);
    timer_stop(&receipt->idle);
    upload_forget(receipt->ask);
    receipt->ask = NULL;
    scheduler_release(receipt->ticket);
    receipt->ticket = NULL;
    buf_release(&receipt->gathered);
    end_claim(receipt); /* of a whole one the reply is kept */
    if (!whole) give_pending_up(receipt);
    if (!whole && receipt->kept) upload_drop(receipt->store, pruner->loop, receipt->upload.id);
    if (whole || receipt->kept) pruner_wake(pruner);
}

static void receive_refuse(struct receipt *receipt, const struct fault *fault) {
    receipt_release(receipt, false);
    nimi_refuse(receipt->call, fault);
}

/* Refuse an invalid chunk or a wrong order of messages. */
static void refuse_as(struct receipt *receipt, int reason, const char *sentence) {
    struct fault fault;
    fault_set(&fault, reason, "%s", sentence);
    receive_refuse(receipt, &fault);
}

static void refuse_by_store(struct receipt *receipt, const struct err *why) {
    struct fault fault;
    fault_set_code(&fault, reason_of_failure(STR_EMPTY, why->code), why->code,
                   "the artifact could not be kept: %s", why->text);
    receive_refuse(receipt, &fault);
}

/* What is said once it is whole. */
static void make_reply(struct receipt *receipt) {
    char hex[2 * UPLOAD_SUM_BYTES];
    struct buf sum = {.at = hex, .room = sizeof(hex), .max_bytes = sizeof(hex)};
    hex_append(&sum, receipt->upload.sum);
    const struct nimi_scenario_artifact artifact = {.artifact_id = receipt->upload.id,
                                                    .mime_type = receipt->upload.content_type,
                                                    .sha256 = buf_str(&sum),
                                                    .size_bytes =
                                                        (int64_t)receipt->upload.size};
    const struct nimi_upload_artifact_response response = {
        .artifact = &artifact, .trace_id = nimi_trace(receipt->call)};
    pb_encode(&nimi_upload_artifact_response_table, &response, &receipt->reply);
}

/* Also to the calls that wait for it: this one is among them. */
static void receive_reply(struct receipt *receipt) {
    struct str reply = buf_str(&receipt->reply);
    if (receipt->pending)
        end_pending(receipt, &(struct write_outcome){.reply = reply});
    else
        nimi_reply_again(receipt->call, reply);
}

/* --- the last piece ----------------------------------------------------------------------- */

static struct str not_taken(const struct receipt *receipt) {
    return str_skip(buf_str(&receipt->gathered), receipt->taken);
}

static void on_whole(const struct upload *upload, const struct err *failed, void *ctx) {
    struct receipt *receipt = ctx;
    (void)upload;
    receipt->ask = NULL;
    if (failed) {
        refuse_by_store(receipt, failed);
        return;
    }
    receipt_release(receipt, true);
    receive_reply(receipt);
}

static void put_last(struct receipt *receipt) {
    size_t place = receipt->kept;
    receive_move(receipt, RECEIVE_ENDING);
    receipt->upload.bytes = not_taken(receipt);
    receipt->kept = receipt->upload.size;
    make_reply(receipt);
    struct kept_reply reply;
    if (receipt->claim) {
        reply = shared_once_reply(receipt->claim, buf_str(&receipt->reply),
                                  receive_now_ms(receipt) + UPLOAD_KEPT_MS);
        receipt->upload.reply = &reply;
    }
    receipt->ask =
        upload_put_start(receipt->store, rpc_loop(receipt->call->rpc), &receipt->upload, place,
                         UPLOAD_LAST, receive_now_ms(receipt), on_whole, receipt);
    receipt->upload.reply = NULL;
}

static void receive_claim(struct receipt *receipt);
static void claim_shared(struct receipt *receipt);

static bool is_shared(const struct receipt *receipt) {
    return store_is_shared(receipt->store);
}

/* This upload is the one that is made, or the key is free for another one. */
static void claim_or_put(struct receipt *receipt) {
    if (is_shared(receipt))
        claim_shared(receipt);
    else
        put_last(receipt);
}

/* The earlier one is over, here or at the replica that made it. */
static void forget_earlier(struct receipt *receipt) {
    uint8_t key[DIGEST_BYTES];
    struct str again = buf_str(&receipt->again);
    replies_forget(replies_of(receipt), receipt->key, again);
    digest_text(receipt->key, key);
    if (is_shared(receipt)) once_reply_forget(receipt->store, receipt->call->loop, key, again);
    if (receipt->pending)
        claim_or_put(receipt);
    else
        receive_claim(receipt);
}

/* Calls that wait at this replica have the reply of the other one. */
static void repeat_earlier(struct receipt *receipt) {
    struct str again = buf_str(&receipt->again);
    bool waits = receipt->pending != NULL; /* this call, too */
    if (waits) end_pending(receipt, &(struct write_outcome){.reply = again});
    receipt_release(receipt, false);
    if (!waits) nimi_reply_again(receipt->call, again);
}

/* A reply is kept for a day, the artifact for half an hour. So an earlier reply is repeated
 * only while its artifact exists. */
static void receive_on_looked(const struct upload *upload, const struct err *failed,
                              void *ctx) {
    struct receipt *receipt = ctx;
    (void)upload;
    receipt->ask = NULL;
    if (failed && failed->code != ERR_NOT_FOUND) {
        refuse_by_store(receipt, failed);
    } else if (failed) {
        forget_earlier(receipt);
    } else {
        repeat_earlier(receipt);
    }
}

/* The id of the artifact in the reply `again`. */
static struct str id_of_reply(const struct receipt *receipt, struct arena *arena) {
    struct nimi_upload_artifact_response said;
    struct err e;
    bool read = pb_decode_view(&nimi_upload_artifact_response_table, buf_str(&receipt->again),
                               arena, &said, &e);
    return read && said.artifact ? said.artifact->artifact_id : STR_EMPTY;
}

static void look_for_earlier(struct receipt *receipt) {
    struct arena *arena = arena_new(64 * KIB);
    receipt->ask =
        upload_get_start(receipt->store, rpc_loop(receipt->call->rpc), receipt->upload.app,
                         receipt->upload.subject, id_of_reply(receipt, arena), 0, 0,
                         receive_now_ms(receipt), receive_on_looked, receipt);
    arena_free(arena);
}

/* Digest of what a key stands for: the owner, the type, the name and the bytes. */
static void digest(const struct receipt *receipt, uint8_t *ret) {
    const struct upload *upload = &receipt->upload;
    const struct str parts[] = {upload->app, upload->subject, upload->content_type,
                                upload->name, upload->sum};
    digest_parts(parts, ARRAY_LEN(parts), ret);
}

/* The upload that this one waited for is whole, or was not made: then this one is. */
static void on_outcome(const struct write_outcome *outcome, void *ctx) {
    struct receipt *receipt = ctx;
    receipt->call->ask = NULL;
    if (outcome->fault) {
        receive_claim(receipt);
    } else {
        receipt_release(receipt, false);
        nimi_reply_again(receipt->call, outcome->reply);
    }
}

/* The write ends when its receipt does, so before this. */
static void on_left(void *ctx) {
    (void)ctx;
}

static void refuse_conflict(struct receipt *receipt) {
    refuse_as(receipt, NIMI_PROTOCOL_ENVELOPE_INVALID,
              "x-nimi-idempotency-key was used for another upload; send a new key");
}

static void receive_claim(struct receipt *receipt) {
    struct nimi_call *call = receipt->call;
    const struct reply_question question = {.key = receipt->key,
                                            .digest = receipt->print,
                                            .now_ms = clock_mono_ms(),
                                            .loop = call->loop,
                                            .on_outcome = on_outcome,
                                            .ctx = receipt};
    buf_clear(&receipt->again);
    switch (replies_ask(replies_of(receipt), &question, &receipt->again, &call->ask)) {
    case REPLY_NEW:
        receipt->pending = reply_write_of(call->ask, on_left, receipt);
        claim_or_put(receipt);
        break;
    case REPLY_WAITS: break;
    case REPLY_STORED: look_for_earlier(receipt); break;
    case REPLY_CONFLICT: refuse_conflict(receipt); break;
    }
}

/* --- among replicas ----------------------------------------------------------------------- */

static void refuse_unclaimed(struct receipt *receipt, const struct err *why) {
    struct fault fault;
    once_refusal(why, &fault);
    receive_refuse(receipt, &fault);
}

static void on_claim(enum once_claimed found, struct str reply, const struct err *failed,
                     void *ctx) {
    struct receipt *receipt = ctx;
    if (failed || found != ONCE_NEW) receipt->claim = NULL;
    if (failed) {
        refuse_unclaimed(receipt, failed);
    } else if (found == ONCE_NEW) {
        put_last(receipt);
    } else if (found == ONCE_KEPT) {
        buf_clear(&receipt->again);
        buf_append(&receipt->again, reply);
        look_for_earlier(receipt);
    } else {
        refuse_conflict(receipt);
    }
}

static void claim_shared(struct receipt *receipt) {
    struct nimi_call *call = receipt->call;
    receipt->claim = shared_once_start(
        &(struct shared_once_options){.store = receipt->store,
                                      .loop = call->loop,
                                      .key = receipt->key,
                                      .print = receipt->print,
                                      .owner = nimi_share_owner(call, receipt->upload.app),
                                      .on_answer = on_claim,
                                      .ctx = receipt});
}

static void receive_finish(struct receipt *receipt) {
    struct str rest = not_taken(receipt);
    timer_stop(&receipt->idle);
    receive_move(receipt, RECEIVE_CHECKING);
    sha256_update(&receipt->hash, rest.len, (const uint8_t *)rest.at);
    sha256_digest(&receipt->hash, UPLOAD_SUM_BYTES, (uint8_t *)receipt->sum);
    receipt->upload.sum = str_of(receipt->sum, UPLOAD_SUM_BYTES);
    receipt->upload.size = receipt->kept + rest.len;
    receipt->key = once_key(receipt->call);
    digest(receipt, receipt->print);
    if (receipt->key.len) {
        receive_claim(receipt);
    } else {
        put_last(receipt);
    }
}

static void receive_on_half_closed(void *ctx) {
    struct receipt *receipt = ctx;
    if (receipt->kept + receipt->gathered.len > 0) {
        receive_finish(receipt);
    } else {
        refuse_as(receipt, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                  "the upload has metadata and no chunk; send at least one with bytes");
    }
}

/* --- chunks ------------------------------------------------------------------------------- */

static void receive_read_on(struct receipt *receipt) {
    buf_drop(&receipt->gathered, receipt->taken);
    receipt->taken = 0;
    if (receipt->gathered.len == 0) buf_release(&receipt->gathered);
    if (receipt->state != RECEIVE_READING) receive_move(receipt, RECEIVE_READING);
    timer_start(&receipt->idle, RECEIVE_IDLE_MS);
    rpc_next(receipt->call->rpc);
}

static void receive_on_kept(const struct upload *upload, const struct err *failed, void *ctx);

/* Write one whole piece, which bounds the work of a commit and of this loop. */
static void receive_write_piece(struct receipt *receipt) {
    struct str piece = str_head(not_taken(receipt), UPLOAD_PIECE_BYTES);
    size_t place = receipt->kept;
    if (receipt->state != RECEIVE_WRITING) receive_move(receipt, RECEIVE_WRITING);
    timer_stop(&receipt->idle);
    sha256_update(&receipt->hash, piece.len, (const uint8_t *)piece.at);
    receipt->taken += piece.len;
    receipt->kept += piece.len;
    receipt->upload.bytes = piece;
    receipt->ask =
        upload_put_start(receipt->store, rpc_loop(receipt->call->rpc), &receipt->upload, place,
                         UPLOAD_GOES_ON, receive_now_ms(receipt), receive_on_kept, receipt);
}

static void receive_go_on(struct receipt *receipt) {
    if (not_taken(receipt).len >= UPLOAD_PIECE_BYTES) {
        receive_write_piece(receipt);
    } else {
        receive_read_on(receipt);
    }
}

static void receive_on_kept(const struct upload *upload, const struct err *failed, void *ctx) {
    struct receipt *receipt = ctx;
    (void)upload;
    receipt->ask = NULL;
    if (failed) {
        refuse_by_store(receipt, failed);
    } else {
        receive_go_on(receipt);
    }
}

static bool chunk_fits(const struct receipt *receipt,
                       const struct nimi_upload_artifact_request *request,
                       struct fault *fault) {
    const struct nimi_upload_artifact_chunk *chunk = request->chunk;
    if (request->which_payload == NIMI_UPLOAD_ARTIFACT_REQUEST_METADATA)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "an upload has its metadata once, in the first message; send chunks "
                         "after it");
    if (request->which_payload != NIMI_UPLOAD_ARTIFACT_REQUEST_CHUNK)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "this message holds no chunk; after the metadata every one must");
    if (chunk->sequence != receipt->sequence)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "chunk %llu came where %llu was due; number chunks from 0, without "
                         "gaps",
                         (unsigned long long)chunk->sequence,
                         (unsigned long long)receipt->sequence);
    if (chunk->bytes.len == 0)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "chunk %llu has no bytes; leave it out",
                         (unsigned long long)chunk->sequence);
    if (chunk->bytes.len > RECEIVE_CHUNK_MAX_BYTES)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_TOO_LARGE,
                         "chunk %llu has %zu bytes, at most %zu are allowed; cut it in two",
                         (unsigned long long)chunk->sequence, chunk->bytes.len,
                         (size_t)RECEIVE_CHUNK_MAX_BYTES);
    size_t all = receipt->kept + receipt->gathered.len + chunk->bytes.len;
    return all <= UPLOAD_MAX_BYTES ||
           fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_TOO_LARGE,
                     "the artifact has more than %zu bytes, which is all that is kept of one; "
                     "send a smaller one",
                     (size_t)UPLOAD_MAX_BYTES);
}

static void on_chunk(const void *message, void *ctx) {
    struct receipt *receipt = ctx;
    const struct nimi_upload_artifact_request *request = message;
    struct fault fault;
    if (!chunk_fits(receipt, request, &fault)) {
        receive_refuse(receipt, &fault);
        return;
    }
    receipt->sequence++;
    bool fits = buf_append(&receipt->gathered, request->chunk->bytes);
    assert(fits); /* less than one piece was held */
    (void)fits;
    receive_go_on(receipt);
}

static void receive_on_idle(void *ctx) {
    struct receipt *receipt = ctx;
    struct fault fault;
    fault_set_code(&fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID, ERR_DEADLINE_EXCEEDED,
                   "no chunk came for %d s; send the upload again", RECEIVE_IDLE_MS / 1000);
    receive_refuse(receipt, &fault);
}

/* --- callbacks of the call ---------------------------------------------------------------- */

static void receive_on_stopping(void *ctx) {
    receipt_release(ctx, false);
}

static void receive_on_cancelled(enum close_cause why, void *ctx) {
    (void)why;
    receipt_release(ctx, false);
}

static void receive_on_closed(void *ctx) {
    struct receipt *receipt = ctx;
    receipt_release(receipt, false);
    buf_done(&receipt->gathered);
    buf_done(&receipt->reply);
    buf_done(&receipt->again);
    free(receipt);
}

static const struct nimi_work work = {
    .message = on_chunk,
    .half_closed = receive_on_half_closed,
    .stopping = receive_on_stopping,
    .cancelled = receive_on_cancelled,
    .closed = receive_on_closed,
};

/* --- the beginning ------------------------------------------------------------------------ */

static bool receive_is_token(struct str text) {
    return text.len > 0 && str_is_plain(text, "!#$&^_.+-"); /* RFC 6838 4.2 */
}

static bool receive_is_printable(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < ' ' || text.at[i] > '~') return false;
    }
    return true;
}

bool receive_type_is_allowed(struct str type) {
    static const struct str kinds[] = {STR_INIT("image"), STR_INIT("audio"), STR_INIT("video")};
    struct str parameters, subtype;
    struct str kind = str_split(str_trim(str_split(type, ';', &parameters)), '/', &subtype);
    if (type.len > RECEIVE_TYPE_MAX_BYTES || !receive_is_printable(type)) return false;
    if (!subtype.at || !receive_is_token(subtype)) return false;
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_equal_nocase(kind, kinds[i])) return true;
    }
    return false;
}

static bool name_is_short(const char *what, struct str name, struct fault *fault) {
    return name.len <= RECEIVE_NAME_MAX_BYTES ||
           fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                     "%s has %zu bytes, at most %d are allowed; shorten it", what, name.len,
                     RECEIVE_NAME_MAX_BYTES);
}

static bool metadata_is_right(const struct nimi_call *call,
                              const struct nimi_upload_artifact_request *request,
                              struct fault *fault) {
    if (!request)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "nothing was sent; send metadata, then chunks, then half-close");
    if (request->which_payload != NIMI_UPLOAD_ARTIFACT_REQUEST_METADATA)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "the first message must hold the metadata; send it before the chunks");
    const struct nimi_upload_artifact_metadata *metadata = request->metadata;
    if (str_trim(metadata->app_id).len == 0)
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "the metadata needs an app_id: only that app may use the artifact");
    if (!receive_type_is_allowed(str_trim(metadata->mime_type)))
        return fault_set(fault, NIMI_AI_ARTIFACT_UPLOAD_INVALID,
                         "mime_type '" STR_FMT "' is not one of image/..., audio/... and "
                         "video/..., which are all that is kept; name the right one",
                         STR_ARG(str_head(metadata->mime_type, 80)));
    return name_is_short("app_id", metadata->app_id, fault) &&
           name_is_short("subject_user_id", metadata->subject_user_id, fault) &&
           name_is_short("display_name", metadata->display_name, fault) &&
           admit_app(&call->envelope, metadata->app_id, fault);
}

static struct str keep_type(struct nimi_call *call, struct str type) {
    struct str kept = rpc_keep(call->rpc, str_trim(type));
    char *at = (char *)(uintptr_t)kept.at; /* our own copy */
    for (size_t i = 0; i < kept.len && at[i] != ';'; i++) {
        if (at[i] >= 'A' && at[i] <= 'Z') at[i] = (char)(at[i] - 'A' + 'a');
    }
    return kept;
}

static struct receipt *receipt_new(struct nimi_call *call,
                                   const struct nimi_upload_artifact_metadata *metadata) {
    struct receipt *receipt = MEM_NEW(struct receipt);
    receipt->call = call;
    receipt->store = call->instance->host->engine->store;
    memcpy(receipt->id, ID_PREFIX.at, ID_PREFIX.len);
    ulid_new(receipt->id + ID_PREFIX.len);
    receipt->upload = (struct upload){
        .id = str_of(receipt->id, ID_LEN),
        .app = rpc_keep(call->rpc, metadata->app_id),
        .subject = rpc_keep(call->rpc, metadata->subject_user_id),
        .content_type = keep_type(call, metadata->mime_type),
        .name = rpc_keep(call->rpc, metadata->display_name),
    };
    call->envelope.app_id = receipt->upload.app; /* the header may be absent */
    timer_init(&receipt->idle, rpc_loop(call->rpc), receive_on_idle, receipt);
    sha256_init(&receipt->hash);
    buf_init(&receipt->gathered, GATHERED_MAX_BYTES);
    buf_init(&receipt->reply, 64 * KIB);
    buf_init(&receipt->again, 64 * KIB);
    return receipt;
}

static void receive_on_granted(void *ctx) {
    receive_read_on(ctx);
}

static void wait_for_slot(struct receipt *receipt) {
    struct fault fault;
    struct nimi_call *call = receipt->call;
    const struct ticket_ask ask = {.app = receipt->upload.app,
                                   .owner = nimi_owner(call),
                                   .loop = rpc_loop(call->rpc),
                                   .on_granted = receive_on_granted,
                                   .ctx = receipt};
    switch (scheduler_take(call->instance->runtime->slots, &ask, &receipt->ticket)) {
    case TICKET_GRANTED: receive_read_on(receipt); break;
    case TICKET_WAITS: break; /* until the call's own time limit */
    case TICKET_REFUSED:
        fault_set_code(&fault, NIMI_AI_PROVIDER_UNAVAILABLE, ERR_RESOURCE_EXHAUSTED,
                       "too many uploads wait for their turn; send it again later");
        receive_refuse(receipt, &fault);
        break;
    }
}

void receive_begin(struct nimi_call *call, const void *message) {
    const struct nimi_upload_artifact_request *request = message;
    struct fault fault;
    if (!metadata_is_right(call, request, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    if (!call->instance->host->engine->store) {
        nimi_refuse_code(call, NIMI_AI_ARTIFACT_UPLOAD_INVALID, ERR_FAILED_PRECONDITION,
                         "this runtime has no store to keep an artifact in");
        return;
    }
    struct receipt *receipt = receipt_new(call, request->metadata);
    nimi_work(call, &work, receipt);
    wait_for_slot(receipt);
}
