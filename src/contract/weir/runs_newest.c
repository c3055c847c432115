/* GET /weir/v1/runs: the runs that the caller may see, newest first, a page at a time.
 *
 * The store lists its runs, and the directory those that are alive and perhaps not stored yet; the
 * two lists are merged by id. Of each run its beginning is read: which agent was asked for what. */
#include "base/mem.h"
#include "base/utf8.h"
#include "contract/weir/inner.h"
#include "record/run_state.h"
#include "session/dormant_runs.h"
#include "store/run_list.h"

#include <stdlib.h>

#define LIST_USUAL 50
#define NAMES_MAX_BYTES (16 * MIB)
#define BODY_MAX_BYTES (32 * MIB)
#define TEXT_SHOWN_BYTES 300 /* of what was asked */

struct newest {
    struct api_request request; /* its arena holds the filter */
    struct api_instance *instance;
    struct run_list_filter filter;
    struct str agent, state; /* empty: any */
    struct run_list_ask *ask;
    uint64_t live[RUN_LIST_MAX]; /* those alive before the store was asked */
    size_t live_count;
    struct arena *names; /* of the runs */
    struct listed_run *runs;
    bool *stored;       /* false: only in memory so far */
    size_t count, next; /* next: index of the current one */
    uint64_t cursor;    /* `next` of this page */
    struct run_summary summary;
    struct run_scan *scan;
    struct route_json reply;
};

static void newest_over(void *ctx) {
    struct newest *newest = ctx;
    run_list_forget(newest->ask);
    run_scan_cancel(newest->scan);
    run_summary_done(&newest->summary);
    buf_done(&newest->reply.text);
    arena_free(newest->names);
    arena_free(newest->request.arena);
    free(newest->runs);
    free(newest->stored);
    free(newest);
}

static const struct route_watch newest_watch = {.left = newest_over, .closed = newest_over};

/* --- which runs --------------------------------------------------------------------------- */

static bool is_any(struct str wanted, struct str name) {
    return !wanted.at || str_equal(wanted, name);
}

static void keep_run(struct newest *newest, struct listed_run run, bool stored) {
    struct str *const names[] = {&run.workspace, &run.user, &run.session, &run.contract};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!arena_str(newest->names, *names[i], names[i])) *names[i] = STR_EMPTY;
    }
    newest->stored[newest->count] = stored;
    newest->runs[newest->count++] = run;
}

/* A live run that the store has not listed: it is not there yet, or it does not fit the filter. */
static void keep_live(struct newest *newest, uint64_t run) {
    const struct run_list_filter *filter = &newest->filter;
    struct live_view view;
    if (!directory_find(newest->instance->directory, run, &view)) return;
    if (is_any(filter->workspace, view.workspace) && is_any(filter->user, view.user) &&
        is_any(filter->session, view.session))
        keep_run(newest,
                 (struct listed_run){.id = run,
                                     .workspace = view.workspace,
                                     .user = view.user,
                                     .session = view.session},
                 false);
    live_view_done(&view);
}

/* Runs older than the store has looked at belong to a later page. */
static void newest_merge(struct newest *newest, const struct run_list_page *page) {
    size_t live = 0, stored = 0;
    newest->cursor = page->next;
    while (newest->count < newest->filter.limit) {
        uint64_t alive = live < newest->live_count ? newest->live[live] : 0;
        uint64_t known = stored < page->count ? page->runs[stored].id : 0;
        if (alive < page->next) alive = 0;
        if (!alive && !known) return;
        if (known >= alive) {
            keep_run(newest, page->runs[stored++], true);
        } else {
            keep_live(newest, alive);
        }
        if (known <= alive) live++;
    }
    bool more =
        stored < page->count || (live < newest->live_count && newest->live[live] >= page->next);
    if (more) newest->cursor = newest->runs[newest->count - 1].id;
}

/* --- one of them -------------------------------------------------------------------------- */

/* As it is now: a run that is open in the store may be alive, or wait outside memory. */
static struct str state_of(const struct newest *newest, const struct listed_run *run) {
    static const char *const ended[EVENT_KIND_COUNT] = {
        [EVENT_DONE] = "done", [EVENT_FAILED] = "failed", [EVENT_CANCELLED] = "cancelled"};
    static const char *const alive[RUN_STATE_COUNT] = {
        [RUN_QUEUED] = "queued",      [RUN_ASKING] = "running", [RUN_WORKING] = "running",
        [RUN_WAITING] = "waiting",    [RUN_DONE] = "done",      [RUN_FAILED] = "failed",
        [RUN_CANCELLED] = "cancelled"};
    struct live_view view;
    struct dormant_run dormant;
    bool over = run->state > 0 && run->state < EVENT_KIND_COUNT && ended[run->state];
    if (over) return str_from(ended[run->state]);
    if (directory_find(newest->instance->directory, run->id, &view)) {
        int state = view.state;
        live_view_done(&view);
        return str_from(alive[state]);
    }
    if (dormant_runs_find(directory_dormant(newest->instance->directory), run->id, &dormant))
        return STR("waiting");
    return STR("running");
}

static void write_asked(struct json_writer *json, struct str text) {
    struct str shown = str_head(text, utf8_cut(text, TEXT_SHOWN_BYTES));
    json_member_str(json, "text", shown);
    json_member_bool(json, "text_cut", shown.len < text.len);
}

static void write_newest(struct newest *newest) {
    const struct listed_run *run = &newest->runs[newest->next];
    const struct run_summary *summary = &newest->summary;
    struct json_writer *json = &newest->reply.w;
    struct str contract = run->contract.len ? run->contract : summary->contract;
    struct str state = state_of(newest, run);
    bool wanted = (newest->agent.len == 0 || str_equal(newest->agent, summary->agent)) &&
                  (newest->state.len == 0 || str_equal(newest->state, state)) &&
                  is_any(newest->filter.contract, contract);
    if (!wanted) return;
    json_open_object(json);
    event_json_id(json, "id", run->id);
    json_member_str(json, "state", state);
    json_member_str(json, "workspace", run->workspace);
    json_member_str(json, "user", run->user);
    json_member_str(json, "session_id", run->session);
    json_member_str(json, "agent", summary->agent);
    json_member_str(json, "contract", contract);
    write_asked(json, summary->text);
    if (run->parent) event_json_id(json, "parent", run->parent);
    json_member_i64(json, "started_unix_ms",
                    run->started_ms ? run->started_ms : summary->started_ms);
    if (run->ended_ms) json_member_i64(json, "ended_unix_ms", run->ended_ms);
    json_close(json);
}

static void newest_go_on(struct newest *newest);

static void on_head(const struct err *failed, void *ctx) {
    struct newest *newest = ctx;
    newest->scan = NULL;
    if (failed) {
        route_refuse(newest->request.call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
        return;
    }
    write_newest(newest);
    newest->next++;
    newest_go_on(newest);
}

/* One that has left memory meanwhile is in the store. */
static void newest_go_on(struct newest *newest) {
    struct api_instance *instance = newest->instance;
    for (; newest->next < newest->count; newest->next++) {
        uint64_t run = newest->runs[newest->next].id;
        run_summary_done(&newest->summary);
        run_summary_init(&newest->summary, run);
        if (newest->stored[newest->next] ||
            !run_summary_read_live(&newest->summary, instance->directory, instance->loop)) {
            newest->scan = run_head_start(instance->loop, instance->store, &newest->summary,
                                          on_head, newest);
            return;
        }
        write_newest(newest);
    }
    json_close(&newest->reply.w);
    if (newest->cursor) event_json_id(&newest->reply.w, "next", newest->cursor);
    json_member_bool(&newest->reply.w, "more", newest->cursor != 0);
    route_json_reply(&newest->reply, newest->request.call, 200);
}

static void runs_newest_on_page(const struct run_list_page *page, const struct err *failed,
                                void *ctx) {
    struct newest *newest = ctx;
    newest->ask = NULL;
    if (failed) {
        route_refuse(newest->request.call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
        return;
    }
    newest_merge(newest, page);
    json_member_array(route_json_object(&newest->reply, BODY_MAX_BYTES), "runs");
    newest_go_on(newest);
}

/* --- the request -------------------------------------------------------------------------- */

static bool take_state(struct api_request *request, struct newest *newest) {
    static const struct {
        const char *name;
        int64_t stored;
    } states[] = {
        {"queued", 0},        {"running", 0},           {"waiting", 0},
        {"done", EVENT_DONE}, {"failed", EVENT_FAILED}, {"cancelled", EVENT_CANCELLED}};
    newest->filter.state = -1;
    if (!api_request_value(request, STR("state"), &newest->state)) return false;
    if (newest->state.len == 0) return true;
    for (size_t i = 0; i < ARRAY_LEN(states); i++) {
        newest->filter.state = states[i].stored;
        if (str_equal(newest->state, str_from(states[i].name))) return true;
    }
    return api_request_refuse(request, 422,
                              "state must be queued, running, waiting, done, failed or "
                              "cancelled");
}

/* An empty filter lets everything pass. */
static bool take_any(struct api_request *request, struct str name, struct str *ret) {
    if (!api_request_value(request, name, ret)) return false;
    if (ret->len == 0) *ret = (struct str){NULL, 0};
    return true;
}

static bool take_before(struct api_request *request, uint64_t *ret) {
    struct str text;
    *ret = 0;
    if (!api_request_value(request, STR("before"), &text)) return false;
    if (text.len == 0 || (str_to_u64(text, ret) && *ret > 0 && *ret <= INT64_MAX)) return true;
    return api_request_refuse(request, 400, "before must be the `next` of a page");
}

static bool read_newest(struct newest *newest) {
    struct api_request *request = &newest->request;
    struct run_list_filter *filter = &newest->filter;
    return api_request_whose(request, &filter->workspace, &filter->user) &&
           take_any(request, STR("session"), &filter->session) &&
           take_any(request, STR("contract"), &filter->contract) &&
           api_request_value(request, STR("agent"), &newest->agent) &&
           take_state(request, newest) && take_before(request, &filter->before) &&
           api_request_limit(request, LIST_USUAL, RUN_LIST_MAX, &filter->limit);
}

void api_list_newest_runs(struct route_call *call, struct api_instance *instance) {
    static const char *const names[] = {"workspace", "user",   "session", "contract", "agent",
                                        "state",     "before", "limit",   NULL};
    struct newest *newest = MEM_NEW(struct newest);
    *newest = (struct newest){.instance = instance};
    run_summary_init(&newest->summary, 0);
    if (!api_request_begin(&newest->request, call, instance, names)) {
        newest->request.arena = NULL; /* it is gone already */
        newest_over(newest);
        return;
    }
    if (!read_newest(newest)) {
        newest_over(newest);
        return;
    }
    uint64_t before = newest->filter.before ? newest->filter.before : UINT64_MAX;
    newest->names = arena_new(NAMES_MAX_BYTES);
    newest->runs = mem_zero(newest->filter.limit, sizeof(*newest->runs));
    newest->stored = mem_zero(newest->filter.limit, sizeof(bool));
    newest->live_count =
        directory_newest(instance->directory, before, RUN_LIST_MAX, newest->live);
    route_watch(call, &newest_watch, newest);
    newest->ask = run_list_start(instance->store, instance->loop, &newest->filter,
                                 runs_newest_on_page, newest);
}
