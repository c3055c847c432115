#include "turn/late_ends.h"

#include "base/log.h"
#include "base/mem.h"
#include "session/session.h"
#include "turn/lost_calls.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#define PAGE_BYTES (4 * MIB)
#define ENDING_MAX_BYTES (24 * MIB) /* the last events of a run */

struct late_ends {
    struct store *store;
    struct loop *loop;
    struct timer pause;
    uint64_t *runs; /* the oldest first */
    size_t count, room;
    struct lost_calls calls; /* of the first of them, while it is read */
    struct store_load load;
    struct store_write write;
    struct store_row row;
    bool busy;    /* a request of ours is with the store */
    bool stopped; /* no more may follow */
};

static void read_more(struct late_ends *ends);

static void read_first(struct late_ends *ends) {
    if (ends->stopped || !ends->count) return;
    lost_calls_init(&ends->calls);
    read_more(ends);
}

static void late_ends_on_pause(void *ctx) {
    read_first(ctx);
}

static bool may_pass(const struct err *failed) {
    return failed->code == ERR_UNAVAILABLE || failed->code == ERR_OUTCOME_UNKNOWN;
}

static void try_again_later(struct late_ends *ends) {
    if (!ends->stopped) timer_start(&ends->pause, LATE_ENDS_PAUSE_MS);
}

static void forget_first(struct late_ends *ends) {
    ends->count--;
    memmove(ends->runs, ends->runs + 1, ends->count * sizeof(*ends->runs));
    read_first(ends);
}

/* --- writing ------------------------------------------------------------------------------ */

static void late_ends_on_written(struct store_write *write, const struct err *failed,
                                 void *ctx) {
    struct late_ends *ends = ctx;
    (void)write;
    ends->busy = false;
    buf_done(&ends->row.bytes);
    if (failed) {
        try_again_later(ends); /* reading shows whether it is there */
        return;
    }
    log_info("turn %" PRIu64 ": what the store has of it is ended", ends->runs[0]);
    forget_first(ends);
}

static void write_end(struct late_ends *ends) {
    struct buf bytes;
    size_t unknown;
    uint64_t run = ends->runs[0];
    buf_init(&bytes, ENDING_MAX_BYTES);
    buf_init(&ends->row.bytes, ENDING_MAX_BYTES + KIB);
    ends->row.run = run;
    bool fits =
        lost_calls_end(&ends->calls, true, &lost_by_store, &bytes, &unknown) &&
        store_section_append(&ends->row.bytes, run, ends->calls.read + 1, buf_str(&bytes));
    assert(fits);
    (void)fits;
    buf_done(&bytes);
    lost_calls_done(&ends->calls);
    ends->write = (struct store_write){.rows = &ends->row,
                                       .row_count = 1,
                                       .home = ends->loop,
                                       .on_written = late_ends_on_written,
                                       .ctx = ends};
    ends->busy = true;
    store_write(ends->store, &ends->write);
}

/* --- reading ------------------------------------------------------------------------------ */

static bool late_ends_take(struct late_ends *ends, const struct store_load *load) {
    for (size_t i = 0; i < load->section_count; i++) {
        const struct store_section *section = &load->sections[i];
        if (section->first_seq != ends->calls.read + 1) return false;
        if (!lost_calls_read(&ends->calls, section->events)) return false;
    }
    return true;
}

static void late_ends_on_loaded(struct store_load *load, const struct err *failed, void *ctx) {
    struct late_ends *ends = ctx;
    bool whole = !failed && load->open && late_ends_take(ends, load);
    bool more = whole && load->more;
    ends->busy = false;
    arena_free(load->arena);
    if (more && !ends->stopped) {
        read_more(ends);
    } else if (whole && !ends->stopped) {
        write_end(ends);
    } else {
        lost_calls_done(&ends->calls);
        if (failed && may_pass(failed))
            try_again_later(ends);
        else
            forget_first(ends);
    }
}

static void read_more(struct late_ends *ends) {
    ends->load = (struct store_load){.question = STORE_RUN,
                                     .run = ends->runs[0],
                                     .after_seq = ends->calls.read,
                                     .max_bytes = PAGE_BYTES,
                                     .home = ends->loop,
                                     .on_loaded = late_ends_on_loaded,
                                     .ctx = ends};
    ends->busy = true;
    store_load(ends->store, &ends->load);
}

/* --- those that wait ---------------------------------------------------------------------- */

static struct late_ends *late_ends_of(struct run_host *host) {
    if (!host->late_ends) {
        struct late_ends *ends = MEM_NEW(struct late_ends);
        ends->store = session_table_store(host->engine->sessions);
        ends->loop = host->loop;
        timer_init(&ends->pause, host->loop, late_ends_on_pause, ends);
        host->late_ends = ends;
    }
    return host->late_ends;
}

void late_ends_add(struct run_host *host, uint64_t run) {
    struct late_ends *ends = late_ends_of(host);
    if (ends->stopped || !ends->store || ends->count == LATE_ENDS_MAX) return;
    if (ends->count == ends->room) {
        ends->room = ends->room ? 2 * ends->room : 16;
        ends->runs = mem_resize(ends->runs, ends->room * sizeof(*ends->runs));
    }
    ends->runs[ends->count++] = run;
    if (!ends->busy && !timer_waits(&ends->pause)) try_again_later(ends);
}

void late_ends_stop(struct run_host *host) {
    struct late_ends *ends = late_ends_of(host);
    ends->stopped = true;
    timer_stop(&ends->pause);
}

void late_ends_done(struct run_host *host) {
    struct late_ends *ends = host->late_ends;
    if (!ends) return;
    assert(!ends->busy);
    timer_stop(&ends->pause);
    free(ends->runs);
    free(ends);
    host->late_ends = NULL;
}
