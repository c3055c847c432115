/* tape: record a provider, and replay the recording.
 *
 * The recorder wraps another provider and passes on all its events. It holds back the ending
 * until the file has been written, or writing has failed. A cancelled call is not recorded,
 * because its ending is unknown; one that its caller finishes is, with what had come. The player
 * never calls a provider.
 *
 * Memory   both hold a reference to the tape; the recorder borrows the inner provider.
 * Threads  as provider.h.
 */
#ifndef WEIR_PROVIDER_TAPE_H
#define WEIR_PROVIDER_TAPE_H

#include "provider/provider.h"
#include "tape/tape.h"

struct provider *recording_provider_new(struct tape *tape, struct provider *inner);
struct provider *playing_provider_new(struct tape *tape, struct str name);

/* Append `request` in the form used in recordings: one JSON object in which call ids are
 * replaced by numbers in order of appearance. */
void tape_put_request(const struct provider_request *request, struct buf *out);

#endif
