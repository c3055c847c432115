#include "contract/run_summary.h"

#include "base/mem.h"

#include <stdlib.h>

#define NAMES_MAX_BYTES (8 * MIB)
#define PIECE_MAX_BYTES (1 * MIB)
#define HEAD_MAX_BYTES (4 * KIB) /* a first event that is longer comes whole */

/* --- summaries ---------------------------------------------------------------------------- */

void run_summary_init(struct run_summary *summary, uint64_t run) {
    *summary = (struct run_summary){.run = run};
    buf_init(&summary->names, NAMES_MAX_BYTES);
}

void run_summary_done(struct run_summary *summary) {
    buf_done(&summary->names);
}

static struct str summary_keep(struct run_summary *summary, struct str text) {
    size_t at = summary->names.len;
    if (!buf_append(&summary->names, text)) return STR_EMPTY;
    return str_of(summary->names.at + at, text.len);
}

/* Reserve room, so that views of the names do not move. */
static bool reserve(struct run_summary *summary, size_t len) {
    return buf_room(&summary->names, len + 1) != NULL;
}

static void add_started(struct run_summary *summary, const struct event *event) {
    if (!reserve(summary, event->started.workspace.len + event->started.user.len +
                              event->started.session.len + event->started.text.len +
                              event->started.contract.len + event->agent.len)) {
        return;
    }
    summary->known = summary->started = true;
    summary->started_ms = event->started.unix_ms;
    summary->parent = event->started.parent;
    summary->workspace = summary_keep(summary, event->started.workspace);
    summary->user = summary_keep(summary, event->started.user);
    summary->session = summary_keep(summary, event->started.session);
    summary->text = summary_keep(summary, event->started.text);
    summary->contract = summary_keep(summary, event->started.contract);
    summary->agent = summary_keep(summary, event->agent);
}

/* Fill the summary of a live run that has no events yet. */
static void run_summary_queued(struct run_summary *summary, const struct live_view *view) {
    if (!reserve(summary, view->workspace.len + view->user.len + view->session.len)) return;
    summary->known = true;
    summary->workspace = summary_keep(summary, view->workspace);
    summary->user = summary_keep(summary, view->user);
    summary->session = summary_keep(summary, view->session);
}

struct str run_summary_state(const struct run_summary *summary) {
    static const struct str ended[EVENT_KIND_COUNT] = {[EVENT_DONE] = STR_INIT("done"),
                                                       [EVENT_FAILED] = STR_INIT("failed"),
                                                       [EVENT_CANCELLED] =
                                                           STR_INIT("cancelled"),
                                                       [EVENT_APPROVAL] = STR_INIT("waiting")};
    if (!summary->started) return STR("queued");
    struct str state = ended[summary->last_kind];
    return state.len ? state : STR("running");
}

static void add_count(int64_t *sum, int64_t count) {
    if (*sum == TOKENS_UNKNOWN || count == TOKENS_UNKNOWN ||
        __builtin_add_overflow(*sum, count, sum)) {
        *sum = TOKENS_UNKNOWN;
    }
}

static void add_usage(struct run_summary *summary, const struct event_usage *usage) {
    struct event_usage *sum = &summary->usage;
    add_count(&sum->prompt, usage->prompt);
    add_count(&sum->completion, usage->completion);
    add_count(&sum->total, usage->total);
    sum->call_sequence++; /* here: the number of calls */
}

static void run_summary_add(struct run_summary *summary, const struct event *event,
                            uint64_t seq) {
    if (summary->each) summary->each(event, seq, summary->each_ctx);
    if (event->kind == EVENT_STARTED) add_started(summary, event);
    if (event->kind == EVENT_USAGE) add_usage(summary, &event->usage);
    if (event_is_terminal(event->kind)) summary->ended_ms = summary->started_ms + event->at_ms;
    summary->interrupted =
        event->kind == EVENT_FAILED && str_equal(event->failed.reason, STR("INTERRUPTED"));
    summary->last_kind = event->kind;
    summary->last_seq = seq;
}

static bool add_live(struct run_summary *summary, const struct live_view *view,
                     struct loop *loop) {
    struct cursor *cursor;
    struct event event;
    struct err e;
    if (!cursor_open(view->journal, 0, loop, NULL, NULL, &cursor, &e)) return false;
    while (cursor_next(cursor, &event)) run_summary_add(summary, &event, event.seq);
    cursor_close(cursor);
    if (!summary->known) run_summary_queued(summary, view);
    return true;
}

bool run_summary_read_live(struct run_summary *summary, struct directory *directory,
                           struct loop *loop) {
    struct live_view view;
    if (!directory_find(directory, summary->run, &view)) return false;
    bool whole = add_live(summary, &view, loop);
    live_view_done(&view);
    return whole;
}

bool run_is_live(struct directory *directory, uint64_t run) {
    struct live_view view;
    bool live = directory_find(directory, run, &view);
    if (live) live_view_done(&view);
    return live;
}

/* Add all events of a store's section. */
static void run_summary_add_section(struct run_summary *summary,
                                    const struct store_section *section) {
    struct str rest = section->events;
    uint64_t seq = section->first_seq;
    struct event event = {0};
    struct err e;
    while (rest.len && event_decode(&rest, &event, &e)) run_summary_add(summary, &event, seq++);
}

/* --- reading a whole run ------------------------------------------------------------------ */

struct run_scan {
    struct loop *loop;
    struct store *store;
    struct run_summary *summary; /* NULL once cancelled */
    size_t piece_max_bytes;
    bool head; /* the first piece alone */
    run_scanned_fn *done;
    void *ctx;
    struct store_load load;
};

static void load_piece(struct run_scan *scan);

static void run_summary_on_piece(struct store_load *load, const struct err *failed, void *ctx) {
    struct run_scan *scan = ctx;
    struct run_summary *summary = scan->summary;
    uint64_t before = summary ? summary->last_seq : 0;
    for (size_t i = 0; summary && !failed && i < load->section_count; i++) {
        run_summary_add_section(summary, &load->sections[i]);
    }
    bool more = load->more;
    arena_free(load->arena);
    if (summary && !failed && more && !scan->head && summary->last_seq > before) {
        load_piece(scan);
        return;
    }
    struct err why;
    if (failed) why = *failed;
    run_scanned_fn *done = summary ? scan->done : NULL;
    ctx = scan->ctx;
    free(scan);
    if (done) done(failed ? &why : NULL, ctx);
}

static void load_piece(struct run_scan *scan) {
    scan->load = (struct store_load){.question = STORE_RUN,
                                     .run = scan->summary->run,
                                     .after_seq = scan->summary->last_seq,
                                     .max_bytes = scan->piece_max_bytes,
                                     .home = scan->loop,
                                     .on_loaded = run_summary_on_piece,
                                     .ctx = scan};
    store_load(scan->store, &scan->load);
}

static struct run_scan *scan_new(const struct run_scan *options) {
    struct run_scan *scan = MEM_NEW(struct run_scan);
    *scan = *options;
    load_piece(scan);
    return scan;
}

struct run_scan *run_scan_start(struct loop *loop, struct store *store,
                                struct run_summary *summary, run_scanned_fn *done, void *ctx) {
    return scan_new(&(struct run_scan){.loop = loop,
                                       .store = store,
                                       .summary = summary,
                                       .piece_max_bytes = PIECE_MAX_BYTES,
                                       .done = done,
                                       .ctx = ctx});
}

struct run_scan *run_head_start(struct loop *loop, struct store *store,
                                struct run_summary *summary, run_scanned_fn *done, void *ctx) {
    return scan_new(&(struct run_scan){.loop = loop,
                                       .store = store,
                                       .summary = summary,
                                       .piece_max_bytes = HEAD_MAX_BYTES,
                                       .head = true,
                                       .done = done,
                                       .ctx = ctx});
}

void run_scan_cancel(struct run_scan *scan) {
    if (scan) scan->summary = NULL;
}
