#include "store/project.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/project_usage.h"
#include "store/projection.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdlib.h>

#define BATCH_BYTES (4 * MIB)   /* of rows; at least one row is taken */
#define BATCH_RUNS 2048         /* also a limit: a row may hold thousands of short runs */
#define ARENA_BYTES (256 * MIB) /* more than the largest row and its keys can need */
#define KEY_BYTES (64 * MIB)

static const struct projection project_runs;

/* Every table that is filled from the log, in the order in which an event is shown to them and
 * they are written: a run is in its session before anything else of it is kept. */
static const struct projection *const projections[] = {
    &project_sessions,
    &project_runs,
    &project_keys_of_requests,
    &project_usage_sums,
};

/* --- opening ------------------------------------------------------------------------------ */

static bool open_tables(struct project *project, struct err *e) {
    project->tables = mem_zero(ARRAY_LEN(projections), sizeof(void *));
    for (size_t i = 0; i < ARRAY_LEN(projections); i++)
        project->tables[i] = mem_zero(1, projections[i]->table_bytes);
    for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
        const struct projection *one = projections[i];
        if (one->open && !one->open(project->tables[i], project->db, e))
            return err_add(e, "the table of %s", one->name);
    }
    return true;
}

static void close_tables(struct project *project) {
    for (size_t i = 0; project->tables && i < ARRAY_LEN(projections); i++) {
        if (projections[i]->close) projections[i]->close(project->tables[i]);
        free(project->tables[i]);
    }
    free(project->tables);
    project->tables = NULL;
}

bool project_open(struct project *project, struct database *db, struct rows *rows,
                  struct runs *runs, struct session_filter *known, struct err *e) {
    *project = (struct project){.db = db, .rows = rows, .runs = runs, .known = known};
    bool ok = open_tables(project, e) &&
              database_prepare(db, "UPDATE meta SET value = ? WHERE name = 'projected'",
                               &project->note, e) &&
              database_number(db, "SELECT value FROM meta WHERE name = 'projected'",
                              &project->done, e);
    project->reached = project->done;
    project->last_written = &project->written;
    return ok;
}

static void forget_written(struct project *project);

void project_close(struct project *project) {
    project_forget(project);
    forget_written(project);
    close_tables(project);
    database_finalize(project->note);
}

void *project_table(const struct project *project, const struct projection *projection) {
    size_t i = 0;
    while (projections[i] != projection) i++;
    return project->tables[i];
}

const void *batch_gathered(const struct batch *batch, const struct projection *projection) {
    size_t i = 0;
    while (projections[i] != projection) i++;
    return batch->gathered[i];
}

/* --- a batch: what some rows change ------------------------------------------------------- */

static void begin_gathering(struct batch *batch) {
    batch->gathered = mem_zero(ARRAY_LEN(projections), sizeof(void *));
    for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
        batch->gathered[i] = mem_zero(1, projections[i]->batch_bytes);
        if (projections[i]->begin) projections[i]->begin(batch->gathered[i]);
    }
}

static void end_gathering(struct batch *batch) {
    for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
        if (projections[i]->end) projections[i]->end(batch->gathered[i]);
        free(batch->gathered[i]);
    }
    free(batch->gathered);
}

static struct batch *batch_new(struct project *project, int64_t from) {
    struct batch *batch = MEM_NEW(struct batch);
    *batch = (struct batch){
        .project = project,
        .arena = arena_new(ARENA_BYTES),
        .from = from,
        .reached = from,
    };
    batch->last_run = &batch->runs;
    buf_init(&batch->key, KEY_BYTES);
    begin_gathering(batch);
    return batch;
}

static void batch_free(struct batch *batch) {
    if (!batch) return;
    end_gathering(batch);
    for (struct run_change *run = batch->runs; run; run = run->next) {
        run_entry_done(&run->entry);
    }
    buf_done(&batch->key);
    arena_free(batch->arena);
    free(batch);
}

/* Set ERR_RESOURCE_EXHAUSTED and return false. */
static bool batch_is_full(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "store: the keys of one row take too much room");
}

void *batch_alloc(struct batch *batch, size_t size, struct err *e) {
    void *at = arena_alloc(batch->arena, size);
    if (!at) batch_is_full(e);
    return at;
}

bool batch_keep(struct batch *batch, struct str *text, struct err *e) {
    return arena_str(batch->arena, *text, text) || batch_is_full(e);
}

void projection_key_add(struct buf *key, struct str text) {
    uint64_t len = text.len;
    buf_append(key, str_of(&len, sizeof(len)));
    buf_append(key, text);
}

/* --- runs --------------------------------------------------------------------------------- */

int64_t run_change_time_ms(const struct run_change *run, const struct event *event) {
    int64_t sum;
    return __builtin_add_overflow(run->entry.started_ms, event->at_ms, &sum) ? INT64_MAX : sum;
}

static bool load_run(struct batch *batch, struct run_change *run, struct err *e) {
    bool found;
    if (!run_find(batch->project->runs, &run->entry, &found, e)) return false;
    run->fresh = !found;
    bool kept = batch_keep(batch, &run->entry.workspace, e) &&
                batch_keep(batch, &run->entry.contract, e);
    run_release(batch->project->runs);
    return kept;
}

/* Numbers of runs are ours, so nobody can choose those that share a slot. */
static struct run_change **slot_of(struct batch *batch, uint64_t id) {
    return &batch->slots[(id * UINT64_C(0x9E3779B97F4A7C15)) >> 32 & (BATCH_RUN_SLOTS - 1)];
}

/* The gathered change of a run. A run that begins in this batch is not looked up. */
static struct run_change *run_of(struct batch *batch, const struct store_section *section,
                                 struct err *e) {
    struct run_change **slot = slot_of(batch, section->run), *run = *slot;
    while (run && run->entry.id != section->run) run = run->next_in_slot;
    if (run) return run;
    run = batch_alloc(batch, sizeof(*run), e);
    if (!run) return NULL;
    run_entry_init(&run->entry, section->run);
    run->fresh = true;
    *batch->last_run = run;
    batch->last_run = &run->next;
    batch->run_count++;
    batch->cost++;
    if ((section->first_seq > 1 || batch->again) && !load_run(batch, run, e)) return NULL;
    run->next_in_slot = *slot;
    *slot = run;
    return run;
}

static bool runs_take(struct batch *batch, void *gathered, struct run_change *run,
                      const struct event *event, struct err *e) {
    (void)batch;
    (void)gathered;
    (void)e;
    run->entry.state = event->kind;
    run->entry.ended_ms = run_change_time_ms(run, event);
    return true;
}

static void note_repeated(struct project *project, struct run_change *run) {
    run->repeated = true;
    log_warning("store %s: run %" PRIu64 " started a second time; the first one counts",
                project->db->path, run->entry.id);
}

static bool write_run(struct project *project, struct run_change *run, struct err *e) {
    bool is_new = true;
    bool ok = run->fresh ? run_insert(project->runs, &run->entry, &is_new, e)
                         : run_update(project->runs, &run->entry, e);
    if (ok && !is_new) note_repeated(project, run);
    return ok;
}

/* The next fresh runs from *run on, RUN_MANY or none; the others before them are written. */
static bool take_many(struct project *project, struct run_change **run,
                      struct run_change *ret[RUN_MANY], size_t *ret_count, struct err *e) {
    size_t count = 0;
    struct run_change *next = *run;
    for (; next && count < RUN_MANY; next = next->next) {
        if (next->fresh)
            ret[count++] = next;
        else if (!write_run(project, next, e))
            return false;
    }
    *run = next;
    *ret_count = count;
    return true;
}

static bool write_many(struct project *project, struct run_change *const runs[RUN_MANY],
                       struct err *e) {
    const struct run_entry *entries[RUN_MANY];
    bool all_new, is_new;
    for (size_t i = 0; i < RUN_MANY; i++) entries[i] = &runs[i]->entry;
    if (!run_insert_many(project->runs, entries, &all_new, e)) return false;
    for (size_t i = 0; i < RUN_MANY && !all_new; i++) {
        if (!run_is(project->runs, entries[i], &is_new, e)) return false;
        if (!is_new) note_repeated(project, runs[i]);
    }
    return true;
}

static bool runs_write(struct batch *batch, const void *gathered, void *table, struct err *e) {
    struct project *project = batch->project;
    struct run_change *many[RUN_MANY], *run = batch->runs;
    size_t count = 0;
    (void)gathered;
    (void)table;
    while (run) {
        if (!run_inserts_many(project->runs)) {
            if (!write_run(project, run, e)) return false;
            run = run->next;
            continue;
        }
        if (!take_many(project, &run, many, &count, e)) return false;
        bool full = count == RUN_MANY;
        if (full && !write_many(project, many, e)) return false;
        for (size_t i = 0; i < count && !full; i++) {
            if (!write_run(project, many[i], e)) return false;
        }
    }
    return true;
}

/* The table of runs is opened elsewhere, and every section belongs to a run, so what is
 * gathered for it is in the batch itself. */
static const struct projection project_runs = {
    .name = "runs",
    .takes = TAKES(EVENT_DONE) | TAKES(EVENT_FAILED) | TAKES(EVENT_CANCELLED),
    .take = runs_take,
    .write = runs_write,
};

/* --- gathering ---------------------------------------------------------------------------- */

static bool add_event(struct batch *batch, struct run_change *run, const struct event *event,
                      struct err *e) {
    run->begins = false;
    for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
        const struct projection *one = projections[i];
        if (!(one->takes & TAKES(event->kind)) || (batch->again && !one->lags)) continue;
        if (!one->take(batch, batch->gathered[i], run, event, e)) return false;
    }
    return true;
}

static struct run_change *begin_section(struct batch *batch, const struct row *row,
                                        const struct store_section *section, struct err *e) {
    struct run_change *run = run_of(batch, section, e);
    if (run && !batch->again) run_entry_add_place(&run->entry, row->id, row->run == 0);
    return run;
}

/* `seq`: one more than the last event's. */
static void end_section(struct run_change *run, uint64_t seq) {
    if (seq > 1 && seq - 1 > run->entry.last_seq) run->entry.last_seq = seq - 1;
}

static void left_out(const struct project *project, const struct row *row,
                     const struct err *unknown) {
    log_warning("store %s: row %" PRId64 " holds an event that was left out: %s",
                project->db->path, row->id, unknown->text);
}

static bool add_section(struct batch *batch, const struct row *row,
                        const struct store_section *section, struct err *e) {
    struct run_change *run = begin_section(batch, row, section, e);
    if (!run) return false;
    struct str rest = section->events;
    uint64_t seq = section->first_seq;
    for (;; seq++) {
        seq +=
            event_skip_texts(&rest, SIZE_MAX); /* most events are texts, which no table keeps */
        if (!rest.len) break;
        struct event event = {.seq = seq};
        struct err unknown;
        if (!event_decode(&rest, &event, &unknown)) {
            left_out(batch->project, row, &unknown);
            break;
        }
        if (!add_event(batch, run, &event, e)) return false;
    }
    end_section(run, seq);
    return true;
}

static void end_row(struct batch *batch, const struct row *row, bool bad) {
    if (bad)
        log_warning("store %s: row %" PRId64 " of the log holds bytes that are no section",
                    batch->project->db->path, row->id);
    batch->reached = row->id;
    batch->bytes += row->bytes.len;
}

static bool add_row(struct batch *batch, const struct row *row, struct err *e) {
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    while (store_section_next(&rest, &section, &bad)) {
        if (!add_section(batch, row, &section, e)) return false;
    }
    end_row(batch, row, bad);
    return true;
}

static bool add_from_log(const struct row *row, void *ctx, struct err *e) {
    struct batch *batch = ctx;
    if (batch->upto && row->id > batch->upto) {
        batch->enough = true;
        return false;
    }
    if (!add_row(batch, row, e)) return false;
    batch->enough =
        row->last && (batch->bytes >= BATCH_BYTES || batch->run_count >= BATCH_RUNS);
    return !batch->enough;
}

/* --- gathering while the rows are written ------------------------------------------------- */

void project_watch(struct project *project) {
    if (!project->seen && project_pending(project) == 0)
        project->seen = batch_new(project, project->reached);
}

/* What was gathered lacks something, so it counts for nothing. */
static void give_up(struct project *project, const struct err *e) {
    log_debug("the tables will be filled from the log: %s", e->text);
    project_forget(project);
}

void project_see_section(struct project *project, const struct row *row,
                         const struct store_section *section) {
    struct err e;
    if (!project->seen) return;
    project->seen->run = begin_section(project->seen, row, section, &e);
    if (!project->seen->run) give_up(project, &e);
}

void project_see_event(struct project *project, const struct event *event) {
    struct err e;
    if (!project->seen) return;
    if (!add_event(project->seen, project->seen->run, event, &e)) give_up(project, &e);
}

void project_see_unknown(const struct project *project, const struct row *row,
                         const struct err *unknown) {
    left_out(project, row, unknown);
}

void project_see_section_end(struct project *project, uint64_t seq) {
    if (project->seen) end_section(project->seen->run, seq);
}

void project_see_end(struct project *project, const struct row *row, bool bad) {
    if (project->seen) end_row(project->seen, row, bad);
}

size_t project_pending_bytes(const struct project *project) {
    return project->seen ? project->seen->bytes : 0;
}

size_t project_pending_cost(const struct project *project) {
    return project->seen ? project->seen->cost : 0;
}

void project_forget(struct project *project) {
    batch_free(project->seen);
    project->seen = NULL;
}

/* --- writing what was gathered ------------------------------------------------------------ */

static bool write_batch(struct batch *batch, struct err *e) {
    struct project *project = batch->project;
    for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
        const struct projection *one = projections[i];
        if (one->write && !one->write(batch, batch->gathered[i], project->tables[i], e))
            return false;
    }
    database_bind_number(project->note, 1, batch->reached);
    return database_do(project->db, project->note, e);
}

static bool gather(struct batch *batch, size_t count, struct err *e) {
    struct project *project = batch->project;
    int64_t from = batch->reached;
    bool ok = row_each(project->rows, from, count, add_from_log, batch, e) || batch->enough;
    /* Ids may have holes; a batch that finds no row has reached the end. */
    if (ok && batch->reached == from)
        batch->reached = batch->upto ? batch->upto : project->rows->newest;
    return ok;
}

bool project_batch(struct project *project, size_t count, struct err *e) {
    struct batch *batch = project->seen;
    project->seen = NULL; /* whatever the outcome: the log has it too */
    bool seen = batch != NULL;
    if (!seen) batch = batch_new(project, project->reached);
    bool ok = (seen || gather(batch, count, e)) && write_batch(batch, e);
    if (!ok) {
        batch_free(batch);
        return false;
    }
    project->reached = batch->reached;
    *project->last_written = batch;
    project->last_written = &batch->next;
    return true;
}

/* --- after the transaction ---------------------------------------------------------------- */

static void forget_written(struct project *project) {
    for (struct batch *batch = project->written, *next; batch; batch = next) {
        next = batch->next;
        batch_free(batch);
    }
    project->written = NULL;
    project->last_written = &project->written;
}

/* `settled`: those that are written less often were written too, and have kept what they need. */
static void keep_batch(struct batch *batch, bool settled) {
    for (size_t i = 0; i < ARRAY_LEN(projections); i++) {
        const struct projection *one = projections[i];
        if (one->keep && !(one->lags && settled))
            one->keep(batch, batch->gathered[i], batch->project->tables[i]);
    }
}

void project_keep(struct project *project) {
    project->done = project->reached;
    bool settled = project_usage_kept(project);
    for (struct batch *batch = project->written; batch; batch = batch->next)
        keep_batch(batch, settled);
    forget_written(project);
}

void project_drop(struct project *project) {
    project->reached = project->done;
    project_usage_dropped(project);
    forget_written(project);
}

bool project_usage_read(struct project *project, size_t count, struct err *e) {
    if (project_usage_is_read(project)) return true;
    struct batch *batch = batch_new(project, project_usage_seen(project));
    batch->again = true;
    batch->upto = project->done;
    bool ok = gather(batch, count, e);
    if (ok) keep_batch(batch, false);
    batch_free(batch);
    return ok;
}

/* --- where others left off ---------------------------------------------------------------- */

bool project_is_at(const struct project *project, int64_t projected, int64_t usage) {
    return projected == project->done && project_usage_is_at(project, projected, usage);
}

void project_move(struct project *project, int64_t projected, int64_t usage) {
    project_forget(project);
    project->done = project->reached = projected;
    project_usage_move(project, projected, usage);
}
