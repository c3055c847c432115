/* daemon_recovery: what a dead process left is taken up, by the next process or by another
 * replica; and a replica that was taken for dead stops. */
#include "daemon/daemon_inner.h"

#include "base/log.h"

/* What to switch on for jobs: the first listener of the contract that goes on with them. */
static const char *listener_of_jobs(const struct contract_table *contracts) {
    for (size_t i = 0; i < contracts->count; i++) {
        const struct contract *row = contracts->rows[i];
        if (row->instance.take_job && row->listener_count) return row->listeners[0].name;
    }
    return "http";
}

void daemon_log_recovered(const struct daemon *daemon, const struct recovered *found) {
    if (found->interrupted) {
        log_warning("%zu %s interrupted when the last process ended", found->interrupted,
                    found->interrupted == 1 ? "turn was" : "turns were");
    }
    if (found->effects_unknown) {
        log_warning("%zu tool %s open then: whether they took effect is unknown; the next turn "
                    "of their session reads so",
                    found->effects_unknown,
                    found->effects_unknown == 1 ? "call was" : "calls were");
    }
    if (found->waiting)
        log_info("%zu %s for a person's answer", found->waiting,
                 found->waiting == 1 ? "turn waits" : "turns wait");
    if (found->jobs)
        log_info("%zu %s on", found->jobs, found->jobs == 1 ? "job goes" : "jobs go");
    if (found->jobs_left) {
        log_warning("%zu %s for a process that serves them: set listen.%s", found->jobs_left,
                    found->jobs_left == 1 ? "job waits" : "jobs wait",
                    listener_of_jobs(daemon->options->contracts));
    }
}

/* The agents of a run that waited for a human are found by the contract through which it came. If
 * that does not choose agents itself, the run gets the configured ones (checks.md K26). */
static struct engine *find_agents(struct str contract, const struct session_name *name,
                                  recover_engine_fn *answer, void *answer_ctx, void **ret_ask,
                                  void *ctx) {
    struct worker *worker = ctx;
    size_t index = contract_find(&worker->contracts, contract);
    bool known = index < worker->contracts.count && worker->instances[index];
    if (!known || !worker->contracts.rows[index]->instance.find_agents)
        return worker->host.engine;
    struct contract_ask *ask = NULL;
    struct engine *engine = worker->contracts.rows[index]->instance.find_agents(
        worker->instances[index], name, answer, answer_ctx, &ask);
    *ret_ask = ask;
    /* cppcheck-suppress returnDanglingLifetime; `ask` is only written to */
    return engine;
}

static void leave_agents(void *ctx) {
    struct contract_ask *ask = ctx;
    ask->leave(ask);
}

void daemon_recover(struct daemon *daemon, recovered_fn *done) {
    struct worker *first = &daemon->workers[0];
    const struct recover_helpers helpers = {.jobs = worker_jobs(first),
                                            .agents = {find_agents, leave_agents, first}};
    daemon->recovery = recover_start(daemon->store, &first->host, &helpers, done, daemon);
}

/* --- replicas ----------------------------------------------------------------------------- */

static void on_taken_over(const struct recovered *found, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    daemon->recovery = NULL;
    if (!failed)
        daemon_log_recovered(daemon, found);
    else if (!found->inherited)
        log_warning("what a replica left cannot be taken over now: %s", failed->text);
    else if (daemon->phase != DAEMON_STOPPING)
        daemon_fail(daemon, failed); /* for another one to take it up */
}

static void take_over(void *ctx) {
    struct daemon *daemon = ctx;
    atomic_store(&daemon->died_posted, false);
    if (daemon->phase != DAEMON_SERVING || daemon->recovery) return; /* it is said again */
    log_info("a replica has ended: its turns are taken over");
    daemon_recover(daemon, on_taken_over);
}

void daemon_on_died(void *ctx) {
    struct daemon *daemon = ctx;
    if (!atomic_exchange(&daemon->died_posted, true))
        loop_post(daemon_home(daemon), &daemon->died, take_over, daemon);
}

static void on_fenced(void *ctx) {
    struct daemon *daemon = ctx;
    struct err e;
    if (daemon->phase == DAEMON_STOPPING) return;
    err_set(
        &e, ERR_UNAVAILABLE,
        "this replica was silent for longer than store.lease, and another one has taken its "
        "place; start it again");
    daemon_fail(daemon, &e);
}

/* The last word of the store's thread. */
void daemon_on_lost(void *ctx) {
    struct daemon *daemon = ctx;
    loop_post(daemon_home(daemon), &daemon->lost, on_fenced, daemon);
}
