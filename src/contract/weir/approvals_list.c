/* GET /weir/v1/approvals: the runs that wait for a human, lowest id first.
 *
 * Runs in memory are in the table of pending approvals. The questions of the others are read
 * from their events, one run after another; this does not bring a run back into memory. */
#include "base/mem.h"
#include "contract/weir/inner.h"

#include <stdlib.h>

#define LIST_USUAL 100
#define LIST_MOST 1000
#define LIST_MAX_BYTES (4 * MIB)
#define RUN_MAX_BYTES (32 * MIB) /* of one run's texts, the most it can hold */
#define BODY_MAX_BYTES (64 * MIB)
#define LOOKS_MAX 10 /* in case runs keep falling asleep */

/* The filter's texts are in the request. */
struct listing {
    struct api_request request;
    struct api_instance *instance;
    struct pending_approvals_filter filter;
    size_t limit;
    struct arena *arena;        /* holds the texts of the views */
    struct pending_view *views; /* lowest run first; seq 0: read it, or it waits no longer */
    size_t count;
    bool more;
    size_t next; /* index of the current one */
    struct run_summary summary;
    struct run_scan *scan;
    struct arena *texts; /* of the current run */
    struct pending_view found;
    bool waits;
};

static void listing_over(void *ctx) {
    struct listing *listing = ctx;
    run_scan_cancel(listing->scan);
    run_summary_done(&listing->summary);
    arena_free(listing->texts);
    arena_free(listing->arena);
    arena_free(listing->request.arena);
    free(listing->views);
    free(listing);
}

static const struct route_watch listing_watch = {.left = listing_over, .closed = listing_over};

/* --- which runs ---------------------------------------------------------------------------- */

/* Merge the runs that are not in memory into the views. A run in both has come back. */
static void merge(struct listing *listing, const uint64_t *asleep, size_t asleep_count) {
    struct pending_view *merged = mem_zero(listing->limit, sizeof(*merged));
    size_t count = 0, live = 0, at = 0;
    while (count < listing->limit && (live < listing->count || at < asleep_count)) {
        bool is_live = live < listing->count &&
                       (at == asleep_count || listing->views[live].run <= asleep[at]);
        if (is_live && at < asleep_count && listing->views[live].run == asleep[at]) at++;
        merged[count++] = is_live ? listing->views[live++]
                                  : (struct pending_view){.run = asleep[at++], .seq = 0};
    }
    if (live < listing->count || at < asleep_count) listing->more = true;
    free(listing->views);
    listing->views = merged;
    listing->count = count;
}

/* False: a run may have left memory between the two look-ups, and is in neither list. */
static bool approvals_list_look(struct listing *listing, uint64_t *asleep, size_t *ret_asleep) {
    const struct pending_approvals_filter *filter = &listing->filter;
    const struct dormant_filter sleepers = {filter->workspace, filter->user, filter->session,
                                            filter->run};
    struct dormant_runs *dormant = directory_dormant(listing->instance->directory);
    uint64_t added = dormant_runs_added(dormant);
    *ret_asleep = dormant_runs_lowest(dormant, &sleepers, listing->limit + 1, asleep);
    arena_free(listing->arena);
    listing->arena = arena_new(LIST_MAX_BYTES);
    listing->count =
        pending_approvals_list(session_table_approvals(listing->instance->sessions), filter,
                               listing->limit, listing->arena, listing->views, &listing->more);
    return dormant_runs_added(dormant) == added;
}

static void find_runs(struct listing *listing) {
    uint64_t *asleep = mem_zero(listing->limit + 1, sizeof(*asleep));
    size_t count = 0;
    listing->views = mem_zero(listing->limit, sizeof(*listing->views));
    for (unsigned looks = 0; looks < LOOKS_MAX && !approvals_list_look(listing, asleep, &count);
         looks++) {
    }
    merge(listing, asleep, count);
    free(asleep);
}

/* --- what one of them asks ----------------------------------------------------------------- */

static bool approvals_list_keep(struct listing *listing, struct str text, struct str *ret) {
    return arena_str(listing->texts, text, ret);
}

static void note_event(const struct event *event, uint64_t seq, void *ctx) {
    struct listing *listing = ctx;
    struct pending_question *asked = &listing->found.asked;
    if (event->kind == EVENT_ITEM) return; /* does not end the wait: restore_run_waits() */
    listing->waits = false;
    if (event->kind != EVENT_APPROVAL) return;
    arena_free(listing->texts);
    listing->texts = arena_new(RUN_MAX_BYTES);
    listing->found = (struct pending_view){.run = listing->summary.run, .seq = seq};
    asked->asked_unix_ms = listing->summary.started_ms + event->at_ms;
    listing->waits = approvals_list_keep(listing, event->agent, &asked->agent) &&
                     approvals_list_keep(listing, event->approval.question, &asked->question) &&
                     approvals_list_keep(listing, event->approval.tool, &asked->tool) &&
                     approvals_list_keep(listing, event->approval.args, &asked->args) &&
                     approvals_list_keep(listing, event->approval.guards, &asked->guards);
}

static bool is_meant(const struct listing *listing) {
    const struct pending_approvals_filter *filter = &listing->filter;
    const struct run_summary *summary = &listing->summary;
    return listing->waits &&
           (!filter->workspace.at || str_equal(filter->workspace, summary->workspace)) &&
           (!filter->user.at || str_equal(filter->user, summary->user)) &&
           (!filter->session.at || str_equal(filter->session, summary->session));
}

/* False: it does not fit. */
static bool copy_found(const struct listing *listing, struct pending_view *ret) {
    const struct run_summary *summary = &listing->summary;
    const struct pending_question *from = &listing->found.asked;
    struct pending_view view = listing->found;
    struct arena *arena = listing->arena;
    if (!arena_str(arena, summary->workspace, &view.name.workspace) ||
        !arena_str(arena, summary->user, &view.name.user) ||
        !arena_str(arena, summary->session, &view.name.session) ||
        !arena_str(arena, from->agent, &view.asked.agent) ||
        !arena_str(arena, from->question, &view.asked.question) ||
        !arena_str(arena, from->tool, &view.asked.tool) ||
        !arena_str(arena, from->args, &view.asked.args) ||
        !arena_str(arena, from->guards, &view.asked.guards))
        return false;
    *ret = view;
    return true;
}

/* The deadline is in the list of dormant runs. A run that came back meanwhile is read in
 * memory. */
static void take_found(struct listing *listing) {
    struct pending_view *view = &listing->views[listing->next];
    struct dormant_run sleeper;
    if (dormant_runs_find(directory_dormant(listing->instance->directory), view->run,
                          &sleeper)) {
        listing->found.asked.deadline_unix_ms = sleeper.deadline_unix_ms;
        if (!copy_found(listing, view)) listing->more = true;
        return;
    }
    const struct pending_approvals_filter this_one = {.run = view->run};
    struct pending_view live;
    bool more;
    if (pending_approvals_list(session_table_approvals(listing->instance->sessions), &this_one,
                               1, listing->arena, &live, &more) == 1)
        *view = live;
}

/* --- the answer ---------------------------------------------------------------------------- */

static void approvals_list_answer(struct listing *listing) {
    struct buf body;
    buf_init(&body, BODY_MAX_BYTES);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    json_member_array(&json, "approvals");
    for (size_t i = 0; i < listing->count; i++) {
        if (listing->views[i].seq)
            api_write_approval(&json, &listing->views[i], "waiting", STR_EMPTY);
    }
    json_close(&json);
    json_member_bool(&json, "more", listing->more);
    json_close(&json);
    route_reply(listing->request.call, 200, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

static void read_next(struct listing *listing);

static void on_read(const struct err *failed, void *ctx) {
    struct listing *listing = ctx;
    listing->scan = NULL;
    if (failed) {
        api_refuse(listing->request.call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
        return;
    }
    if (is_meant(listing)) take_found(listing);
    listing->next++;
    read_next(listing);
}

static void read_next(struct listing *listing) {
    while (listing->next < listing->count && listing->views[listing->next].seq) listing->next++;
    run_summary_done(&listing->summary);
    listing->waits = false;
    if (listing->next == listing->count) {
        run_summary_init(&listing->summary, 0);
        approvals_list_answer(listing);
        return;
    }
    run_summary_init(&listing->summary, listing->views[listing->next].run);
    listing->summary.each = note_event;
    listing->summary.each_ctx = listing;
    listing->scan = run_scan_start(listing->instance->loop, listing->instance->store,
                                   &listing->summary, on_read, listing);
}

/* --- the request --------------------------------------------------------------------------- */

static bool read_listing(struct listing *listing) {
    struct pending_approvals_filter *filter = &listing->filter;
    struct api_request *request = &listing->request;
    bool read = api_request_whose(request, &filter->workspace, &filter->user) &&
                api_request_value(request, STR("session_id"), &filter->session) &&
                api_request_limit(request, LIST_USUAL, LIST_MOST, &listing->limit);
    if (filter->session.len == 0) filter->session = (struct str){NULL, 0};
    return read;
}

void api_list_approvals(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "user", "session_id", "limit", NULL};
    struct listing *listing = MEM_NEW(struct listing);
    listing->instance = ctx;
    run_summary_init(&listing->summary, 0);
    if (!api_request_begin(&listing->request, call, ctx, names)) {
        free(listing);
        return;
    }
    if (!read_listing(listing)) {
        listing_over(listing);
        return;
    }
    route_watch(call, &listing_watch, listing);
    find_runs(listing);
    read_next(listing);
}
