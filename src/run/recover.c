#include "run/recover.h"

#include "base/mem.h"
#include "run/effect.h"
#include "run/revive.h"
#include "run/run_job.h"

#include <assert.h>
#include <stdlib.h>

#define UNKNOWN_MAX_BYTES                                                                      \
    (4 * MIB)                    /* a run has a hundred calls, of some hundred bytes each      \
                                  */
#define RUN_MAX_BYTES (16 * MIB) /* of a run that is made anew */

struct recovery {
    struct store *store;
    struct run_host *host;
    struct recover_jobs jobs; /* take is NULL: nobody serves them */
    recovered_fn *done;
    void *ctx;
    struct recovered found;
    struct store_load unfinished; /* its answer: one section a run */
    size_t next;                  /* index of the run that is looked at */
    struct store_load load;       /* that run */
    struct store_write write;     /* the interrupted ones */
};

static void finish(struct recovery *recovery, const struct err *failed) {
    struct err why;
    if (failed) why = *failed;
    recovery->host->on_revived = NULL;
    for (size_t i = 0; i < recovery->write.row_count; i++) {
        buf_done(&recovery->write.rows[i].bytes);
    }
    free(recovery->write.rows);
    arena_free(recovery->unfinished.arena);
    struct recovered found = recovery->found;
    recovered_fn *done = recovery->done;
    void *ctx = recovery->ctx;
    free(recovery);
    done(&found, failed ? &why : NULL, ctx);
}

/* The sessions of those that wait are still being read: who answers one before it is back
 * would be told that nobody waits. */
static void on_revived(void *ctx) {
    finish(ctx, NULL);
}

static void finish_when_revived(struct recovery *recovery) {
    struct run_host *host = recovery->host;
    if (host->reviving_count == 0) {
        finish(recovery, NULL);
        return;
    }
    host->on_revived = on_revived;
    host->revived_ctx = recovery;
}

/* --- runs that were cut short ------------------------------------------------------------- */

static void on_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    if (failed) {
        finish(ctx, failed);
    } else {
        finish_when_revived(ctx);
    }
}

/* What came of the calls that were out is for the next turn to know. */
static void add_unknown(struct recovery *recovery, const struct store_load *load,
                        struct buf *bytes) {
    struct effect_calls calls;
    effect_calls_init(&calls);
    bool whole = true;
    for (size_t i = 0; i < load->section_count && whole; i++) {
        whole = effect_calls_read(&calls, load->sections[i].events);
    }
    effect_calls_settle(&calls);
    for (size_t i = 0; i < calls.count; i++) effect_append_unknown(&calls.calls[i], bytes);
    recovery->found.effects_unknown += calls.count;
    effect_calls_done(&calls);
}

static void add_interrupted(struct recovery *recovery, const struct store_load *load,
                            uint64_t run, uint64_t seq) {
    struct event event = {
        .kind = EVENT_FAILED,
        .agent = STR_EMPTY,
        .failed = {ERR_ABORTED, STR_INIT("INTERRUPTED"),
                   STR_INIT("the server stopped while this turn was running; ask again")}};
    struct store_row *row = &recovery->write.rows[recovery->write.row_count++];
    struct buf bytes;
    buf_init(&bytes, UNKNOWN_MAX_BYTES);
    buf_init(&row->bytes, UNKNOWN_MAX_BYTES + KIB);
    row->run = run;
    if (!load->more) add_unknown(recovery, load, &bytes);
    bool fits = event_encode(&event, &bytes) &&
                store_section_append(&row->bytes, run, seq, buf_str(&bytes));
    assert(fits);
    (void)fits;
    buf_done(&bytes);
    recovery->found.interrupted++;
}

static void write_interrupted(struct recovery *recovery) {
    struct store_write *write = &recovery->write;
    if (write->row_count == 0) {
        finish_when_revived(recovery);
        return;
    }
    write->home = recovery->host->loop;
    write->on_written = on_written;
    write->ctx = recovery;
    store_write(recovery->store, write);
}

/* --- jobs --------------------------------------------------------------------------------- */

static void take_job(struct recovery *recovery, uint64_t run, const struct store_load *load) {
    const struct recover_jobs *jobs = &recovery->jobs;
    if (jobs->take) {
        jobs->take(run, load->sections, load->section_count, jobs->ctx);
        recovery->found.jobs++;
    } else {
        recovery->found.jobs_left++;
    }
}

/* --- one run after the other -------------------------------------------------------------- */

static void look_at_next(struct recovery *recovery);

static void on_run(struct store_load *load, const struct err *failed, void *ctx) {
    struct recovery *recovery = ctx;
    const struct store_section *left = &recovery->unfinished.sections[recovery->next++];
    bool whole = !failed && !load->more;
    bool waits = whole && revive_waits(load->sections, load->section_count);
    if (whole && run_job_is(load->sections, load->section_count)) {
        take_job(recovery, left->run, load);
    } else if (waits &&
               run_revive(recovery->host, left->run, load->sections, load->section_count)) {
        recovery->found.waiting++;
    } else {
        add_interrupted(recovery, load, left->run, left->first_seq + 1);
    }
    arena_free(load->arena);
    look_at_next(recovery);
}

static void look_at_next(struct recovery *recovery) {
    if (recovery->next == recovery->unfinished.section_count) {
        write_interrupted(recovery);
        return;
    }
    recovery->load =
        (struct store_load){.question = STORE_RUN,
                            .run = recovery->unfinished.sections[recovery->next].run,
                            .max_bytes = RUN_MAX_BYTES,
                            .home = recovery->host->loop,
                            .on_loaded = on_run,
                            .ctx = recovery};
    store_load(recovery->store, &recovery->load);
}

static void on_unfinished(struct store_load *load, const struct err *failed, void *ctx) {
    struct recovery *recovery = ctx;
    if (failed) {
        finish(recovery, failed);
        return;
    }
    recovery->write.rows = mem_zero(load->section_count + 1, sizeof(struct store_row));
    look_at_next(recovery);
}

void recover_start(struct store *store, struct run_host *host, const struct recover_jobs *jobs,
                   recovered_fn *done, void *ctx) {
    struct recovery *recovery = MEM_NEW(struct recovery);
    *recovery = (struct recovery){.store = store, .host = host, .done = done, .ctx = ctx};
    if (jobs) recovery->jobs = *jobs;
    recovery->unfinished = (struct store_load){.question = STORE_UNFINISHED,
                                               .max_bytes = SIZE_MAX,
                                               .home = host->loop,
                                               .on_loaded = on_unfinished,
                                               .ctx = recovery};
    store_load(store, &recovery->unfinished);
}
