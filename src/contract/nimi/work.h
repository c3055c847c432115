/* work: what goes on in the call of a scenario, whatever its type.
 *
 *     admitted ─▶ prepare() ─▶ [reads pictures] ─▶ waits for a slot ─▶ ask() ─▶
 *         a stream on journal() ─▶ ended
 *
 * A type of scenario is one struct scenario_kind: how its spec becomes a question, who is
 * asked, and which journal says what happens. Private to contract/nimi, between scenario.c and
 * the files of the types.
 *
 * Memory   the work belongs to its call; `arena` holds the question.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_WORK_H
#define WEIR_CONTRACT_NIMI_WORK_H

#include "contract/nimi/admit.h"
#include "contract/nimi/attach.h"
#include "contract/nimi/call.h"
#include "contract/nimi/project.h"
#include "contract/nimi/prompt.h"
#include "journal/feed.h"
#include "run/making.h"
#include "stream/stream.h"

struct work;

struct scenario_kind {
    size_t clocks_at; /* in struct nimi_settings: its struct model_call_clocks */
    /* Before anything is promised: the question, in the work's arena. */
    bool (*prepare)(struct work *work, const struct scenario *asked, struct fault *fault);
    /* A slot is ours: ask. *ret_journal is where the answer is read. */
    bool (*ask)(struct work *work, struct journal **ret_journal, struct err *e);
    /* Nobody wants the answer any more; harmless before ask(), and after the answer's end. */
    void (*stop)(struct work *work, struct str why);
    /* Unary: end the call with the whole answer; `model` is who gave it. NULL: it only
     * streams. */
    void (*reply)(struct work *work, struct str model);
};

struct work {
    struct nimi_call *call;
    struct engine *engine; /* a reference, from admission to the end */
    const struct scenario_kind *kind;
    struct arena *arena; /* the question */
    struct admission admission;
    struct str app, subject; /* kept by the call */
    struct str uploader;     /* whose uploads it may show: the subject, or empty */
    struct model_call_clocks clocks;
    struct ticket *ticket;
    struct timer wait; /* for a slot */
    uint64_t waited_ms;
    bool granted; /* it has had a slot */
    struct stream *stream;
    struct projection projection;

    /* Of text. */
    struct prompt prompt;
    struct attach *attach; /* while its pictures are read */
    struct model_call *model;
    struct buf reply; /* unary: what was said so far */

    /* Of what a media makes. */
    struct media_request request;
    struct making *making; /* NULL: not asked yet, or it has answered */
    struct feed *feed;
    struct event_usage usage;
    struct str made_by;
    bool made;
    struct nimi_embedding_vector *vectors;
};

extern const struct scenario_kind scenario_text, scenario_speech, scenario_embedding;

/* Others may have the slot; what is still to be sent needs none. */
void work_release_slot(struct work *work);

/* End a unary call with `output`. */
void work_reply(struct work *work, const struct nimi_scenario_output *output, struct str model);

#endif
