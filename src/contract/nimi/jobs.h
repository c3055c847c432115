/* jobs: the calls about jobs (mode B): submit, get, cancel, subscribe, and what came of one.
 *
 *     submit ─▶ admitted ─▶ its key? ─▶ begun (job_work.h) ─▶ on disk ─▶ the job
 *     others ─▶ found (job_find.h) ─▶ may the caller see it? ─▶ the job | its events | ...
 *
 * Whoever asks about a job is answered from its journal. A subscriber reads that journal from
 * the first event, live or in the store, and is told the terminal event and OK; one that does
 * not read is ended RESOURCE_EXHAUSTED without it, never both.
 *
 * Memory   what a call needs belongs to it.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.5, 3.4, 6.2, 6.4; checks.md K19, K20, K24.
 */
#ifndef WEIR_CONTRACT_NIMI_JOBS_H
#define WEIR_CONTRACT_NIMI_JOBS_H

#include "contract/nimi/call.h"

nimi_begin_fn jobs_submit, jobs_get, jobs_cancel, jobs_subscribe, jobs_artifacts;

#endif
