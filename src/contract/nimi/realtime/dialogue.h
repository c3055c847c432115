/* dialogue: the conversation of a session, as encoded messages, bounded in bytes.
 *
 * A turn is what its caller appended and the model's reply, encoded as `input` members of a
 * TextGenerateScenarioSpec. Encoded turns can be joined, so that the conversation is read as one
 * such spec. When a turn does not fit, the oldest turns are dropped whole.
 *
 * Memory   owns its bytes.
 * Threads  none.
 */
#ifndef WEIR_CONTRACT_NIMI_REALTIME_DIALOGUE_H
#define WEIR_CONTRACT_NIMI_REALTIME_DIALOGUE_H

#include "base/buf.h"
#include "base/units.h"

#define DIALOGUE_MAX_BYTES (1 * MIB)
#define DIALOGUE_TURNS_MAX 256

struct dialogue {
    struct buf bytes;
    size_t sizes[DIALOGUE_TURNS_MAX]; /* of its turns, the oldest first */
    size_t count;
};

void dialogue_init(struct dialogue *dialogue);
void dialogue_done(struct dialogue *dialogue);

/* Add a turn. One that is longer than DIALOGUE_MAX_BYTES leaves nothing but itself unkept: the
 * conversation begins again. */
void dialogue_add(struct dialogue *dialogue, struct str turn);

/* All turns, joined; valid until the next turn is added. */
static inline struct str dialogue_str(const struct dialogue *dialogue) {
    return buf_str(&dialogue->bytes);
}

#endif
