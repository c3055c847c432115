/* job_inner: the parts of a job at work that its files share. Private to contract/nimi, between
 * job_work.c and the files of those who are asked. */
#ifndef WEIR_CONTRACT_NIMI_JOB_INNER_H
#define WEIR_CONTRACT_NIMI_JOB_INNER_H

#include "contract/nimi/attach.h"
#include "contract/nimi/job_fold.h"
#include "contract/nimi/job_spec.h"
#include "contract/nimi/job_work.h"
#include "run/making.h"
#include "run/model_call.h"

#define JOB_OUTPUT_MAX_BYTES (4 * MIB - 64 * KIB) /* one message hands it out */

/* Who is asked in an attempt. */
struct job_asked {
    /* Ask; then job_complete() or job_fail(), once, later. */
    bool (*ask)(struct job_work *work, struct err *e);
    /* Let go of everything. Harmless before ask(), and after the end. */
    void (*stop)(struct job_work *work, struct str why);
};

extern const struct job_asked job_asks_model, job_asks_media;

struct job_work {
    struct nimi_desk *desk;
    struct list link;      /* in desk->jobs */
    struct engine *engine; /* a reference; it keeps the connector */
    struct run_job *job;
    struct arena *arena; /* the request, and what was read from it */
    struct nimi_submit_scenario_job_request request;
    struct admission admission;
    struct job_spec spec;
    job_kept_fn *on_kept; /* NULL: nobody listens */
    void *ctx;
    bool kept; /* it is on disk and may begin */

    struct ticket *ticket;
    bool granted;
    struct timer again; /* for a ticket */

    /* The attempt. */
    const struct job_asked *asked; /* NULL: none */
    struct nimi_usage_stats usage;
    struct buf text; /* of a model, or a transcript */

    /* Of a model. */
    struct attach *attach; /* while its pictures are read */
    struct model_call *model;
    struct cursor *cursor; /* on what it says */

    /* Of a media. */
    struct making *making; /* NULL: not asked, or it has answered */
    struct arena *made;    /* vectors, and who made them */
    struct nimi_embedding_vector *vectors;
    size_t made_count;
    struct str made_by;
    bool made_all;
    struct list puts; /* artifacts on their way to the store */
    struct task tell; /* how far it is, once a turn */
};

/* The attempt came to its end: note what came, where it is not noted yet (output may be NULL).
 */
void job_complete(struct job_work *work, const struct nimi_scenario_output *output,
                  struct str model);
void job_fail(struct job_work *work, enum err_code code, struct str reason, struct str message);

/* One more item in its journal. False: it is longer than a message may be. */
bool job_note(struct job_work *work, const char *type, const struct pb_message *table,
              const void *message);

struct nimi_usage_stats job_usage(const struct event_usage *usage);

#endif
