/* job_inner: the parts of a running job that its files share. Private to contract/nimi, between
 * job_work.c, job_text.c and job_media.c. */
#ifndef WEIR_CONTRACT_NIMI_JOB_JOB_INNER_H
#define WEIR_CONTRACT_NIMI_JOB_JOB_INNER_H

#include "contract/nimi/attach.h"
#include "contract/nimi/job/job_fold.h"
#include "contract/nimi/job/job_slot.h"
#include "contract/nimi/job/job_spec.h"
#include "contract/nimi/job/job_work.h"
#include "job/media_run.h"
#include "job/model_call.h"

#define JOB_OUTPUT_MAX_BYTES (4 * MIB - 64 * KIB) /* it is sent in one message */

/* How an attempt is made: by a model or by a media interface. */
struct job_asked {
    /* Start the request. job_complete() or job_fail() follows once, later. */
    bool (*ask)(struct job_work *work, struct err *e);
    /* Release everything. Harmless before ask() and after the end. */
    void (*stop)(struct job_work *work, struct str why);
};

extern const struct job_asked job_asks_model, job_asks_media;

struct job_work {
    struct nimi_instance *instance;
    struct list link;      /* in instance->jobs */
    struct engine *engine; /* a reference; keeps the connector alive */
    struct run_job *job;
    struct arena *arena; /* holds the request and what was read from it */
    struct nimi_submit_scenario_job_request request;
    struct admission admission;
    struct job_spec spec;
    job_kept_fn *on_kept; /* NULL: no caller is waiting */
    void *ctx;

    struct str owner; /* whose share of the slots it uses; empty: an earlier process's */
    struct job_slot slot;

    /* The attempt. */
    const struct job_asked *asked; /* NULL: no attempt is running */
    struct nimi_usage_stats usage;
    struct buf text; /* a model's answer, or a transcript */

    /* A model's attempt. */
    struct attach *attach; /* while the pictures are read */
    struct model_call *model;
    struct cursor *cursor; /* reads its answer */

    /* A media interface's attempt. */
    struct media_run *media_run; /* NULL: not started, or finished */
    struct arena *made;          /* holds the vectors and the model's name */
    struct nimi_embedding_vector *vectors;
    size_t made_count;
    struct str made_by;
    bool made_all;
    struct list puts; /* artifacts being written to the store */
    struct task tell; /* reports progress, once per turn of the loop */
};

/* The attempt has ended. Note its result where that is not noted yet (output may be NULL). */
void job_complete(struct job_work *work, const struct nimi_scenario_output *output,
                  struct str model);
void job_fail(struct job_work *work, enum err_code code, struct str reason, struct str message);

/* Append an item to the journal. False: it is longer than a message may be. */
bool job_note(struct job_work *work, const char *type, const struct pb_message *table,
              const void *message);

struct nimi_usage_stats job_usage(const struct event_usage *usage);

#endif
