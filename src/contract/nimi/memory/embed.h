/* embed: ask the model of a bank's embedding profile for the vectors of some texts.
 *
 * A profile names a connector of the settings (by its id or its vendor; "local" is any local one)
 * and a model. It is found by the steps that a call of ExecuteScenario goes through, so a
 * caller that may not ask a model may not have it make vectors either.
 *
 *     embed_start ─▶ the model ─▶ done: OK, with a vector for each text
 *                       │           REFUSED: it takes other texts, perhaps
 *                       │           UNFIT: its vectors have another length than the profile says
 *                       ▼           DOWN: anything else that went wrong
 *                  embed_cancel
 *
 * What was used is recorded and charged as a run of the owner. The record does not have the texts.
 *
 * Private to contract/nimi/memory.
 *
 * Memory   copies the texts; frees itself after done, or in embed_cancel().
 * Threads  the instance's loop.
 * Source   contracts/nimi.md 1.11, 3.3; job/media_run.h.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_EMBED_H
#define WEIR_CONTRACT_NIMI_MEMORY_EMBED_H

#include "contract/nimi/fault.h"
#include "store/bank_vector.h"

struct nimi_instance;
struct nimi_memory_embedding_profile;
struct nimi_settings;

enum embed_end { EMBED_OK, EMBED_REFUSED, EMBED_UNFIT, EMBED_DOWN };

struct embed;

/* Called once, never before embed_start() returns. `failed` says why it is not EMBED_OK.
 * values  the vectors, one after the other; borrowed */
typedef void embed_done_fn(enum embed_end end, const float *values, const struct err *failed,
                           void *ctx);

struct embed_options {
    struct nimi_instance *instance;
    const struct nimi_memory_embedding_profile *profile; /* borrowed during the call */
    struct store_owner owner;                            /* copied */
    const struct str *texts;                             /* none is empty; copied */
    size_t count;                                        /* 1 to BANK_BEHIND_MAX */
    uint64_t total_ms;
    embed_done_fn *done;
    void *ctx;
};

/* NULL: there is no such model, or the owner may not ask it now.
 * errors  KNOWLEDGE_EMBEDDING_PROFILE_UNAVAILABLE */
struct embed *embed_start(const struct embed_options *options, struct fault *fault);
void embed_cancel(struct embed *embed); /* no done any more; NULL is fine */

/* The profile itself.
 * errors  PROTOCOL_ENVELOPE_INVALID it is not complete, or has an unknown value */
MUST_CHECK bool embed_profile_is_ok(const struct nimi_memory_embedding_profile *profile,
                                    struct fault *fault);

/* Whether two profiles make the same vectors; NULL is none. */
bool embed_profile_same(const struct nimi_memory_embedding_profile *one,
                        const struct nimi_memory_embedding_profile *other);

#endif
