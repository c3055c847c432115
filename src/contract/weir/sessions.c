/* sessions: list them, and erase one. */
#include "store/sessions.h"
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "session/waiting.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define LIST_USUAL 100
#define BODY_MAX_BYTES (64 * MIB)
#define CURSOR_BYTES 48

/* --- GET /weir/v1/sessions ---------------------------------------------------------------- */

struct session_list {
    struct route_call *call;
    struct sessions_ask *ask;
    struct buf names; /* owns the names in the filter */
    struct sessions_filter filter;
};

/* The checksum of a cursor: FNV-1a over its position and the filter. It only distinguishes our
 * cursors from other text; the filter decides about access. */
static uint64_t seal_of(const struct sessions_filter *filter, int64_t before) {
    uint64_t hash = UINT64_C(14695981039346656037) ^ (uint64_t)before;
    const struct str parts[] = {filter->workspace, filter->user};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        size_t len = parts[i].at ? parts[i].len : 0;
        hash = (hash ^ (parts[i].at ? len + 1 : 0)) * UINT64_C(1099511628211);
        for (size_t at = 0; at < len; at++)
            hash = (hash ^ (unsigned char)parts[i].at[at]) * UINT64_C(1099511628211);
    }
    return hash;
}

static void write_cursor(const struct sessions_filter *filter, int64_t before,
                         char room[CURSOR_BYTES]) {
    snprintf(room, CURSOR_BYTES, "%" PRId64 "-%016" PRIx64, before, seal_of(filter, before));
}

static bool take_cursor(struct api_request *request, struct sessions_filter *filter) {
    char own[CURSOR_BYTES];
    struct str text, rest;
    if (!api_request_value(request, STR("after"), &text)) return false;
    if (text.len == 0) return true;
    if (str_to_i64(str_split(text, '-', &rest), &filter->before) && filter->before > 0) {
        write_cursor(filter, filter->before, own);
        if (str_equal(text, str_from(own))) return true;
    }
    return api_request_refuse(request, 400,
                              "after must be the `next` of a page with the same filters");
}

static void list_over(void *ctx) {
    struct session_list *list = ctx;
    sessions_forget(list->ask);
    buf_done(&list->names);
    free(list);
}

static const struct route_watch list_watch = {.left = list_over, .closed = list_over};

static void write_session(struct json_writer *json, const struct stored_session *session) {
    static const char *const states[EVENT_KIND_COUNT] = {
        [EVENT_DONE] = "done", [EVENT_FAILED] = "failed", [EVENT_CANCELLED] = "cancelled"};
    bool known = session->state > 0 && session->state < EVENT_KIND_COUNT;
    const char *state = known ? states[session->state] : NULL;
    json_open_object(json);
    json_member_str(json, "session_id", session->session);
    json_member_str(json, "workspace", session->workspace);
    json_member_str(json, "user", session->user);
    event_json_id(json, "newest_run", session->newest_run);
    json_member_str(json, "state", state ? str_from(state) : STR("open"));
    json_member_i64(json, "started_unix_ms", session->started_ms);
    if (session->ended_ms) json_member_i64(json, "ended_unix_ms", session->ended_ms);
    json_close(json);
}

static void weir_sessions_on_listed(const struct sessions_answer *answer,
                                    const struct err *failed, void *ctx) {
    struct session_list *list = ctx;
    struct route_json reply;
    char cursor[CURSOR_BYTES];
    list->ask = NULL;
    if (failed) {
        api_refuse_store(list->call, "sessions", failed);
        return;
    }
    struct json_writer *json = route_json_object(&reply, BODY_MAX_BYTES);
    json_member_array(json, "sessions");
    for (size_t i = 0; i < answer->count; i++) write_session(json, &answer->sessions[i]);
    json_close(json);
    if (answer->next) {
        write_cursor(&list->filter, answer->next, cursor);
        json_member_str(json, "next", str_from(cursor));
    }
    json_member_bool(json, "more", answer->next != 0);
    route_json_reply(&reply, list->call, 200);
}

static void list_start(struct route_call *call, struct api_instance *instance,
                       const struct sessions_filter *filter) {
    struct session_list *list = MEM_NEW(struct session_list);
    struct str *const names[] = {&list->filter.workspace, &list->filter.user};
    *list = (struct session_list){.call = call, .filter = *filter};
    buf_keep_texts(&list->names, names, ARRAY_LEN(names));
    route_watch(call, &list_watch, list);
    list->ask = sessions_list_start(instance->store, instance->loop, &list->filter,
                                    weir_sessions_on_listed, list);
}

void api_list_sessions(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "user", "limit", "after", NULL};
    struct api_instance *instance = ctx;
    struct api_request request;
    struct sessions_filter filter = {.before = 0};
    if (!api_request_begin(&request, call, instance, names)) return;
    if (api_request_whose(&request, &filter.workspace, &filter.user) &&
        api_request_limit(&request, LIST_USUAL, SESSIONS_LIST_MAX, &filter.limit) &&
        take_cursor(&request, &filter))
        list_start(call, instance, &filter);
    arena_free(request.arena);
}

/* --- DELETE /weir/v1/sessions/{id} -------------------------------------------------------- */

/* While the store erases a session, it is leased as for a turn: no turn runs, and one that
 * arrives waits and then finds a new session. */
struct erasing {
    struct route_call *call; /* NULL once it is gone */
    struct api_instance *instance;
    struct buf names; /* owns the text of `name` */
    struct session_name name;
    struct lease lease;
};

static void erasing_free(struct erasing *erasing) {
    if (erasing->call) route_watch(erasing->call, NULL, NULL);
    buf_done(&erasing->names);
    free(erasing);
}

static void end_busy(struct erasing *erasing, const char *why) {
    struct route_call *call = erasing->call;
    erasing_free(erasing);
    if (call) route_refuse(call, 409, STR("SESSION_BUSY"), "%s", why);
}

static void report_erased(struct route_call *call, size_t runs) {
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, KIB);
    json_member_u64(json, "deleted_runs", runs);
    route_json_reply(&reply, call, 200);
}

static void on_erased(const struct sessions_answer *answer, const struct err *failed,
                      void *ctx) {
    struct erasing *erasing = ctx;
    struct route_call *call = erasing->call;
    if (!failed) session_forget(&erasing->lease);
    pages_drop_all(erasing->instance->pages); /* even on failure: it may be half gone */
    session_release(&erasing->lease, NULL);
    erasing_free(erasing);
    if (!call) return;
    if (!failed) {
        report_erased(call, answer->run_count);
    } else if (failed->code == ERR_NOT_FOUND) {
        route_refuse(call, 404, STR("SESSION_NOT_FOUND"), "there is no such session");
    } else if (failed->code == ERR_FAILED_PRECONDITION) {
        route_refuse(call, 409, STR("SESSION_BUSY"), "%s; try again when it is", failed->text);
    } else {
        api_refuse_store(call, "sessions", failed);
    }
}

static void on_granted(void *ctx) {
    struct erasing *erasing = ctx;
    const struct session_name *name = &erasing->name;
    bool lent = erasing->lease.parent != 0; /* by a turn to its tools */
    bool waits = session_has_pending(erasing->instance->sessions, name);
    if (lent || waits || !erasing->call) {
        session_release(&erasing->lease, NULL);
        end_busy(erasing, lent ? "a turn of this session is running"
                               : "a turn of this session waits for a human; answer it first");
        return;
    }
    sessions_erase_start(erasing->instance->store, erasing->instance->loop, name->workspace,
                         name->user, name->session, on_erased, erasing);
}

static void on_refused(const struct err *why, void *ctx) {
    end_busy(ctx, why->text);
}

static void on_children_done(void *ctx) {
    (void)ctx; /* this lease is never lent */
}

static const struct lease_events lease_events = {on_granted, on_refused, on_children_done};

/* The work continues, but its result is not sent. */
static void erasing_left(void *ctx) {
    struct erasing *erasing = ctx;
    erasing->call = NULL;
    if (erasing->lease.state == LEASE_WAITING && session_withdraw(&erasing->lease))
        erasing_free(erasing);
}

static const struct route_watch erasing_watch = {.left = erasing_left};

static void erase(struct route_call *call, struct api_instance *instance,
                  const struct session_name *name) {
    struct erasing *erasing = MEM_NEW(struct erasing);
    struct session_name *own = &erasing->name;
    struct str *const names[] = {&own->workspace, &own->user, &own->session};
    struct err e;
    erasing->call = call;
    erasing->instance = instance;
    erasing->name = *name;
    buf_keep_texts(&erasing->names, names, ARRAY_LEN(names));
    erasing->lease =
        (struct lease){.loop = instance->loop, .events = &lease_events, .ctx = erasing};
    route_watch(call, &erasing_watch, erasing);
    switch (session_acquire(instance->sessions, &erasing->name, SESSION_REJECT, &erasing->lease,
                            &e)) {
    case SESSION_GRANTED: on_granted(erasing); break;
    case SESSION_REFUSED: on_refused(&e, erasing); break;
    case SESSION_WAITS: break;
    }
}

static const char *const whose[] = {"workspace", "user", NULL};

void api_erase_session(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_request request;
    struct session_name name;
    if (!api_request_begin(&request, call, instance, whose)) return;
    if (api_request_session(&request, &name)) erase(call, instance, &name);
    arena_free(request.arena);
}
