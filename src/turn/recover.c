#include "turn/recover.h"

#include "base/mem.h"
#include "job/run_job.h"
#include "record/record.h"
#include "store/takeover.h"
#include "turn/lost_calls.h"
#include "turn/restore_run.h"

#include <assert.h>
#include <stdlib.h>

#define ENDING_MAX_BYTES (24 * MIB) /* the last events of an interrupted run */
#define RUN_MAX_BYTES (16 * MIB)    /* of a run that is restored */

struct recovery {
    struct store *store;
    struct run_host *host;
    struct recover_helpers helpers;
    recovered_fn *done;
    void *ctx;
    struct recovered found;
    struct takeover takeover;     /* of a shared store: the runs of the dead are ours */
    struct store_load unfinished; /* the answer: one section per run */
    size_t next;                  /* index of the current run */
    struct store_load load;       /* the events of that run */
    struct list candidates;       /* runs whose agents are being loaded */
    struct store_write write;     /* the endings of interrupted runs */
    bool store_busy;              /* one of our requests is open */
    bool stopped;
};

/* A run that was waiting for a human, to be restored. */
struct candidate {
    struct list link;
    struct recovery *recovery;
    uint64_t run, last_seq;
    struct store_load load;   /* the answer: all its events */
    struct session_name name; /* its session, borrowed from `load` */
    void *ask;                /* the request for its agents; NULL: none */
};

static void candidate_free(struct candidate *candidate) {
    list_remove(&candidate->link);
    arena_free(candidate->load.arena);
    free(candidate);
}

static void recovery_free(struct recovery *recovery) {
    for (size_t i = 0; i < recovery->write.row_count; i++) {
        buf_done(&recovery->write.rows[i].bytes);
    }
    free(recovery->write.rows);
    arena_free(recovery->unfinished.arena);
    takeover_done(&recovery->takeover);
    free(recovery);
}

/* Call when the store has answered. True: the recovery was stopped meanwhile and is now
 * freed. */
static bool is_stopped(struct recovery *recovery) {
    recovery->store_busy = false;
    if (!recovery->stopped) return false;
    recovery_free(recovery);
    return true;
}

static void ask_store(struct recovery *recovery, struct store_load *load) {
    recovery->store_busy = true;
    store_load(recovery->store, load);
}

static void drop_candidates(struct recovery *recovery) {
    LIST_EACH(&recovery->candidates, link) {
        struct candidate *candidate = CONTAINER_OF(link, struct candidate, link);
        if (candidate->ask) recovery->helpers.agents.leave(candidate->ask);
        candidate_free(candidate);
    }
}

void recover_stop(struct recovery *recovery) {
    if (!recovery) return;
    recovery->stopped = true;
    drop_candidates(recovery);
    if (!recovery->store_busy) recovery_free(recovery);
}

static void recover_finish(struct recovery *recovery, const struct err *failed) {
    struct err why;
    if (failed) why = *failed;
    struct recovered found = recovery->found;
    recovered_fn *done = recovery->done;
    void *ctx = recovery->ctx;
    if (!failed && store_is_shared(recovery->store))
        takeover_free_leases(recovery->store, recovery->host->loop);
    recovery_free(recovery);
    done(&found, failed ? &why : NULL, ctx);
}

/* --- runs that were cut short ------------------------------------------------------------- */

static void recover_on_written(struct store_write *write, const struct err *failed, void *ctx) {
    (void)write;
    if (is_stopped(ctx)) return;
    recover_finish(ctx, failed);
}

/* End the run with a failure that shows the next turn what was said and done. */
static void write_ending(struct recovery *recovery, const struct store_load *load,
                         struct buf *out) {
    struct lost_calls calls;
    size_t unknown;
    lost_calls_init(&calls);
    bool whole = !load->more;
    for (size_t i = 0; i < load->section_count && whole; i++)
        whole = lost_calls_read(&calls, load->sections[i].events);
    bool fits = lost_calls_end(&calls, whole, &lost_by_stop, out, &unknown);
    assert(fits);
    (void)fits;
    recovery->found.effects_unknown += unknown;
    lost_calls_done(&calls);
}

static void add_interrupted(struct recovery *recovery, const struct store_load *load,
                            uint64_t run, uint64_t seq) {
    struct store_row *row = &recovery->write.rows[recovery->write.row_count++];
    struct buf bytes;
    buf_init(&bytes, ENDING_MAX_BYTES);
    buf_init(&row->bytes, ENDING_MAX_BYTES + KIB);
    row->run = run;
    write_ending(recovery, load, &bytes);
    bool fits = store_section_append(&row->bytes, run, seq, buf_str(&bytes));
    assert(fits);
    (void)fits;
    buf_done(&bytes);
    recovery->found.interrupted++;
}

static void write_interrupted(struct recovery *recovery) {
    struct store_write *write = &recovery->write;
    if (write->row_count == 0) {
        recover_finish(recovery, NULL);
        return;
    }
    write->home = recovery->host->loop;
    write->on_written = recover_on_written;
    write->ctx = recovery;
    recovery->store_busy = true;
    store_write(recovery->store, write);
}

/* --- jobs --------------------------------------------------------------------------------- */

/* False: the run is not taken up here, and will not be elsewhere. */
static bool take_job(struct recovery *recovery, uint64_t run, const struct store_load *load) {
    const struct recover_jobs *jobs = &recovery->helpers.jobs;
    if (!jobs->take) {
        recovery->found.jobs_left++;
        return true;
    }
    bool taken = jobs->take(run, load->sections, load->section_count, !load->more, jobs->ctx);
    recovery->found.jobs += taken;
    return taken;
}

/* --- runs that wait ----------------------------------------------------------------------- */

static void recover_restore(struct candidate *candidate, struct engine *engine) {
    struct recovery *recovery = candidate->recovery;
    const struct store_load *load = &candidate->load;
    if (run_restore(recovery->host, engine, candidate->run, load->sections,
                    load->section_count)) {
        recovery->found.waiting++;
    } else {
        add_interrupted(recovery, load, candidate->run, candidate->last_seq + 1);
    }
    candidate_free(candidate);
}

/* Continue when every run was examined and no run waits for its agents. */
static void finish_if_all_are_known(struct recovery *recovery) {
    bool all = recovery->next == recovery->unfinished.section_count;
    if (all && list_empty(&recovery->candidates)) write_interrupted(recovery);
}

static void recover_on_engine(struct engine *engine, void *ctx) {
    struct candidate *candidate = ctx;
    struct recovery *recovery = candidate->recovery;
    candidate->ask = NULL;
    recover_restore(candidate, engine);
    finish_if_all_are_known(recovery);
}

/* Find the engine with the agents of the run's session, which may have to be loaded first. */
static struct engine *find_engine(struct candidate *candidate) {
    struct recovery *recovery = candidate->recovery;
    const struct recover_agents *agents = &recovery->helpers.agents;
    struct str first = candidate->load.sections[0].events;
    struct event event = {0};
    struct err e;
    if (!agents->find || !event_decode(&first, &event, &e) || event.kind != EVENT_STARTED)
        return recovery->host->engine;
    candidate->name = (struct session_name){event.started.workspace, event.started.user,
                                            event.started.session};
    return agents->find(event.started.contract, &candidate->name, recover_on_engine, candidate,
                        &candidate->ask, agents->ctx);
}

/* Takes the answer of `load`. */
static void consider(struct recovery *recovery, const struct store_section *left,
                     const struct store_load *load) {
    struct candidate *candidate = MEM_NEW(struct candidate);
    *candidate = (struct candidate){
        .recovery = recovery, .run = left->run, .last_seq = left->first_seq, .load = *load};
    list_append(&recovery->candidates, &candidate->link);
    struct engine *engine = find_engine(candidate);
    if (engine) recover_restore(candidate, engine);
}

/* --- all runs in turn --------------------------------------------------------------------- */

static void look_at_next(struct recovery *recovery);

/* A store that is away has the run as it was, for the next process. One whose events are damaged
 * ends, and what it did is not known. */
static void on_run(struct store_load *load, const struct err *failed, void *ctx) {
    struct recovery *recovery = ctx;
    struct arena *arena = load->arena;
    if (is_stopped(recovery)) {
        arena_free(arena);
        return;
    }
    if (failed && failed->code != ERR_DATA_LOSS) {
        arena_free(arena);
        drop_candidates(recovery);
        recover_finish(recovery, failed);
        return;
    }
    if (failed) load->more = true;
    const struct store_section *left = &recovery->unfinished.sections[recovery->next++];
    bool whole = !load->more;
    bool is_job = !failed && run_job_is(load->sections, load->section_count);
    if (is_job && take_job(recovery, left->run, load)) {
        /* it goes on */
    } else if (is_job) {
        add_interrupted(recovery, load, left->run, left->first_seq + 1);
    } else if (whole && restore_run_waits(load->sections, load->section_count)) {
        consider(recovery, left, load);
        arena = NULL;
    } else {
        add_interrupted(recovery, load, left->run, left->first_seq + 1);
    }
    arena_free(arena);
    look_at_next(recovery);
}

static void look_at_next(struct recovery *recovery) {
    if (recovery->next == recovery->unfinished.section_count) {
        finish_if_all_are_known(recovery);
        return;
    }
    recovery->load =
        (struct store_load){.question = STORE_RUN,
                            .run = recovery->unfinished.sections[recovery->next].run,
                            .max_bytes = RUN_MAX_BYTES,
                            .home = recovery->host->loop,
                            .on_loaded = on_run,
                            .ctx = recovery};
    ask_store(recovery, &recovery->load);
}

static void on_unfinished(struct store_load *load, const struct err *failed, void *ctx) {
    struct recovery *recovery = ctx;
    if (is_stopped(recovery)) return;
    if (failed) {
        recover_finish(recovery, failed);
        return;
    }
    record_continue_after(recovery->host->engine, load->newest_run);
    recovery->write.rows = mem_zero(load->section_count + 1, sizeof(struct store_row));
    look_at_next(recovery);
}

/* --- runs of replicas that died ----------------------------------------------------------- */

static void on_taken_over(struct takeover *takeover, const struct err *failed, void *ctx) {
    struct recovery *recovery = ctx;
    struct store_load *list = &recovery->unfinished;
    if (is_stopped(recovery)) return;
    recovery->found.inherited = failed ? takeover->doubted : takeover->run_count > 0;
    list->newest_run = takeover->newest_run;
    size_t count = takeover->run_count, size = (count + 1) * sizeof(struct store_section);
    if (!failed) {
        list->arena = arena_new(size + KIB);
        list->sections = arena_alloc(list->arena, size);
        list->section_count = count;
        assert(list->sections);
    }
    for (size_t i = 0; !failed && i < count; i++)
        list->sections[i] = (struct store_section){.run = takeover->runs[i].run,
                                                   .first_seq = takeover->runs[i].last_seq,
                                                   .events = STR_EMPTY};
    recovery->store_busy = true; /* as after a load */
    on_unfinished(list, failed, recovery);
}

static void recover_take_over(struct recovery *recovery) {
    recovery->takeover = (struct takeover){.on_done = on_taken_over, .ctx = recovery};
    recovery->store_busy = true;
    takeover_start(recovery->store, recovery->host->loop, &recovery->takeover);
}

struct recovery *recover_start(struct store *store, struct run_host *host,
                               const struct recover_helpers *helpers, recovered_fn *done,
                               void *ctx) {
    struct recovery *recovery = MEM_NEW(struct recovery);
    *recovery = (struct recovery){.store = store, .host = host, .done = done, .ctx = ctx};
    if (helpers) recovery->helpers = *helpers;
    list_init(&recovery->candidates);
    if (store_is_shared(store)) {
        recover_take_over(recovery);
        return recovery;
    }
    recovery->unfinished = (struct store_load){.question = STORE_UNFINISHED,
                                               .max_bytes = SIZE_MAX,
                                               .home = host->loop,
                                               .on_loaded = on_unfinished,
                                               .ctx = recovery};
    ask_store(recovery, &recovery->unfinished);
    return recovery;
}
