/* GET /weir/v1/approvals: the runs that wait for a human, lowest id first.
 *
 *     the store ─▶ those that are not in memory here ─┐
 *     the table of pending approvals ─▶ the others ───┴▶ merged, each once
 *
 * The store is asked first: a run that leaves memory afterwards was in it before. It is not
 * asked where every run that waits is in memory. No run is brought back into memory for it. */
#include "base/mem.h"
#include "contract/weir/inner.h"
#include "store/waiting_list.h"

#include <stdlib.h>

#define LIST_USUAL 100
#define LIST_MOST 1000
#define LIST_MAX_BYTES (4 * MIB)
#define BODY_MAX_BYTES (64 * MIB)

/* The filter's texts are in the request. */
struct listing {
    struct api_request request;
    struct api_instance *instance;
    struct pending_approvals_filter filter;
    size_t limit;
    struct arena *arena;        /* holds the texts of the views */
    struct pending_view *views; /* lowest run first */
    size_t count;
    bool more;
    struct waiting_list_ask *stored; /* NULL: not on its way */
};

static void listing_over(void *ctx) {
    struct listing *listing = ctx;
    waiting_list_forget(listing->stored);
    arena_free(listing->arena);
    arena_free(listing->request.arena);
    free(listing->views);
    free(listing);
}

static const struct route_watch listing_watch = {.left = listing_over, .closed = listing_over};

/* --- those in memory ----------------------------------------------------------------------- */

static void find_live(struct listing *listing) {
    arena_free(listing->arena);
    free(listing->views);
    listing->arena = arena_new(2 * LIST_MAX_BYTES); /* as much again for what is stored */
    listing->views = mem_zero(listing->limit, sizeof(*listing->views));
    listing->count = pending_approvals_list(
        session_table_approvals(listing->instance->sessions), &listing->filter, listing->limit,
        listing->arena, listing->views, &listing->more);
}

/* --- those in the store -------------------------------------------------------------------- */

static bool copy_stored(struct arena *arena, const struct waiting_run *from,
                        struct pending_view *ret) {
    struct pending_question *asked = &ret->asked;
    *ret = (struct pending_view){.run = from->run, .seq = from->seq};
    asked->asked_unix_ms = from->asked_unix_ms;
    return arena_str(arena, from->workspace, &ret->name.workspace) &&
           arena_str(arena, from->user, &ret->name.user) &&
           arena_str(arena, from->session, &ret->name.session) &&
           arena_str(arena, from->agent, &asked->agent) &&
           arena_str(arena, from->question, &asked->question) &&
           arena_str(arena, from->tool, &asked->tool) &&
           arena_str(arena, from->args, &asked->args) &&
           arena_str(arena, from->guards, &asked->guards);
}

/* Whether it waits still. The deadline is in the list of dormant runs; that of a run at another
 * replica is not known here. What was answered here meanwhile waits no longer. */
static bool take_stored(struct listing *listing, const struct waiting_run *from,
                        struct pending_view *ret) {
    struct dormant_runs *dormant = directory_dormant(listing->instance->directory);
    struct dormant_run sleeper = {.run = 0};
    bool asleep = dormant_runs_find(dormant, from->run, &sleeper);
    /* It may have come back into memory after those there were listed. */
    if (!asleep && api_waiting(listing->instance, from->run, listing->arena, ret)) return true;
    /* It may have fallen asleep in between. */
    asleep = asleep || dormant_runs_find(dormant, from->run, &sleeper);
    bool elsewhere = store_is_shared(listing->instance->store) &&
                     !run_is_live(listing->instance->directory, from->run);
    if (!asleep && !elsewhere) return false;
    if (!copy_stored(listing->arena, from, ret)) {
        listing->more = true;
        return false;
    }
    ret->asked.deadline_unix_ms = sleeper.deadline_unix_ms;
    return true;
}

/* Merge them into the views. A run in both is in memory. */
static void merge(struct listing *listing, const struct waiting_list_page *page) {
    struct pending_view *merged = mem_zero(listing->limit, sizeof(*merged));
    size_t count = 0, live = 0, at = 0;
    while (count < listing->limit && (live < listing->count || at < page->count)) {
        bool is_live_one =
            live < listing->count &&
            (at == page->count || listing->views[live].run <= page->runs[at].run);
        if (is_live_one && at < page->count && listing->views[live].run == page->runs[at].run)
            at++;
        if (is_live_one)
            merged[count++] = listing->views[live++];
        else
            count += take_stored(listing, &page->runs[at++], &merged[count]);
    }
    if (live < listing->count || at < page->count || page->more) listing->more = true;
    free(listing->views);
    listing->views = merged;
    listing->count = count;
}

/* --- the answer ---------------------------------------------------------------------------- */

static void approvals_list_answer(struct listing *listing) {
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, BODY_MAX_BYTES);
    json_member_array(json, "approvals");
    for (size_t i = 0; i < listing->count; i++)
        api_write_approval(json, &listing->views[i], "waiting", STR_EMPTY);
    json_close(json);
    json_member_bool(json, "more", listing->more);
    route_json_reply(&reply, listing->request.call, 200);
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

static void on_stored(const struct waiting_list_page *page, const struct err *failed,
                      void *ctx) {
    struct listing *listing = ctx;
    listing->stored = NULL;
    if (failed) {
        route_refuse(listing->request.call, 503, STR("STORE_UNAVAILABLE"), "%s", failed->text);
        return;
    }
    find_live(listing);
    merge(listing, page);
    approvals_list_answer(listing);
}

static void ask_store(struct listing *listing) {
    const struct pending_approvals_filter *filter = &listing->filter;
    listing->stored =
        waiting_list_start(listing->instance->store, listing->instance->loop,
                           &(struct waiting_list_filter){filter->workspace, filter->user,
                                                         filter->session, listing->limit},
                           on_stored, listing);
}

/* False: all are in memory, and listed now. Others fall asleep and wake up meanwhile. */
static bool needs_store(struct listing *listing) {
    const struct api_instance *instance = listing->instance;
    const struct dormant_runs *dormant = directory_dormant(instance->directory);
    uint64_t added = dormant_runs_added(dormant);
    if (instance->store && store_is_shared(instance->store)) return true;
    find_live(listing);
    return dormant_runs_count(dormant) > 0 || dormant_runs_added(dormant) != added;
}

void api_list_approvals(struct route_call *call, void *ctx) {
    static const char *const names[] = {"workspace", "user", "session_id", "limit", NULL};
    struct listing *listing = MEM_NEW(struct listing);
    listing->instance = ctx;
    if (!api_request_begin(&listing->request, call, ctx, names)) {
        free(listing);
        return;
    }
    if (!read_listing(listing)) {
        listing_over(listing);
        return;
    }
    route_watch(call, &listing_watch, listing);
    if (needs_store(listing))
        ask_store(listing);
    else
        approvals_list_answer(listing);
}
