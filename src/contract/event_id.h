/* event_id: "<run>-<seq>", by which callers name one event of a run, mostly a question.
 *
 * Memory   values only.
 * Threads  none.
 */
#ifndef WEIR_CONTRACT_EVENT_ID_H
#define WEIR_CONTRACT_EVENT_ID_H

#include "wire/json.h"

#define EVENT_ID_BYTES 48

void event_id_put(struct buf *out, uint64_t run, uint64_t seq);
void event_id_write(struct json_writer *json, const char *key, uint64_t run, uint64_t seq);

/* False: it names no event. */
bool event_id_read(struct str text, uint64_t *ret_run, uint64_t *ret_seq);

#endif
