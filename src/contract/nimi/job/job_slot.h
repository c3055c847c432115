/* job_slot: a job or workflow waits for its slot, and runs when it has one and is on disk.
 *
 * Memory   a member of the work of a job; `ask` is lent until job_slot_release().
 * Threads  the work's loop.
 * Source   contracts/nimi.md 3.2 K-DAEMON-007; checks.md M5.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_SLOT_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_SLOT_H

#include "contract/nimi/scheduler.h"
#include "job/run_job.h"

struct job_slot {
    struct scheduler *scheduler;
    struct ticket_ask ask; /* the slot sets the callback */
    struct ticket *ticket;
    struct run_job *job; /* on disk, may run; NULL: not yet */
    struct timer again;  /* asks again */
    bool granted;
};

void job_slot_init(struct job_slot *slot, struct scheduler *scheduler, enum fair_class class,
                   struct loop *loop);

/* Ask once. TICKET_REFUSED: too many wait. */
enum ticket_state job_slot_take(struct job_slot *slot, struct str app, struct str owner);

/* Ask until there is a place: a full queue refuses new callers, not what was accepted before. */
void job_slot_wait(struct job_slot *slot, struct str app, struct str owner);

/* The job is on disk: run it once there is a slot. */
void job_slot_run(struct job_slot *slot, struct run_job *job);

/* Give the slot back, or stop waiting. May be called again. */
void job_slot_release(struct job_slot *slot);

#endif
