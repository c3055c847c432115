/* work: the work of a scenario call, for every scenario type.
 *
 *     admitted ─▶ prepare() ─▶ [reads pictures] ─▶ waits for a slot ─▶ ask()
 *         ─▶ a stream reads the journal ─▶ ended
 *
 * A type of scenario is one struct scenario_kind: how its spec becomes a request, what is
 * asked, and which journal holds the answer. Private to contract/nimi, between scenario.c and
 * the files of the types.
 *
 * Memory   the work belongs to its call; `arena` holds the request.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_SCENARIO_WORK_H
#define WEIR_CONTRACT_NIMI_SCENARIO_WORK_H

#include "contract/nimi/admit.h"
#include "contract/nimi/attach.h"
#include "contract/nimi/call.h"
#include "contract/nimi/project.h"
#include "contract/nimi/prompt.h"
#include "job/media_run.h"
#include "journal/feed.h"
#include "stream/stream.h"

struct work;

struct scenario_kind {
    size_t clocks_at; /* offset of its struct model_call_clocks in struct nimi_settings */
    /* Build the request in the work's arena, before the call is accepted. */
    bool (*prepare)(struct work *work, const struct scenario *asked, struct fault *fault);
    /* The work has a slot. Ask; *ret_journal is where to read the answer. */
    bool (*ask)(struct work *work, struct journal **ret_journal, struct err *e);
    /* Stop asking. Harmless before ask() and after the end of the answer. */
    void (*stop)(struct work *work, struct str why);
    /* Unary: end the call with the whole answer, which came from `model`. NULL: this type only
     * streams. */
    void (*reply)(struct work *work, struct str model);
};

struct work {
    struct nimi_call *call; /* must be the first member */
    struct engine *engine;  /* a reference, from admission to the end */
    const struct scenario_kind *kind;
    int32_t type;        /* of `kind` */
    struct arena *arena; /* holds the request */
    struct admission admission;
    struct str app, subject; /* kept by the call */
    struct str uploader;     /* whose uploads it may use: the subject, or empty */
    struct model_call_clocks clocks;
    struct ticket *ticket;
    struct timer wait; /* limits the wait for a slot */
    uint64_t waited_ms;
    bool granted; /* it got a slot */
    struct stream *stream;
    struct nimi_projection projection;

    /* Text only. */
    struct prompt prompt;
    struct attach *attach; /* while the pictures are read */
    struct model_call *model;
    struct buf reply; /* unary: the text so far */

    /* Media only. */
    struct media_request request;
    struct media_run *media_run; /* NULL: not started, or finished */
    struct feed *feed;
    struct event_usage usage;
    struct str made_by;
    bool made;
    struct nimi_embedding_vector *vectors;
};

extern const struct scenario_kind scenario_text, scenario_speech, scenario_embedding;

/* Give the slot back. Sending the rest needs none. */
void work_release_slot(struct work *work);

/* End a unary call with `output`. */
void work_reply(struct work *work, const struct nimi_scenario_output *output, struct str model);

#endif
