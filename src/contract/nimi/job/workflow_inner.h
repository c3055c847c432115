/* workflow_inner: the parts of a running workflow that its files share. Private to
 * contract/nimi/job, between workflow_work.c and workflow_run.c. */
#ifndef WEIR_CONTRACT_NIMI_JOB_WORKFLOW_INNER_H
#define WEIR_CONTRACT_NIMI_JOB_WORKFLOW_INNER_H

#include "base/text.h"
#include "contract/nimi/job/job_slot.h"
#include "contract/nimi/job/run_find.h"
#include "contract/nimi/job/workflow_ask.h"
#include "contract/nimi/job/workflow_node.h"
#include "contract/nimi/job/workflow_work.h"

struct node_run {
    struct workflow_work *work;
    struct workflow_note note; /* its state; the texts below hold what it shows */
    struct text job, error;
    struct text output; /* JSON; released when no later node needs it */
    struct workflow_ask *ask;
    struct timer retry;
    bool external_runs;
};

struct workflow_work {
    struct nimi_instance *instance;
    struct list link;      /* in instance->workflows */
    struct engine *engine; /* a reference; keeps the connectors alive */
    struct run_job *job;
    size_t charged_bytes; /* of WORKFLOW_LIVE_MAX_BYTES */
    struct text app, user, owner, trace;
    workflow_kept_fn *on_kept; /* NULL: no caller is waiting */
    void *ctx;
    uint64_t left_run; /* while it is read after a restart */
    struct job_slot slot;

    /* While it runs. */
    struct run_find *find;     /* reads the journal */
    struct workflow_fold fold; /* what it has read; its arena holds the request */
    struct arena *arena;       /* holds what was made of it; NULL: it does not run */
    struct nimi_submit_workflow_request request;
    struct workflow_graph graph;
    struct node_run *nodes;
    struct node_view *views;
    struct timer timeout;
    struct task advance;
    struct buf artifacts; /* JSON, comma-separated: all that its nodes have made */
    size_t held_bytes;    /* of the outputs that are held */
    size_t made_bytes;    /* of all outputs */
    bool unwritten;       /* a note did not fit: it fails at the loop's next turn */
    size_t last;          /* index of the node that was completed last; SIZE_MAX: none */
};

/* Before anything else. */
void workflow_run_init(struct workflow_work *work);

/* The attempt is on disk: read the journal and run the nodes. */
void workflow_run_start(struct workflow_work *work);

/* Stop everything that could still call back. `why`: cancel the nodes' jobs with this reason;
 * at == NULL: leave them. */
void workflow_run_stop(struct workflow_work *work, struct str why);

/* End the workflow as failed. */
void workflow_fail(struct workflow_work *work, int reason, struct str message);

#endif
