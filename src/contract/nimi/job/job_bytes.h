/* job_bytes: add the bytes of a job's artifacts to the list of them.
 *
 * Artifacts that fit are put into the message. The others get a URL (fetch.h), or a note in
 * their metadata that says why they have neither. A video is never put into the message if it
 * is larger than a mebibyte or has a URL of its own.
 *
 * Memory   owns the bytes it adds, until job_bytes_free().
 * Threads  the call's loop.
 * Source   contracts/nimi.md 6.2 "completed".
 */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_BYTES_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_BYTES_H

#include "contract/nimi/call.h"
#include "contract/nimi/job/job_fold.h"
#include "store/artifact.h"

#define JOB_MESSAGE_MAX_BYTES (4 * MIB - 64 * KIB) /* the SDK's limit is 4 MiB */

struct job_bytes;

/* Called once, later. failed: the store cannot read them now. A missing artifact is not a
 * failure. */
typedef void job_bytes_done_fn(const struct err *failed, void *ctx);

struct job_bytes_options {
    struct nimi_call *call;
    struct str app;                           /* their owner; borrowed until done */
    struct nimi_scenario_artifact *artifacts; /* borrowed until done */
    size_t count;
    size_t room_bytes; /* for all of them together */
    job_bytes_done_fn *done;
    void *ctx;
};

struct job_bytes *job_bytes_start(const struct job_bytes_options *options);
void job_bytes_free(struct job_bytes *bytes); /* no callback afterwards; NULL is fine */

/* --- a whole snapshot --------------------------------------------------------------------- */

/* A copy of a completed job, with the bytes of its artifacts. */
struct job_shown;

/* Called once, later. `job` lives until job_shown_free(). */
typedef void job_shown_fn(const struct nimi_scenario_job *job, const struct err *failed,
                          void *ctx);

/* NULL: there is nothing to add to the job in the fold. */
struct job_shown *job_shown_start(struct nimi_call *call, const struct job_fold *fold,
                                  job_shown_fn *shown, void *ctx);
void job_shown_free(struct job_shown *shown); /* no callback afterwards; NULL is fine */

#endif
