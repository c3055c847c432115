/* tape: a provider that is recorded, and one that is played from a recording.
 *
 * The recorder stands around another provider and passes on all that it says; the ending goes
 * on once its file is written, or could not be. What is cancelled is not recorded: nobody knows
 * how it would have ended. The player asks nobody.
 *
 * Memory   both hold a reference to the tape; the recorder borrows the provider within.
 * Threads  as provider.h.
 */
#ifndef WEIR_PROVIDER_TAPE_H
#define WEIR_PROVIDER_TAPE_H

#include "provider/provider.h"
#include "tape/tape.h"

struct provider *recording_provider_new(struct tape *tape, struct provider *inner);
struct provider *playing_provider_new(struct tape *tape, struct str name);

/* Append `request` as a recording has it: one JSON object in which the ids of calls are
 * numbers in the order of their appearance. */
void tape_put_request(const struct provider_request *request, struct buf *out);

#endif
