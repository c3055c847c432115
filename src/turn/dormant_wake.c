#include "turn/dormant_wake.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "session/waiting.h"
#include "turn/restore_run.h"
#include "turn/turn.h"

#include <stdlib.h>

#define RUN_MAX_BYTES (32 * MIB)
#define ALONE_MAX_S ((1u << 20) - 1)
#define TRANSFERS_MAX ((1u << 11) - 1)
#define AT_ONCE 1000 /* runs dropped from memory by one look */
#define LOOK_AGAIN_MIN_MS 10
#define WOKEN_STAYS_MS 2000    /* a run that was woken stays in memory at least this long */
#define DEADLINE_AHEAD_MS 5000 /* a run is brought back this long before its deadline */

/* --- leaving memory ----------------------------------------------------------------------- */

static struct dormant_runs *dormant_of(struct engine *engine) {
    return directory_dormant(session_table_directory(engine->sessions));
}

/* Whether restore_run.c can bring the run back; else it must not leave memory. */
static bool has_only_events(const struct run *run) {
    return !run->request.system.len && !run->model_round.repairing &&
           run->compaction.state != COMPACTION_REPLACED && !run->record.lost &&
           run->admission.lease.parent == 0 && run->calls.transfers <= TRANSFERS_MAX &&
           run->detached.for_ms / 1000 < ALONE_MAX_S;
}

static bool is_read(const struct run *run) {
    uint64_t left_ms;
    return journal_readers(run->record.journal, &left_ms) > 0;
}

/* Whether only the run itself and the list of pending approvals hold it, and all of it is on
 * disk. */
static bool may_sleep(const struct run *run) {
    return run->state == RUN_WAITING && run->admission.state == ADMISSION_OUTSIDE &&
           !run->ending_begun && run->refs == 2 && has_only_events(run) && !is_read(run) &&
           journal_durable(run->record.journal) == journal_appended(run->record.journal);
}

static void enter(const struct run *run) {
    const struct session_name *name = &run->request.name;
    dormant_runs_add(
        dormant_of(run->record.engine),
        &(struct dormant_run){.run = record_id(&run->record),
                              .engine = run->record.engine,
                              .host = run->record.host,
                              .alone_s = (uint32_t)((run->detached.for_ms + 999) / 1000),
                              .transfers = (unsigned short)run->calls.transfers,
                              .addressed = run->request.addressed,
                              .deadline_unix_ms = run->approval.parked->asked.deadline_unix_ms},
        name->workspace, name->user, name->session);
}

/* It was found a moment ago, and is read or answered: it stays. */
static void stay(struct run *run, bool parked) {
    if (parked) {
        record_unhide(&run->record);
        session_park(run->record.engine->sessions, run->approval.parked);
    }
    dormant_runs_remove(dormant_of(run->record.engine), record_id(&run->record));
}

/* Entered first, so that it is always somewhere. */
static bool sleep_run(struct run *run) {
    if (!may_sleep(run)) return false;
    enter(run);
    if (!session_unpark(run->record.engine->sessions, run->approval.parked)) {
        stay(run, false);
        return false;
    }
    record_hide(&run->record);
    if (journal_is_shared(run->record.journal)) {
        stay(run, true);
        return false;
    }
    log_debug("run %llu waits and leaves memory", (unsigned long long)record_id(&run->record));
    run_leave_to_store(run);
    return true;
}

/* How soon another look is worth while, at least; 0: never. */
static uint64_t sleep_some(struct run_host *host) {
    uint64_t now_ms = loop_now_ms(host->loop), next_ms = 0;
    size_t left = AT_ONCE;
    LIST_EACH(&host->runs, link) {
        struct run *run = CONTAINER_OF(link, struct run, link);
        uint64_t doze_ms = run->record.engine->limits.approval_doze_ms;
        if (run->state != RUN_WAITING) continue;
        bool long_enough = now_ms >= run->approval.stays_until_ms;
        if (left && long_enough && sleep_run(run)) {
            left--;
        } else if (!next_ms || doze_ms < next_ms) {
            next_ms = doze_ms > LOOK_AGAIN_MIN_MS ? doze_ms : LOOK_AGAIN_MIN_MS;
        }
    }
    return next_ms && !left ? LOOK_AGAIN_MIN_MS : next_ms;
}

static uint64_t dormant_wake_due(struct run_host *host);

static void look_in(struct run_host *host, uint64_t in_ms) {
    uint64_t at_ms = loop_now_ms(host->loop) + in_ms;
    if (timer_waits(&host->doze) && host->doze_at_ms <= at_ms) return;
    host->doze_at_ms = at_ms;
    timer_start(&host->doze, in_ms);
}

void dormant_wake_look(void *ctx) {
    struct run_host *host = ctx;
    uint64_t awake_ms = sleep_some(host), due_ms = dormant_wake_due(host);
    if (awake_ms) look_in(host, awake_ms);
    if (due_ms) look_in(host, due_ms);
}

void dormant_wake_watch(struct run *run) {
    struct run_host *host = run->record.host;
    uint64_t doze_ms = run->record.engine->limits.approval_doze_ms;
    run->approval.stays_until_ms = loop_now_ms(host->loop) + doze_ms;
    if (!host->keeper || !session_table_store(run->record.engine->sessions)) return;
    look_in(host, doze_ms > LOOK_AGAIN_MIN_MS ? doze_ms : LOOK_AGAIN_MIN_MS);
}

void dormant_wake_forget(struct run_host *host) {
    if (host->loop) timer_stop(&host->doze);
    if (host->engine && host->engine->sessions)
        dormant_runs_forget(dormant_of(host->engine), host);
}

/* --- one run, on its host's loop ---------------------------------------------------------- */

/* A request to bring one run back. */
struct bringing {
    struct mail mail;
    struct list link;   /* in host->bringings, or in the `others` of one that is there */
    struct list others; /* requests for the same run */
    struct run_host *host;
    uint64_t run;
    struct store_load load;
    struct loop *loop;         /* where the answer goes */
    struct dormant_wake *wake; /* that loop's own; NULL: cancelled */
    bool has_failed;
    struct err failed;
};

static void on_brought(void *ctx);

static void send_back(struct bringing *bringing) {
    list_remove(&bringing->link);
    loop_post(bringing->loop, &bringing->mail, on_brought, bringing);
}

static void dormant_wake_answer(struct bringing *bringing, const struct err *failed) {
    LIST_EACH(&bringing->others, link) {
        struct bringing *other = CONTAINER_OF(link, struct bringing, link);
        other->has_failed = failed != NULL;
        if (failed) other->failed = *failed;
        send_back(other);
    }
    bringing->has_failed = failed != NULL;
    if (failed) bringing->failed = *failed;
    send_back(bringing);
}

static void stay_for(struct run *run, uint64_t ms) {
    uint64_t until_ms = loop_now_ms(run->record.host->loop) + ms;
    if (run->approval.stays_until_ms < until_ms) run->approval.stays_until_ms = until_ms;
}

/* As on the way out: it can be found live before it stops being dormant. */
static bool wake_restore(const struct dormant_run *dormant, const struct store_load *load,
                         struct err *e) {
    struct run *run = load->more ? NULL
                                 : run_restore(dormant->host, dormant->engine, dormant->run,
                                               load->sections, load->section_count);
    if (!run) {
        log_error("run %llu, which waits for a human, cannot be read back",
                  (unsigned long long)dormant->run);
        return err_set(e, ERR_DATA_LOSS, "a turn that waits for a human cannot be read back");
    }
    run->request.addressed = dormant->addressed;
    run->calls.transfers = dormant->transfers;
    run_detach(run, UINT64_C(1000) * dormant->alone_s);
    stay_for(run, WOKEN_STAYS_MS);
    log_debug("run %llu is back in memory", (unsigned long long)dormant->run);
    dormant_runs_remove(dormant_of(run->record.engine), dormant->run);
    return true;
}

static void dormant_wake_on_loaded(struct store_load *load, const struct err *failed,
                                   void *ctx) {
    struct bringing *bringing = ctx;
    struct dormant_run dormant;
    struct err e;
    if (failed) e = *failed;
    bool sleeps =
        dormant_runs_find(dormant_of(bringing->host->engine), bringing->run, &dormant);
    bool back = !failed && (!sleeps || wake_restore(&dormant, load, &e));
    arena_free(load->arena);
    dormant_wake_answer(bringing, back ? NULL : &e);
}

static struct bringing *find_bringing(struct run_host *host, uint64_t run) {
    LIST_EACH(&host->bringings, link) {
        struct bringing *bringing = CONTAINER_OF(link, struct bringing, link);
        if (bringing->run == run) return bringing;
    }
    return NULL;
}

static void bring(void *ctx) {
    struct bringing *bringing = ctx;
    struct run_host *host = bringing->host;
    struct dormant_run dormant;
    struct bringing *first = find_bringing(host, bringing->run);
    if (first) {
        list_append(&first->others, &bringing->link);
        return;
    }
    if (!dormant_runs_find(dormant_of(host->engine), bringing->run, &dormant)) {
        dormant_wake_answer(bringing, NULL); /* it is back */
        return;
    }
    list_append(&host->bringings, &bringing->link);
    bringing->load = (struct store_load){.question = STORE_RUN,
                                         .run = bringing->run,
                                         .max_bytes = RUN_MAX_BYTES,
                                         .home = host->loop,
                                         .on_loaded = dormant_wake_on_loaded,
                                         .ctx = bringing};
    store_load(session_table_store(host->engine->sessions), &bringing->load);
}

static struct bringing *send_for(struct run_host *host, uint64_t run, struct loop *loop,
                                 struct dormant_wake *wake) {
    struct bringing *bringing = MEM_NEW(struct bringing);
    bringing->host = host;
    bringing->run = run;
    bringing->loop = loop;
    bringing->wake = wake;
    list_init(&bringing->link);
    list_init(&bringing->others);
    loop_post(host->loop, &bringing->mail, bring, bringing);
    return bringing;
}

/* Bring runs back in time for their deadlines. Returns how soon the next one is, or 0. */
static uint64_t dormant_wake_due(struct run_host *host) {
    uint64_t runs[64];
    int64_t next, now = clock_unix_ms() + DEADLINE_AHEAD_MS;
    size_t count =
        dormant_runs_due(dormant_of(host->engine), host, now, ARRAY_LEN(runs), runs, &next);
    for (size_t i = 0; i < count; i++) (void)send_for(host, runs[i], host->loop, NULL);
    if (!next) return 0;
    return next > now + LOOK_AGAIN_MIN_MS ? (uint64_t)(next - now) : LOOK_AGAIN_MIN_MS;
}

/* --- waking all runs of a request --------------------------------------------------------- */

struct dormant_wake {
    struct directory *directory;
    struct loop *loop;
    dormant_wake_fn *on_awake;
    void *ctx;
    struct task over;
    struct bringing *bringing; /* the one that is on its way; NULL: `over` comes */
    bool has_failed;
    struct err failed;
    size_t count, next;
    uint64_t runs[];
};

static void dormant_wake_tell(void *ctx) {
    struct dormant_wake *wake = ctx;
    struct err failed = wake->failed;
    bool has_failed = wake->has_failed;
    dormant_wake_fn *on_awake = wake->on_awake;
    void *wake_ctx = wake->ctx;
    free(wake);
    on_awake(has_failed ? &failed : NULL, wake_ctx);
}

/* One after the other, so that they wait in the order in which they did. */
static void dormant_wake_go_on(struct dormant_wake *wake) {
    struct dormant_run dormant;
    while (wake->next < wake->count && !wake->has_failed) {
        uint64_t run = wake->runs[wake->next++];
        if (!dormant_runs_find(directory_dormant(wake->directory), run, &dormant)) continue;
        wake->bringing = send_for(dormant.host, run, wake->loop, wake);
        return;
    }
    loop_defer(wake->loop, &wake->over);
}

static void on_brought(void *ctx) {
    struct bringing *bringing = ctx;
    struct dormant_wake *wake = bringing->wake;
    if (wake) {
        wake->bringing = NULL;
        wake->has_failed = bringing->has_failed;
        wake->failed = bringing->failed;
        dormant_wake_go_on(wake);
    }
    free(bringing);
}

struct dormant_wake *dormant_wake_start(struct directory *directory,
                                        const struct dormant_filter *filter, size_t max,
                                        struct loop *loop, dormant_wake_fn *on_awake,
                                        void *ctx) {
    struct dormant_runs *dormant = directory_dormant(directory);
    if (dormant_runs_count(dormant) == 0) return NULL;
    struct dormant_wake *wake = mem_zero(1, sizeof(*wake) + max * sizeof(wake->runs[0]));
    wake->count = dormant_runs_list(dormant, filter, max, wake->runs);
    if (wake->count == 0) {
        free(wake);
        return NULL;
    }
    wake->directory = directory;
    wake->loop = loop;
    wake->on_awake = on_awake;
    wake->ctx = ctx;
    task_init(&wake->over, dormant_wake_tell, wake);
    dormant_wake_go_on(wake);
    return wake;
}

void dormant_wake_cancel(struct dormant_wake *wake) {
    if (!wake) return;
    if (wake->bringing) wake->bringing->wake = NULL;
    task_cancel(&wake->over);
    free(wake);
}
