#include "store/waiting_list.h"

#include "base/buf.h"
#include "base/mem.h"
#include "store/row.h"
#include "store/run.h"
#include "store/task.h"
#include "store/varint.h"
#include "wire/event.h"

#include <stdlib.h>

#define PAGE_TEXT_MAX_BYTES                                                                    \
    (64 * MIB) /* of the questions in a page's rows, also answered ones */
#define IDS_MAX_BYTES (WAITING_PAGE * 22)

/* An open run, and what its rows have said so far, from the last one backwards. */
struct candidate {
    uint64_t run;
    int64_t started_ms;
    int64_t row;  /* the one to read now; 0: none */
    bool known;   /* whether it waits: no row before needs to be read */
    bool waits;   /* with the question in `asks` */
    bool no_room; /* for its texts */
    struct waiting_run asks;
    struct run_entry entry; /* its places in the log */
};

struct waiting_list_ask {
    struct store_task task;
    struct waiting_list_filter filter; /* its texts are in `texts` */
    struct buf texts;
    struct arena *arena; /* of the answer */
    struct waiting_run *runs;
    struct waiting_list_page page;
    waiting_listed_fn *done; /* NULL: forgotten */
    void *ctx;
};

/* The store's thread: one page of open runs. */
struct look {
    struct waiting_list_ask *ask;
    struct rows rows;
    struct prepared *list, *read;
    uint64_t after;                     /* the last run of the page before */
    struct arena *arena;                /* of the page's texts */
    struct candidate all[WAITING_PAGE]; /* lowest run first */
    size_t count;
};

/* --- what a run's row says ---------------------------------------------------------------- */

static bool keep_question(struct look *look, const struct event *event,
                          struct waiting_run *ret) {
    return arena_str(look->arena, event->agent, &ret->agent) &&
           arena_str(look->arena, event->approval.question, &ret->question) &&
           arena_str(look->arena, event->approval.tool, &ret->tool) &&
           arena_str(look->arena, event->approval.args, &ret->args) &&
           arena_str(look->arena, event->approval.guards, &ret->guards);
}

/* An item may be words for the model, and does not end the wait: restore_run_waits(). */
static void note_event(struct look *look, struct candidate *candidate,
                       const struct event *event, uint64_t seq) {
    if (event->kind == EVENT_ITEM) return;
    candidate->known = true;
    candidate->waits = event->kind == EVENT_APPROVAL;
    if (!candidate->waits) return;
    candidate->asks.seq = seq;
    candidate->asks.asked_unix_ms = candidate->started_ms + event->at_ms;
    candidate->no_room = !keep_question(look, event, &candidate->asks);
}

static void note_events(struct look *look, struct candidate *candidate,
                        const struct store_section *section) {
    struct str rest = section->events;
    struct event event = {0};
    struct err none;
    for (uint64_t seq = section->first_seq; rest.len && event_decode(&rest, &event, &none);
         seq++)
        note_event(look, candidate, &event, seq);
}

static struct candidate *find_candidate(struct look *look, uint64_t run) {
    size_t low = 0, high = look->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (look->all[middle].run < run)
            low = middle + 1;
        else
            high = middle;
    }
    return low < look->count && look->all[low].run == run ? &look->all[low] : NULL;
}

static bool look_at_row(const struct row *row, void *ctx, struct err *e) {
    struct look *look = ctx;
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    (void)e;
    while (store_section_next(&rest, &section, &bad)) {
        struct candidate *candidate = find_candidate(look, section.run);
        if (candidate && candidate->row == row->id) note_events(look, candidate, &section);
    }
    return true;
}

/* --- the rows of a page ------------------------------------------------------------------- */

static const char rows_of_sqlite[] = "SELECT id, run, sum, bytes FROM log WHERE id IN"
                                     " (SELECT value FROM json_each('[' || ?1 || ']'))";
static const char rows_of_postgres[] = "SELECT id, run, sum, bytes FROM log WHERE id ="
                                       " ANY(string_to_array(?1, ',')::bigint[])";

/* Ids of the rows to read, with commas. Runs share rows, so an id may stand there twice. */
static void list_rows(const struct look *look, struct buf *out) {
    for (size_t i = 0; i < look->count; i++) {
        const struct candidate *candidate = &look->all[i];
        if (candidate->known || !candidate->row) continue;
        if (out->len) buf_append_byte(out, ',');
        buf_append_u64(out, (uint64_t)candidate->row);
    }
}

/* Its last rows are too many to have a place each. */
static bool is_long(const struct candidate *candidate) {
    return candidate->entry.places.len + VARINT_MAX_BYTES > RUN_PLACES_MAX_BYTES;
}

struct long_look {
    struct look *look;
    struct candidate *candidate;
};

static bool look_at_long_row(const struct row *row, void *ctx, struct err *e) {
    struct long_look *of = ctx;
    of->candidate->row = row->id;
    return look_at_row(row, of->look, e);
}

/* Of a long run the rows since its last place are read, with a statement of their own. */
static bool read_long(struct look *look, struct candidate *candidate, struct err *e) {
    struct long_look of = {look, candidate};
    struct run_places cursor = run_entry_places(&candidate->entry);
    while (run_places_next(&cursor)) {
    }
    int64_t last = candidate->row;
    bool ok = row_each_of(&look->rows, candidate->run, cursor.row - 1, last, look_at_long_row,
                          &of, e);
    candidate->row = 0;
    return ok;
}

/* The row before that has something of its own; 0: there is none. */
static int64_t row_before(const struct candidate *candidate) {
    struct run_places cursor = run_entry_places(&candidate->entry);
    int64_t before = 0;
    while (run_places_next(&cursor) && cursor.row < candidate->row)
        if (!cursor.shared) before = cursor.row;
    return before;
}

/* Read the current row of each, and go on with the one before where it did not say enough. */
static bool go_back(struct look *look, struct err *e) {
    for (size_t i = 0; i < look->count; i++) {
        struct candidate *candidate = &look->all[i];
        if (candidate->known || !candidate->row) continue;
        if (!is_long(candidate))
            candidate->row = row_before(candidate);
        else if (!read_long(look, candidate, e))
            return false;
    }
    return true;
}

static bool read_rows(struct look *look, struct err *e) {
    struct buf ids;
    bool ok = true;
    buf_init(&ids, IDS_MAX_BYTES);
    for (list_rows(look, &ids); ok && ids.len; list_rows(look, &ids)) {
        database_bind_text(look->read, 1, buf_str(&ids));
        ok = row_each_found(&look->rows, look->read, look_at_row, look, e) && go_back(look, e);
        buf_clear(&ids);
    }
    buf_done(&ids);
    return ok;
}

/* --- the pages ---------------------------------------------------------------------------- */

static const char open_runs[] =
    "SELECT run.id, run.last_log, started_ms, places, workspace, session.user, name"
    " FROM run JOIN session ON session.id = run.session"
    " WHERE run.state = 0 AND run.id > ?1"
    " AND (?2 > 0 OR session.workspace = ?3) AND (?4 > 0 OR session.user = ?5)"
    " AND (?6 > 0 OR session.name = ?7) ORDER BY run.id LIMIT ?8";

static void bind_text(struct prepared *statement, int place, struct str text) {
    database_bind_number(statement, place, text.at == NULL);
    database_bind(statement, place + 1, text.at ? text : STR_EMPTY);
}

static void bind_list(struct look *look) {
    const struct waiting_list_filter *filter = &look->ask->filter;
    database_bind_number(look->list, 1, (int64_t)look->after);
    bind_text(look->list, 2, filter->workspace);
    bind_text(look->list, 4, filter->user);
    bind_text(look->list, 6, filter->session);
    database_bind_number(look->list, 8, WAITING_PAGE);
}

static void take_candidate(struct look *look) {
    struct candidate *candidate = &look->all[look->count++];
    struct prepared *from = look->list;
    uint64_t run = (uint64_t)database_number_of(from, 0);
    *candidate = (struct candidate){.run = run,
                                    .row = database_number_of(from, 1),
                                    .started_ms = database_number_of(from, 2),
                                    .asks = {.run = run}};
    run_entry_init(&candidate->entry, run);
    buf_append(&candidate->entry.places, database_bytes(from, 3));
    struct waiting_run *asks = &candidate->asks;
    candidate->no_room = !arena_str(look->arena, database_bytes(from, 4), &asks->workspace) ||
                         !arena_str(look->arena, database_bytes(from, 5), &asks->user) ||
                         !arena_str(look->arena, database_bytes(from, 6), &asks->session);
    look->after = run;
}

static bool list_page(struct look *look, struct err *e) {
    bool row = false, ok;
    bind_list(look);
    while ((ok = database_row(look->rows.db, look->list, &row, e)) && row) take_candidate(look);
    database_reset(look->list);
    return ok;
}

/* False: it does not fit. */
static bool copy_run(struct arena *arena, const struct waiting_run *from,
                     struct waiting_run *ret) {
    *ret = *from;
    struct str *const texts[] = {&ret->workspace, &ret->user, &ret->session, &ret->agent,
                                 &ret->question,  &ret->tool, &ret->args,    &ret->guards};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (!arena_str(arena, *texts[i], texts[i])) return false;
    return true;
}

/* Runs that wait, until the answer is full. */
static void take_page(struct look *look) {
    struct waiting_list_ask *ask = look->ask;
    struct waiting_list_page *page = &ask->page;
    for (size_t i = 0; i < look->count && !page->more; i++) {
        const struct candidate *candidate = &look->all[i];
        if (!candidate->waits) continue;
        if (page->count == ask->filter.limit || candidate->no_room ||
            !copy_run(ask->arena, &candidate->asks, &ask->runs[page->count]))
            page->more = true;
        else
            page->count++;
    }
}

static void page_done(struct look *look) {
    for (size_t i = 0; i < look->count; i++) run_entry_done(&look->all[i].entry);
    look->count = 0;
    arena_free(look->arena);
    look->arena = NULL;
}

static bool look_at_page(struct look *look, bool *ret_last, struct err *e) {
    look->arena = arena_new(PAGE_TEXT_MAX_BYTES);
    bool ok = list_page(look, e) && read_rows(look, e);
    *ret_last = look->count < WAITING_PAGE;
    if (ok) take_page(look);
    page_done(look);
    return ok;
}

static bool look_at_pages(struct look *look, struct err *e) {
    struct waiting_list_page *page = &look->ask->page;
    bool last = false;
    for (size_t looked = 0; !last && !page->more; looked += WAITING_PAGE) {
        if (looked == WAITING_LOOK_MAX)
            page->more = true;
        else if (!look_at_page(look, &last, e))
            return false;
    }
    return true;
}

static bool list_runs(struct database *db, void *ctx, struct err *e) {
    struct waiting_list_ask *ask = ctx;
    struct look *look = MEM_NEW(struct look);
    look->ask = ask;
    ask->page = (struct waiting_list_page){.runs = ask->runs};
    arena_free(ask->arena);
    ask->arena = arena_new(WAITING_TEXT_MAX_BYTES);
    bool ok = row_open(&look->rows, db, e) && database_prepare(db, open_runs, &look->list, e) &&
              database_prepare(db, database_sql(db, rows_of_sqlite, rows_of_postgres),
                               &look->read, e) &&
              look_at_pages(look, e);
    database_finalize(look->list);
    database_finalize(look->read);
    row_close(&look->rows);
    free(look);
    return ok;
}

/* --- the request -------------------------------------------------------------------------- */

static void waiting_list_on_listed(const struct err *failed, void *ctx) {
    struct waiting_list_ask *ask = ctx;
    if (ask->done) ask->done(&ask->page, failed, ask->ctx);
    arena_free(ask->arena);
    buf_done(&ask->texts);
    free(ask->runs);
    free(ask);
}

struct waiting_list_ask *waiting_list_start(struct store *store, struct loop *loop,
                                            const struct waiting_list_filter *filter,
                                            waiting_listed_fn *done, void *ctx) {
    struct waiting_list_ask *ask = MEM_NEW(struct waiting_list_ask);
    ask->filter = *filter;
    struct str *texts[] = {&ask->filter.workspace, &ask->filter.user, &ask->filter.session};
    buf_keep_texts(&ask->texts, texts, ARRAY_LEN(texts));
    ask->runs = mem_zero(filter->limit + 1, sizeof(*ask->runs));
    ask->done = done;
    ask->ctx = ctx;
    ask->task = (struct store_task){.reads_only = true,
                                    .needs_tables = true,
                                    .fn = list_runs,
                                    .on_done = waiting_list_on_listed};
    store_run(store, loop, &ask->task, ask);
    return ask;
}

void waiting_list_forget(struct waiting_list_ask *ask) {
    if (ask) ask->done = NULL;
}
