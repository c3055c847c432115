/* A list of tasks: of one context the newest first, else context after context, the newest first.
 *
 *     a page of sessions ─▶ the runs of one ─▶ each run is read and written ─▶ the page is full
 *
 * A token names where the next page begins: "<session>-<run>", the first 0 for a context. */
#include "contract/a2a/door.h"

#include "base/mem.h"
#include "store/sessions.h"

#include <stdlib.h>

#define SESSIONS_AT_ONCE 20
#define LOOK_MAX 1000 /* runs that one page reads; more are the next page's */
#define BODY_MAX_BYTES (64 * MIB)

struct listed_session {
    int64_t id;
    struct text name;
};

struct a2a_list {
    struct a2a_call *call;
    struct sessions_ask *ask;
    struct listed_session sessions[SESSIONS_AT_ONCE];
    size_t session_count, session; /* in the page of them; the next one */
    int64_t next;                  /* the next page of sessions begins before this; 0: none */
    int64_t current;               /* id of the session whose runs are listed */
    uint64_t *runs;                /* of it, newest first */
    size_t run_count, run;
    bool has_older; /* than these, which the next page reads */
    size_t looked, written;
    uint64_t last; /* the run that was looked at last */
    struct buf body;
    struct json_writer w;
};

void a2a_list_free(struct a2a_list *list) {
    if (!list) return;
    sessions_forget(list->ask);
    for (size_t i = 0; i < list->session_count; i++) text_done(&list->sessions[i].name);
    free(list->runs);
    buf_done(&list->body);
    free(list);
}

/* --- the page ----------------------------------------------------------------------------- */

static void list_end(struct a2a_list *list, bool more) {
    struct a2a_call *call = list->call;
    char room[64];
    struct buf token = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (more) buf_append_i64(&token, list->current);
    if (more) buf_append_byte(&token, '-');
    if (more) buf_append_u64(&token, list->last);
    json_close(&list->w);
    json_member_str(&list->w, "nextPageToken", buf_str(&token));
    json_member_u64(&list->w, "pageSize", call->request.page_size);
    json_member_u64(&list->w, "totalSize", list->written + (more ? 1 : 0));
    json_close(&list->w);
    a2a_reply(call, &list->body);
}

static bool a2a_list_is_wanted(const struct a2a_call *call) {
    enum a2a_state wanted;
    const struct run_summary *summary = &call->summary;
    if (!summary->known || !a2a_may_see(call, summary->workspace, summary->user)) return false;
    if (a2a_task_unix_ms(&call->task) < call->request.status_from_ms) return false;
    return !call->request.status.len ||
           (a2a_state_find(call->request.status, &wanted) && wanted == call->task.state);
}

static void list_take(struct a2a_list *list) {
    struct a2a_call *call = list->call;
    const struct a2a_view view = {call->dialect, call->request.history_max,
                                  call->request.with_artifacts};
    list->looked++;
    if (!a2a_list_is_wanted(call)) return;
    a2a_task_write(&call->task, &view, &list->w);
    list->written++;
}

/* --- its runs ----------------------------------------------------------------------------- */

static void list_go_on(struct a2a_list *list);

static void on_run_read(const struct err *failed, void *ctx) {
    struct a2a_list *list = ctx;
    struct a2a_call *call = list->call;
    call->scan = NULL;
    if (failed) {
        http_turn_give_up(&call->http, failed);
        return;
    }
    list_take(list);
    list_go_on(list);
}

/* False: it has to be read from the store. */
static bool read_run(struct a2a_list *list, uint64_t run) {
    struct a2a_call *call = list->call;
    list->last = run;
    if (a2a_read_live(call, run)) return true;
    call->scan = run_scan_start(route_loop(call->http.call), call->instance->store,
                                &call->summary, on_run_read, list);
    return false;
}

static int newest_first(const void *a, const void *b) {
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return left < right ? 1 : left > right ? -1 : 0;
}

static void add_run(struct a2a_list *list, uint64_t run, uint64_t before) {
    if (before && run >= before) return;
    for (size_t i = 0; i < list->run_count; i++) {
        if (list->runs[i] == run) return;
    }
    list->runs = mem_resize(list->runs, (list->run_count + 1) * sizeof(*list->runs));
    list->runs[list->run_count++] = run;
}

/* Tasks that were live, and stored ones; of the latter the newest. */
static void gather(struct a2a_list *list, struct str session, const uint64_t *stored,
                   size_t count) {
    const struct a2a_call *call = list->call;
    const struct a2a_request *request = &call->request;
    uint64_t before = list->current == request->before_session ? request->before : 0;
    struct session_runs live;
    free(list->runs);
    list->runs = NULL;
    list->run_count = list->run = 0;
    list->has_older = false;
    directory_of_session(session_table_directory(http_turn_sessions(&call->http)),
                         call->http.workspace, call->http.user, session, &live);
    for (size_t i = 0; i < live.count; i++) add_run(list, live.runs[i], before);
    for (size_t i = count; i > 0; i--) {
        list->has_older = list->run_count >= LOOK_MAX;
        if (list->has_older) break;
        add_run(list, stored[i - 1], before);
    }
    if (list->run_count) qsort(list->runs, list->run_count, sizeof(*list->runs), newest_first);
}

static struct str session_of(const struct a2a_list *list) {
    if (list->call->request.context.len) return list->call->request.context;
    return text_str(list->sessions[list->session - 1].name);
}

static void on_runs(const struct sessions_answer *answer, const struct err *failed, void *ctx) {
    struct a2a_list *list = ctx;
    list->ask = NULL;
    if (failed && failed->code != ERR_NOT_FOUND) {
        http_turn_give_up(&list->call->http, failed);
        return;
    }
    gather(list, session_of(list), failed ? NULL : answer->runs,
           failed ? 0 : answer->run_count);
    list_go_on(list);
}

static void ask_runs(struct a2a_list *list) {
    struct a2a_call *call = list->call;
    list->ask = sessions_runs_start(call->instance->store, route_loop(call->http.call),
                                    call->http.workspace, call->http.user, session_of(list),
                                    on_runs, list);
}

/* --- its sessions ------------------------------------------------------------------------- */

static void on_sessions(const struct sessions_answer *answer, const struct err *failed,
                        void *ctx) {
    struct a2a_list *list = ctx;
    list->ask = NULL;
    if (failed) {
        http_turn_give_up(&list->call->http, failed);
        return;
    }
    for (size_t i = 0; i < list->session_count; i++) text_done(&list->sessions[i].name);
    list->session = 0;
    list->session_count = answer->count < SESSIONS_AT_ONCE ? answer->count : SESSIONS_AT_ONCE;
    for (size_t i = 0; i < list->session_count; i++) {
        const struct stored_session *session = &answer->sessions[i];
        list->sessions[i] = (struct listed_session){session->id, text_copy(session->session)};
    }
    list->next = answer->next;
    list_go_on(list);
}

static void ask_sessions(struct a2a_list *list, int64_t before) {
    struct a2a_call *call = list->call;
    const struct sessions_filter filter = {.workspace = call->http.workspace,
                                           .user = call->http.user,
                                           .before = before,
                                           .limit = SESSIONS_AT_ONCE};
    list->next = 0;
    list->ask = sessions_list_start(call->instance->store, route_loop(call->http.call), &filter,
                                    on_sessions, list);
}

/* --- one after the other ------------------------------------------------------------------ */

/* The page holds what it may, and there may be more. */
static bool is_full(const struct a2a_list *list) {
    return list->written == list->call->request.page_size || list->looked == LOOK_MAX ||
           list->body.len > BODY_MAX_BYTES / 2;
}

static void list_go_on(struct a2a_list *list) {
    while (list->run < list->run_count) {
        if (is_full(list)) {
            list_end(list, true);
            return;
        }
        if (!read_run(list, list->runs[list->run++])) return;
        list_take(list);
    }
    if (list->has_older) {
        list_end(list, true);
    } else if (list->session < list->session_count) {
        list->current = list->sessions[list->session++].id;
        list->last = 0; /* of the one before */
        ask_runs(list);
    } else if (list->next) {
        ask_sessions(list, list->next);
    } else {
        list_end(list, false);
    }
}

void a2a_list(struct a2a_call *call) {
    struct a2a_list *list = MEM_NEW(struct a2a_list);
    call->list = list;
    list->call = call;
    buf_init(&list->body, 2 * BODY_MAX_BYTES);
    list->w = json_writer(&list->body);
    json_open_object(&list->w);
    json_member_array(&list->w, "tasks");
    http_turn_watch(&call->http);
    if (call->request.context.len) {
        ask_runs(list);
    } else {
        int64_t first = call->request.before_session;
        ask_sessions(list, first ? first + 1 : 0);
    }
}
