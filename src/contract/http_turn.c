#include "contract/http_turn.h"

#include "contract/http_key.h"
#include "server/exchange_trace.h"
#include "session/decision.h"
#include "session/directory.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (32 * MIB)
#define UNTIL_UNREAD_MS 1 /* so that a run ends soon after its last reader leaves */

/* --- sites -------------------------------------------------------------------------------- */

void http_turn_site_init(struct http_turn_site *site, struct run_host *host) {
    *site = (struct http_turn_site){.host = host};
    list_init(&site->turns);
}

void http_turn_site_cut(struct http_turn_site *site) {
    LIST_EACH(&site->turns, link) {
        struct http_turn *turn = CONTAINER_OF(link, struct http_turn, link);
        if (turn->stream) stream_end(turn->stream, CAUSE_STOPPING);
        if (turn->follow) follow_end(turn->follow, CAUSE_STOPPING);
    }
}

/* --- its life ----------------------------------------------------------------------------- */

void http_turn_init(struct http_turn *turn, const struct http_turn_kind *kind,
                    struct http_turn_site *site, struct route_call *call, enum close_mode mode,
                    const struct stream_wire *wire) {
    *turn = (struct http_turn){.kind = kind,
                               .site = site,
                               .call = call,
                               .mode = mode,
                               .wire = wire,
                               .leaving = site->rules.on_disconnect,
                               .trace = exchange_trace(route_exchange(call)),
                               .arena = arena_new(ARENA_MAX_BYTES)};
    list_init(&turn->link);
}

void http_turn_done(struct http_turn *turn) {
    list_remove(&turn->link);
    idempotency_lookup_cancel(turn->lookup);
    dormant_wake_cancel(turn->wake);
    elsewhere_cancel(turn->elsewhere);
    cancel_run_forget(turn->cancel);
    follow_free(turn->follow);
    stream_free(turn->stream);
    arena_free(turn->arena);
    free(turn->trace);
    run_unref(turn->run);
}

struct session_table *http_turn_sessions(const struct http_turn *turn) {
    return turn->site->host->engine->sessions;
}

/* --- when the peer leaves ----------------------------------------------------------------- */

/* A repeated request with the same key may still be reading. */
static bool is_read_by_others(struct http_turn *turn) {
    uint64_t left_ms;
    return turn->key.len && journal_readers(run_journal(turn->run), &left_ms) > 1;
}

/* A request with a key, and a human's decision, outlive their connection (K28), so that a
 * repeated request gets the answer. The request itself can say otherwise. */
static bool outlives(const struct http_turn *turn) {
    return turn->site->rules.keyed_outlives && !turn->says_leaving &&
           (turn->key.len || turn->resumed);
}

static struct leaving leaving_of(struct http_turn *turn) {
    if (outlives(turn)) return (struct leaving){.how = LEAVING_DETACHES};
    if (turn->run && turn->leaving.how == LEAVING_CANCELS && is_read_by_others(turn))
        return (struct leaving){LEAVING_DETACHES, UNTIL_UNREAD_MS};
    return turn->leaving;
}

void http_turn_leave_run(struct http_turn *turn, enum close_cause cause) {
    struct leaving leaving = {.how = LEAVING_CANCELS}; /* default: the daemon stops */
    struct str why =
        cause == CAUSE_LEFT ? STR("the caller left") : STR("the call was cut short");
    if (close_is_by_peer(cause)) leaving = leaving_of(turn);
    if (turn->run) {
        run_leave(turn->run, leaving, why);
    } else if (turn->resumed) {
        directory_leave(session_table_directory(http_turn_sessions(turn)), turn->resumed,
                        leaving, why);
    }
}

bool http_turn_may_end(struct http_turn *turn, struct close_ending ending,
                       enum close_cause cause) {
    if (ending.status != ERR_NONE) http_turn_leave_run(turn, cause);
    if (!turn->gone && cause == CAUSE_STALLED) route_cut(turn->call);
    return !turn->gone && cause != CAUSE_STALLED;
}

static void http_turn_left(void *ctx) {
    struct http_turn *turn = ctx;
    turn->gone = true;
    if (turn->stream) stream_end(turn->stream, CAUSE_LEFT);
    if (turn->follow) follow_end(turn->follow, CAUSE_LEFT);
    turn->kind->free(turn);
}

static void http_turn_drained(void *ctx) {
    struct http_turn *turn = ctx;
    if (turn->stream) stream_drained(turn->stream);
    if (turn->follow) follow_drained(turn->follow);
}

static void http_turn_closed(void *ctx) {
    struct http_turn *turn = ctx;
    turn->kind->free(turn);
}

void http_turn_watch(struct http_turn *turn) {
    static const struct route_watch watch = {
        .left = http_turn_left,
        .drained = http_turn_drained,
        .closed = http_turn_closed,
    };
    route_watch(turn->call, &watch, turn);
}

void http_turn_end(struct http_turn *turn) {
    route_watch(turn->call, NULL, NULL);
    turn->kind->free(turn);
}

void http_turn_give_up(struct http_turn *turn, const struct err *why) {
    route_watch(turn->call, NULL, NULL);
    turn->kind->refuse(turn, why);
    turn->kind->free(turn);
}

/* --- the request -------------------------------------------------------------------------- */

bool http_turn_keep(struct http_turn *turn, struct lent lent, struct str *ret, struct err *e) {
    *ret = (struct str){NULL, 0};
    return !lent_read(lent).at || lent_keep(lent, turn->arena, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a call may hold");
}

static bool read_leaving(struct http_turn *turn, struct err *e) {
    struct str asked = lent_read(route_header(turn->call, STR("x-weir-on-disconnect")));
    turn->says_leaving = asked.at != NULL;
    if (!asked.at || leaving_parse(asked, &turn->leaving, e)) return true;
    e->code = ERR_MALFORMED; /* 400, because it is a header */
    return err_add(e, "X-Weir-On-Disconnect");
}

bool http_turn_read_headers(struct http_turn *turn, struct err *e) {
    return read_leaving(turn, e) && http_key_take(turn->call, turn->arena, &turn->key, e);
}

/* --- reading a run ------------------------------------------------------------------------ */

static void http_turn_established(struct http_turn *turn) {
    list_append(&turn->site->turns, &turn->link);
    if (turn->mode != CLOSE_SINGLE) route_sse_begin(turn->call);
    arena_free(turn->arena);
    turn->arena = NULL;
    http_turn_watch(turn);
}

void http_turn_name_run(struct http_turn *turn, uint64_t run) {
    char digits[24];
    struct buf id = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&id, run);
    route_field(turn->call, STR("x-weir-run-id"), buf_str(&id));
    turn->run_id = run;
}

/* Stream the journal (borrowed) to the caller. */
static void http_turn_follow(struct http_turn *turn, struct journal *journal,
                             uint64_t after_seq) {
    struct err e;
    http_turn_name_run(turn, journal_run(journal));
    struct stream_options options = {.loop = route_loop(turn->call),
                                     .journal = journal,
                                     .after_seq = after_seq,
                                     .mode = turn->mode,
                                     .paces = turn->run != NULL,
                                     .stall_ms = turn->site->rules.stall_ms,
                                     .heartbeat_ms = turn->site->rules.heartbeat_ms,
                                     .wire = turn->wire,
                                     .ctx = turn};
    if (stream_open(&options, &turn->stream, &e)) {
        http_turn_established(turn);
    } else {
        http_turn_leave_run(turn, CAUSE_STOPPING);
        http_turn_give_up(turn, &e);
    }
}

void http_turn_read_on(struct http_turn *turn, struct journal *journal, uint64_t after_seq) {
    turn->resumed = journal_run(journal);
    http_turn_follow(turn, journal, after_seq);
    journal_unref(journal);
}

static void on_begun(void *ctx) {
    http_turn_established(ctx);
}

void http_turn_miss(struct http_turn *turn, const struct err *failed) {
    struct err e;
    err_set(&e, ERR_UNAVAILABLE, "this turn cannot be read: %s",
            failed ? failed->text : "what became of it is not known yet; try again");
    http_turn_give_up(turn, &e);
}

/* The end of the run could not be written. */
static void http_turn_on_missing(const struct err *failed, void *ctx) {
    http_turn_miss(ctx, failed);
}

void http_turn_attach(struct http_turn *turn, uint64_t run, uint64_t after_seq) {
    struct session_table *sessions = http_turn_sessions(turn);
    http_turn_name_run(turn, run);
    turn->follow =
        follow_new(&(struct follow_options){.loop = route_loop(turn->call),
                                            .directory = session_table_directory(sessions),
                                            .store = session_table_store(sessions),
                                            .run = run,
                                            .after_seq = after_seq,
                                            .mode = turn->mode,
                                            .stall_ms = turn->site->rules.stall_ms,
                                            .heartbeat_ms = turn->site->rules.heartbeat_ms,
                                            .wire = turn->wire,
                                            .begun = on_begun,
                                            .missing = http_turn_on_missing,
                                            .ctx = turn});
}

/* --- its key ------------------------------------------------------------------------------ */

static void on_key_known(const struct idempotency_lookup_result *result,
                         const struct err *failed, void *ctx) {
    struct http_turn *turn = ctx;
    turn->lookup = NULL;
    switch (result->answer) {
    case IDEMPOTENCY_FREE: turn->kind->begin(turn, result->mark); break;
    case IDEMPOTENCY_RUN: turn->kind->join(turn, result->run, result->seq); break;
    case IDEMPOTENCY_OTHER: turn->kind->refuse_key(turn); break;
    case IDEMPOTENCY_FAILED: http_turn_give_up(turn, failed); break;
    }
}

static void look_up(struct http_turn *turn) {
    const struct http_turn_rules *rules = &turn->site->rules;
    turn->lookup = idempotency_lookup_start(
        &(struct idempotency_lookup_options){.loop = route_loop(turn->call),
                                             .sessions = http_turn_sessions(turn),
                                             .name = {turn->workspace, turn->user, turn->key},
                                             .print = turn->print,
                                             .kept_ms = rules->keys_kept_ms,
                                             .failures_free = rules->keyed_outlives,
                                             .on_answer = on_key_known,
                                             .ctx = turn});
}

void http_turn_enter(struct http_turn *turn) {
    if (!turn->key.len) {
        turn->kind->begin(turn, 0);
        return;
    }
    http_turn_watch(turn);
    look_up(turn);
}

/* --- another replica ---------------------------------------------------------------------- */

/* Words that decide nothing get the question again; the key may be another request's by now. */
static void http_turn_refused_elsewhere(struct http_turn *turn, uint64_t run, uint64_t seq,
                                        const struct err *why) {
    struct err e = *why;
    if (e.code == ERR_FAILED_PRECONDITION) {
        turn->kind->join(turn, run, seq - 1);
        return;
    }
    if (e.code == ERR_ALREADY_EXISTS) {
        turn->looked_elsewhere = false;
        look_up(turn);
        return;
    }
    err_add(&e, "the question stays open");
    http_turn_give_up(turn, &e);
}

static void http_turn_on_elsewhere(const struct elsewhere_result *result, const struct err *why,
                                   void *ctx) {
    struct http_turn *turn = ctx;
    turn->elsewhere = NULL;
    switch (result->found) {
    case ELSEWHERE_NONE: turn->kind->begin(turn, turn->mark); break;
    case ELSEWHERE_DECIDED: turn->kind->join(turn, result->run, result->seq); break;
    case ELSEWHERE_REFUSED:
        http_turn_refused_elsewhere(turn, result->run, result->seq, why);
        break;
    case ELSEWHERE_FAILED: http_turn_give_up(turn, why); break;
    }
}

/* True: the turn goes on when the other replicas have been looked at. Once for each turn. */
static bool look_elsewhere(struct http_turn *turn, const struct session_name *name,
                           uint64_t run, uint64_t seq, struct str text, uint64_t mark) {
    if (turn->looked_elsewhere) return false;
    turn->looked_elsewhere = true;
    turn->mark = mark;
    turn->elsewhere =
        elsewhere_start(&(struct elsewhere_options){.loop = route_loop(turn->call),
                                                    .sessions = http_turn_sessions(turn),
                                                    .name = *name,
                                                    .run = run,
                                                    .seq = seq,
                                                    .text = text,
                                                    .key = turn->key,
                                                    .key_user = turn->user,
                                                    .print = turn->print,
                                                    .asks_again = true,
                                                    .on_end = http_turn_on_elsewhere,
                                                    .ctx = turn});
    if (turn->elsewhere) http_turn_watch(turn);
    return turn->elsewhere != NULL;
}

/* --- beginning ---------------------------------------------------------------------------- */

void http_turn_start(struct http_turn *turn, struct run_request *asked, uint64_t mark) {
    struct err e;
    if (turn->words_decide && look_elsewhere(turn, &asked->name, 0, 0, asked->text, mark))
        return;
    asked->policy = turn->site->rules.busy;
    asked->key = turn->key;
    asked->print = turn->print;
    asked->key_mark = mark;
    asked->trace = turn->trace;
    if (run_start(turn->site->host, asked, &turn->run, &e)) {
        if (turn->kind->started) turn->kind->started(turn, run_id(turn->run));
        http_turn_follow(turn, run_journal(turn->run), 0);
    } else if (e.code == ERR_ALREADY_EXISTS) {
        look_up(turn);
    } else {
        http_turn_give_up(turn, &e);
    }
}

static void http_turn_on_awake(const struct err *failed, void *ctx) {
    struct http_turn *turn = ctx;
    turn->wake = NULL;
    if (failed) {
        http_turn_give_up(turn, failed);
    } else {
        http_turn_enter(turn);
    }
}

/* Wake the runs that the answer may be for, then look again from the beginning. */
static void wake_runs(struct http_turn *turn, const struct pending_answer *answer) {
    const struct dormant_filter filter = session_sleepers(answer);
    http_turn_watch(turn);
    turn->wake =
        dormant_wake_start(session_table_directory(http_turn_sessions(turn)), &filter,
                           DORMANT_WAKE_MAX, route_loop(turn->call), http_turn_on_awake, turn);
    if (!turn->wake) http_turn_enter(turn); /* the runs woke up meanwhile */
}

bool http_turn_settle(struct http_turn *turn, struct pending_answer *answer, uint64_t mark,
                      enum pending_found *ret_found, struct pending_answered *ret,
                      struct err *e) {
    answer->key = turn->key;
    answer->key_user = turn->user;
    answer->print =
        turn->key.len ? turn->print : STR_EMPTY; /* without a key nothing is repeated */
    answer->key_mark = mark;
    answer->arena = turn->arena;
    *ret_found = session_settle(http_turn_sessions(turn), answer, ret, e);
    switch (*ret_found) {
    case PENDING_NONE:
        return answer->run && look_elsewhere(turn, &answer->name, answer->run, answer->seq,
                                             answer->text, mark);
    case PENDING_SEVERAL:
    case PENDING_REFUSED:
    case PENDING_UNDECIDED: return false;
    case PENDING_TAKEN: http_turn_read_on(turn, ret->journal, ret->seq); break;
    case PENDING_ASLEEP: wake_runs(turn, answer); break;
    case PENDING_CLAIMED: look_up(turn); break;
    }
    return true;
}

enum pending_found http_turn_check_words(const struct pending_question *asked, void *ctx) {
    const struct http_turn_words *words = ctx;
    return decision_settles(asked, words->text, words->e);
}

/* --- for a wire --------------------------------------------------------------------------- */

static struct route_call *call_of(void *ctx) {
    return ((struct http_turn *)ctx)->call;
}

void http_turn_gather(void *ctx) {
    route_gather(call_of(ctx));
}

void http_turn_leave_now(void *ctx) {
    route_leave_now(call_of(ctx));
}

size_t http_turn_queued(void *ctx) {
    return route_pressure(call_of(ctx));
}

void http_turn_wake_at(size_t low, void *ctx) {
    route_wake_at(call_of(ctx), low);
}

uint64_t http_turn_stalled_ms(void *ctx) {
    return route_stalled_ms(call_of(ctx));
}

void http_turn_heartbeat(void *ctx) {
    route_sse_comment(call_of(ctx), STR("keep-alive"));
}
