/* keeper: writes the journals of one loop to the store.
 *
 * A journal with an event that needs the disk is written at the end of the loop turn, in a row
 * of its own, with everything before it. All other journals wait for the tick, when the text of
 * all live runs shares one row. A run's first row, and rows with a tool result, are never
 * shared, because a session's history is read from them. A journal has at most one write on its
 * way, so its parts reach the log in order.
 *
 * Memory   owns the writes on their way.
 * Threads  belongs to its loop.
 * Source   design.md "The commit is cheap by design".
 */
#ifndef WEIR_JOURNAL_KEEPER_H
#define WEIR_JOURNAL_KEEPER_H

#include "loop/loop.h"
#include "store/store.h"

struct keeper;

#define KEEPER_TICK_MS 250
#define KEEPER_TICK_BYTES (256 * KIB)

/* `store` is borrowed and must outlive the keeper. */
struct keeper *keeper_new(struct loop *loop, struct store *store);

/* Write everything that waits now, and call on_kept(ctx) once it is written or has failed. Text
 * that fails now is not tried again: its journal is lost, as if the text had needed the
 * disk. */
void keeper_flush(struct keeper *keeper, task_fn *on_kept, void *ctx);

/* A journal of this loop gets one more event, soon: a flush waits for it, until as many calls of
 * keeper_expect_no_more() were made. */
void keeper_expect(struct keeper *keeper);
void keeper_expect_no_more(struct keeper *keeper);

/* No write may be on its way: see keeper_flush(). */
void keeper_free(struct keeper *keeper);

#endif
