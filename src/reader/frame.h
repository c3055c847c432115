/* frame: what one frame of a stream says, by the kind of its method.
 *
 * Private to reader/.
 *
 * Memory   what is read lies in the frame or in the arena.
 * Threads  none.
 * Source   contracts/nimi.md 1.4 to 1.8, 2.3; crawbl.md 2; agentbreeder.md 2.
 */
#ifndef WEIR_READER_FRAME_H
#define WEIR_READER_FRAME_H

#include "base/arena.h"
#include "reader/method.h"
#include "reader/stream_outcome.h"
#include "wire/sse.h"

struct frame_facts {
    enum stream_outcome_last last; /* LAST_DATA: it does not complete the stream */
    bool announces_failure;        /* the stream goes on, and has failed */
    bool malformed, disagrees;
    bool has_number;
    uint64_t number;
    int reason_code;
    struct str reason, message; /* of a failure */
    struct str text;            /* a piece of the answer */
};

void frame_read_message(const struct reader_method *method, struct str message,
                        struct arena *arena, struct frame_facts *ret);
void frame_read_event(const struct reader_method *method, const struct sse_event *event,
                      struct arena *arena, struct frame_facts *ret);

#endif
