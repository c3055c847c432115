/* jobs: the calls about jobs and workflows (mode B): submit, get, cancel, subscribe, and get the
 * artifacts of a job.
 *
 *     submit ─▶ admitted ─▶ its key? ─▶ begun (job_work.h) ─▶ on disk ─▶ the job
 *     others ─▶ found (run_open.h) ─▶ may the caller see it? ─▶ the job | its events | ...
 *
 * Every question about a job is answered from its journal. A subscriber reads the journal from
 * its first event, live or from the store, and gets the terminal event and OK. A subscriber
 * that does not read gets RESOURCE_EXHAUSTED instead, never both.
 *
 * Memory   each call owns what it needs.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5, 3.4, 3.5, 6.2 to 6.4; section 9 numbers 27 to 29, 42;
 *          checks.md K19, K20, K24.
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOBS_H
#define WEIR_CONTRACT_NIMI_JOB_JOBS_H

#include "contract/nimi/job/run_open.h"

nimi_begin_fn jobs_submit, jobs_get, jobs_cancel, jobs_subscribe, jobs_artifacts;
nimi_begin_fn workflows_submit, workflows_get, workflows_cancel, workflows_subscribe;

/* Private to jobs*.c: refuse a call that names no job (false), or one that there is not. */
bool jobs_is_named(struct nimi_call *call, struct str job_id);
void jobs_missing(struct run_open *open);

#endif
