/* job_bytes: the bytes of what a job made, put into the list of its artifacts.
 *
 * What fits into the message stands in it; the rest is given an address (fetch.h), or a note in
 * its metadata that says why there is neither. Films stand in no message when they have more
 * than a mebibyte, or an address of their own.
 *
 * Memory   owns the bytes it adds, until job_bytes_done().
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2 "completed".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_BYTES_H
#define WEIR_CONTRACT_NIMI_JOB_BYTES_H

#include "contract/nimi/call.h"
#include "contract/nimi/job_fold.h"
#include "store/artifact.h"

#define JOB_MESSAGE_MAX_BYTES (4 * MIB - 64 * KIB) /* the SDK takes no message above 4 MiB */

struct job_bytes;

/* Once, later. failed: the store cannot read them now. An artifact that is gone is none. */
typedef void job_bytes_done_fn(const struct err *failed, void *ctx);

struct job_bytes_options {
    struct nimi_call *call;
    struct str app;                           /* whose they are; until it is done */
    struct nimi_scenario_artifact *artifacts; /* the same */
    size_t count;
    size_t room_bytes; /* what they may have in all */
    job_bytes_done_fn *done;
    void *ctx;
};

struct job_bytes *job_bytes_start(const struct job_bytes_options *options);
void job_bytes_free(struct job_bytes *bytes); /* no callback afterwards; NULL is fine */

/* --- a whole snapshot --------------------------------------------------------------------- */

/* A copy of a job that is completed, with the bytes of its artifacts. */
struct job_shown;

/* `job` lives until job_shown_free(). Once, later. */
typedef void job_shown_fn(const struct nimi_scenario_job *job, const struct err *failed,
                          void *ctx);

/* NULL: there is nothing to add to what the fold shows. */
struct job_shown *job_shown_start(struct nimi_call *call, const struct job_fold *fold,
                                  job_shown_fn *shown, void *ctx);
void job_shown_free(struct job_shown *shown); /* no callback afterwards; NULL is fine */

#endif
