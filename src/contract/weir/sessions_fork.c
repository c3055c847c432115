/* POST /weir/v1/sessions/{id}/fork: a new session that begins with what this one had said, up to
 * and with one of its runs.
 *
 *     leased ─▶ free ─▶ its turn ─▶ read ─▶ written ─▶ answered
 *
 * The new session is leased as for a turn; there is no other one of this name; no other fork of this
 * loop is being made, as each may hold tens of MiB; the old session is read, by a job; one commit.
 * Between two of these, a caller who has left ends it.
 *
 * A stop waits for no job, and closes the store meanwhile. So the job uses nothing but what its fork
 * owns, and a fork whose caller leaves while the job is at work gives up everything else at once. It
 * holds its memory until then; the threads for jobs bound how many do.
 *
 * Each turn record of the history becomes a run of the new session, which was begun by the contract
 * "fork": its messages, as one item, and its end. So a model is shown the messages that it was shown
 * of the old turns, whatever they were made of; only where a long session is cut (history.h) may
 * differ, as that depends on where it was read back before. Nothing that the turns used is counted
 * twice, no question is asked again, and the audit log has the copies as what they are. */
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "conversation/conversation.h"
#include "conversation/import.h"
#include "engine/engine.h"
#include "loop/job.h"
#include "record/record.h"
#include "session/history_read.h"
#include "store/sessions.h"
#include "turn/run.h"

#include <stdio.h>
#include <stdlib.h>

#define FORK_CONTRACT "fork"
#define ARENA_MAX_BYTES (1 * MIB)   /* the request */
#define LOAD_MAX_BYTES (32 * MIB)   /* of the old session, without what was streamed */
#define LOAD_MAX_RUNS 10000         /* of it, the newest */
#define EVENTS_MAX_BYTES (48 * MIB) /* of one run */
#define REPLY_MAX_BYTES (64 * KIB)
#define EXTRAS_BYTES 64

enum fork_end { FORK_READ, FORK_MISSING, FORK_UNREADABLE, FORK_LACKS_TURNS, FORK_TOO_LONG };

struct fork {
    struct list link;        /* first; of those that wait for their turn */
    struct route_call *call; /* NULL: gone; what is on its way then frees this */
    struct api_instance *instance;
    struct arena *arena; /* has the names */
    struct session_name from, to;
    uint64_t run;
    struct lease lease; /* of the new session */
    bool has_turn;      /* the others of its loop wait */
    struct store_load load;
    struct job job;                  /* reads what was loaded */
    uint64_t ids[HISTORY_TURNS_MAX]; /* for the runs of the new session */
    enum fork_end end;               /* of the job */
    struct err why;                  /* FORK_UNREADABLE */
    struct history *history;
    struct turn_record *records[HISTORY_TURNS_MAX]; /* of the new session */
    struct store_row rows[HISTORY_TURNS_MAX];
    struct store_write write;
};

static void fork_load(struct fork *fork);

static void let_next(struct api_instance *instance) {
    struct list *next = list_pop(&instance->forks);
    instance->forking = next != NULL;
    if (next) fork_load((struct fork *)next);
}

static void fork_free(struct fork *fork) {
    struct api_instance *instance = fork->instance;
    bool had_turn = fork->has_turn;
    if (fork->call) route_watch(fork->call, NULL, NULL);
    list_remove(&fork->link);
    for (size_t i = 0; i < fork->write.row_count; i++) {
        turn_record_unref(fork->records[i]);
        buf_done(&fork->rows[i].bytes);
    }
    history_unref(fork->history);
    arena_free(fork->load.arena);
    arena_free(fork->arena);
    free(fork);
    if (had_turn) let_next(instance);
}

/* True: the caller has left, and `fork`, which holds its lease, is freed. The store may be closed. */
static bool fork_is_left(struct fork *fork) {
    if (fork->call) return false;
    session_release(&fork->lease, NULL);
    fork_free(fork);
    return true;
}

/* The end of one that holds its lease. */
PRINTF_LIKE(4, 5)
static void fork_refuse(struct fork *fork, int status, const char *code, const char *format,
                        ...) {
    struct route_call *call = fork->call;
    char text[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    session_release(&fork->lease, NULL);
    fork_free(fork);
    if (call) route_refuse(call, status, str_from(code), "%s", text);
}

static void fork_refuse_store(struct fork *fork, const struct err *failed) {
    log_often(LOG_WARNING, "fork of a session: %s", failed->text);
    fork_refuse(fork, 503, "STORE_UNAVAILABLE",
                "the store cannot do that now; try again later");
}

/* --- written ------------------------------------------------------------------------------ */

static void report_forked(struct fork *fork) {
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, REPLY_MAX_BYTES);
    json_member_str(json, "session_id", fork->to.session);
    json_member_str(json, "workspace", fork->to.workspace);
    json_member_str(json, "user", fork->to.user);
    event_json_id(json, "fork_of", fork->run);
    json_member_u64(json, "turns", fork->write.row_count);
    route_json_reply(&reply, fork->call, 201);
}

static void on_forked(struct store_write *write, const struct err *failed, void *ctx) {
    struct fork *fork = ctx;
    if (failed) {
        fork_refuse_store(fork, failed);
        return;
    }
    for (size_t i = 0; i < write->row_count; i++)
        session_remember(fork->instance->sessions, &fork->to,
                         turn_record_ref(fork->records[i]));
    session_release(&fork->lease, NULL);
    if (fork->call) report_forked(fork);
    fork_free(fork);
}

/* --- the runs of the new session ---------------------------------------------------------- */

/* The agent that run was begun with. */
static struct str agent_of(const struct store_load *load, uint64_t run) {
    for (size_t i = 0; i < load->section_count; i++) {
        struct str rest = load->sections[i].events;
        struct event event;
        struct err e;
        if (load->sections[i].run != run || load->sections[i].first_seq != 1) continue;
        if (event_decode(&rest, &event, &e)) return event.agent;
    }
    return STR_EMPTY;
}

static struct str first_words(const struct turn_record *record) {
    for (size_t i = 0; i < record->message_count; i++) {
        if (record->messages[i].role == MESSAGE_USER) return record->messages[i].text;
    }
    return STR_EMPTY;
}

static bool put_started(const struct fork *fork, const struct turn_record *record,
                        struct str agent, struct buf *events) {
    char extras[EXTRAS_BYTES];
    int len = snprintf(extras, sizeof(extras), "{\"fork_of\":\"%llu\"}",
                       (unsigned long long)record->run);
    struct event event = {.kind = EVENT_STARTED, .agent = agent};
    event.started.workspace = fork->to.workspace;
    event.started.user = fork->to.user;
    event.started.session = fork->to.session;
    event.started.text = first_words(record);
    event.started.contract = STR(FORK_CONTRACT);
    event.started.unix_ms = clock_unix_ms();
    event.started.extras = str_of(extras, (size_t)len);
    return event_encode(&event, events);
}

/* The item is no agent's: each message says by whom it was heard, or that it was by none. */
static bool put_messages(const struct turn_record *record, struct buf *events) {
    struct event event = {.kind = EVENT_ITEM};
    struct buf bytes;
    buf_init(&bytes, EVENTS_MAX_BYTES);
    event.item.type = record->starts_anew ? STR(BROUGHT_ITEM BROUGHT_ALL) : STR(BROUGHT_ITEM);
    bool put = import_append(record->messages, record->message_count, &bytes);
    event.item.bytes = buf_str(&bytes);
    put = put && event_encode(&event, events);
    buf_done(&bytes);
    return put;
}

static bool put_run(struct fork *fork, const struct turn_record *record, struct buf *events) {
    struct str agent = agent_of(&fork->load, record->run);
    struct event done = {.kind = EVENT_DONE, .agent = agent};
    return put_started(fork, record, agent, events) && put_messages(record, events) &&
           event_encode(&done, events);
}

/* One run, in a row of its own. */
static bool fork_add(struct fork *fork, const struct turn_record *old) {
    size_t at = fork->write.row_count++;
    struct store_row *row = &fork->rows[at];
    struct turn_record *record =
        turn_record_new(fork->ids[at], old->messages, old->message_count);
    struct buf events;
    record->starts_anew = old->starts_anew;
    fork->records[at] = record;
    row->run = record->run;
    buf_init(&row->bytes, EVENTS_MAX_BYTES);
    buf_init(&events, EVENTS_MAX_BYTES);
    bool added = put_run(fork, old, &events) &&
                 store_section_append(&row->bytes, row->run, 1, buf_str(&events));
    buf_done(&events);
    return added;
}

static bool fork_add_all(struct fork *fork) {
    bool added = true;
    for (size_t i = 0; i < fork->history->record_count && added; i++)
        added = fork_add(fork, fork->history->records[i]);
    return added;
}

static void fork_write(struct fork *fork) {
    fork->write.rows = fork->rows;
    fork->write.home = fork->instance->loop;
    fork->write.on_written = on_forked;
    fork->write.ctx = fork;
    store_write(fork->instance->store, &fork->write);
}

/* --- what the old session had said ----------------------------------------------------------- */

static bool sessions_fork_is_live(const struct fork *fork) {
    struct live_view view;
    if (!directory_find(fork->instance->directory, fork->run, &view)) return false;
    bool own = str_equal(view.workspace, fork->from.workspace) &&
               str_equal(view.user, fork->from.user) &&
               str_equal(view.session, fork->from.session);
    live_view_done(&view);
    return own;
}

static void refuse_too_far(struct fork *fork) {
    fork_refuse(
        fork, 413, "TOO_LARGE",
        "the session has too much after this run: its newest %d runs are read, and %d MiB "
        "of them; fork it at a later one",
        LOAD_MAX_RUNS, (int)(LOAD_MAX_BYTES / MIB));
}

static void refuse_missing(struct fork *fork) {
    if (sessions_fork_is_live(fork)) {
        fork_refuse(fork, 409, "RUN_NOT_ENDED",
                    "this run goes on; a session can be forked at it when it has ended");
    } else if (fork->load.more) {
        refuse_too_far(fork);
    } else {
        fork_refuse(fork, 404, "RUN_NOT_FOUND", "there is no such run in this session");
    }
}

/* A model is shown no more of a session than a history holds, so what was not read may only be
 * missing where the history is full without it. */
static bool lacks_turns(const struct fork *fork) {
    const struct history *history = fork->history;
    return fork->load.more && history->record_count < HISTORY_TURNS_MAX &&
           history->text_bytes < HISTORY_MAX_BYTES / 2 &&
           !(history->record_count && history->records[0]->starts_anew);
}

static enum fork_end fork_read(struct fork *fork) {
    struct store_load *load = &fork->load;
    load->section_count = history_read_until(load->sections, load->section_count, fork->run);
    if (!load->section_count) return FORK_MISSING;
    if (!history_read(load->sections, load->section_count, &fork->history, &fork->why))
        return FORK_UNREADABLE;
    if (lacks_turns(fork)) return FORK_LACKS_TURNS;
    return fork_add_all(fork) ? FORK_READ : FORK_TOO_LONG;
}

static void read_session(void *ctx) {
    struct fork *fork = ctx;
    fork->end = fork_read(fork);
}

static void on_session_read(void *ctx) {
    struct fork *fork = ctx;
    if (!fork->call) { /* as leave_job() left it: the instance may be gone */
        fork_free(fork);
        return;
    }
    switch (fork->end) {
    case FORK_READ: fork_write(fork); break;
    case FORK_MISSING: refuse_missing(fork); break;
    case FORK_UNREADABLE: fork_refuse_store(fork, &fork->why); break;
    case FORK_LACKS_TURNS: refuse_too_far(fork); break;
    case FORK_TOO_LONG:
        fork_refuse(fork, 413, "TOO_LARGE",
                    "a turn of the conversation is too long to be copied");
        break;
    }
}

static void on_session_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct fork *fork = ctx;
    (void)load;
    if (fork_is_left(fork)) return;
    if (failed) {
        fork_refuse_store(fork, failed);
        return;
    }
    for (size_t i = 0; i < HISTORY_TURNS_MAX; i++)
        fork->ids[i] = record_new_id(fork->instance->host->engine);
    job_start(&fork->job, fork->instance->loop, read_session, on_session_read, fork);
}

static void fork_load(struct fork *fork) {
    fork->has_turn = true;
    fork->load = (struct store_load){.question = STORE_SESSION,
                                     .workspace = fork->from.workspace,
                                     .user = fork->from.user,
                                     .session = fork->from.session,
                                     .runs_max = LOAD_MAX_RUNS,
                                     .max_bytes = LOAD_MAX_BYTES,
                                     .home = fork->instance->loop,
                                     .on_loaded = on_session_loaded,
                                     .ctx = fork};
    store_load(fork->instance->store, &fork->load);
}

static void wait_for_turn(struct fork *fork) {
    struct api_instance *instance = fork->instance;
    if (instance->forking) {
        list_append(&instance->forks, &fork->link);
        return;
    }
    instance->forking = true;
    fork_load(fork);
}

/* --- the new session ---------------------------------------------------------------------- */

static void sessions_fork_on_looked(const struct sessions_answer *answer,
                                    const struct err *failed, void *ctx) {
    struct fork *fork = ctx;
    (void)answer;
    if (fork_is_left(fork)) return;
    if (!failed) {
        fork_refuse(fork, 409, "SESSION_EXISTS",
                    "there is a session of this name already; choose another session_id");
        return;
    }
    if (failed->code != ERR_NOT_FOUND) {
        fork_refuse_store(fork, failed);
        return;
    }
    wait_for_turn(fork);
}

static void on_fork_granted(void *ctx) {
    struct fork *fork = ctx;
    const struct session_name *to = &fork->to;
    if (fork_is_left(fork)) return;
    (void)sessions_runs_start(fork->instance->store, fork->instance->loop, to->workspace,
                              to->user, to->session, sessions_fork_on_looked, fork);
}

static void on_fork_refused(const struct err *why, void *ctx) {
    struct fork *fork = ctx;
    struct route_call *call = fork->call;
    fork_free(fork);
    if (!call) return;
    if (why->code == ERR_ABORTED) {
        route_refuse(call, 409, STR("SESSION_EXISTS"),
                     "a session of this name is being made, or a turn of it is running; choose "
                     "another session_id");
    } else {
        route_refuse(call, err_kinds[why->code].http_status, err_name(why->code), "%s",
                     why->text);
    }
}

static void on_fork_children_done(void *ctx) {
    (void)ctx; /* this lease is never lent */
}

static const struct lease_events fork_events = {on_fork_granted, on_fork_refused,
                                                on_fork_children_done};

/* If its job is at work, that frees the fork, and touches nothing else. */
static void leave_job(struct fork *fork) {
    if (job_cancel(&fork->job)) {
        (void)fork_is_left(fork);
        return;
    }
    session_release(&fork->lease, NULL);
    fork->has_turn = false;
    let_next(fork->instance);
}

static void fork_left(void *ctx) {
    struct fork *fork = ctx;
    fork->call = NULL;
    if (list_linked(&fork->link)) {
        (void)fork_is_left(fork);
    } else if (fork->job.request) {
        leave_job(fork);
    } else if (fork->lease.state == LEASE_WAITING && session_withdraw(&fork->lease)) {
        fork_free(fork);
    }
}

static const struct route_watch fork_watch = {.left = fork_left};

static void fork_begin(struct fork *fork) {
    struct api_instance *instance = fork->instance;
    struct err e;
    fork->lease = (struct lease){.loop = instance->loop, .events = &fork_events, .ctx = fork};
    route_watch(fork->call, &fork_watch, fork);
    switch (session_acquire(instance->sessions, &fork->to, SESSION_REJECT, &fork->lease, &e)) {
    case SESSION_GRANTED: on_fork_granted(fork); break;
    case SESSION_REFUSED: on_fork_refused(&e, fork); break;
    case SESSION_WAITS: break;
    }
}

/* --- the route ---------------------------------------------------------------------------- */

static bool take_run(struct api_request *request, struct json body, uint64_t *ret) {
    struct str run;
    if (!api_request_text(request, body, STR("run"), &run)) return false;
    if (str_to_u64(run, ret) && *ret > 0) return true;
    if (!run.len)
        return api_request_refuse(request, 422,
                                  "run is missing: the id of the last run that goes along");
    route_refuse(request->call, 404, STR("RUN_NOT_FOUND"),
                 "there is no such run in this session");
    return false;
}

/* The caller's own names stand in the request, which does not outlive the call. */
static bool take_owner(struct api_request *request, struct session_name *ret) {
    return api_request_session(request, ret) &&
           ((arena_str(request->arena, ret->workspace, &ret->workspace) &&
             arena_str(request->arena, ret->user, &ret->user)) ||
            api_request_refuse(request, 413, "the request is too long"));
}

static bool take_new_name(struct api_request *request, struct json body, struct fork *fork) {
    struct err e;
    fork->to = fork->from;
    return api_request_text(request, body, STR("session_id"), &fork->to.session) &&
           (id_check("session_id", fork->to.session, &e) ||
            api_request_refuse(request, 422, "%s", e.text));
}

static bool read_fork(struct api_request *request, struct fork *fork) {
    static const char *const keys[] = {"run", "session_id", NULL};
    struct str text;
    struct json body = {.kind = JSON_NONE};
    struct err e;
    if (!lent_keep(route_body(request->call), request->arena, &text))
        return api_request_refuse(request, 413, "the request is too long");
    if (!json_read(text, &body, &e)) return api_request_refuse(request, 400, "%s", e.text);
    if (!api_request_members(request, body, keys)) return false;
    if (body.kind != JSON_OBJECT)
        return api_request_refuse(request, 422,
                                  "send {\"run\":\"...\",\"session_id\":\"...\"}");
    return take_owner(request, &fork->from) && take_run(request, body, &fork->run) &&
           take_new_name(request, body, fork);
}

void api_fork_session(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "user", NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    if (!api_request_begin(&request, call, instance, names)) return;
    arena_free(request.arena);
    request.arena = arena_new(ARENA_MAX_BYTES);
    struct fork *fork = MEM_NEW(struct fork);
    list_init(&fork->link);
    fork->call = call;
    fork->instance = instance;
    fork->arena = request.arena;
    if (read_fork(&request, fork)) {
        fork_begin(fork);
        return;
    }
    fork->call = NULL; /* it was refused, and is not watched */
    fork_free(fork);
}
