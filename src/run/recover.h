/* recover: say of every run that a dead process left running that it was interrupted.
 *
 * Memory   owns what it needs until `done`.
 * Threads  the loop it is given.
 * Source   checks.md K26.
 */
#ifndef WEIR_RUN_RECOVER_H
#define WEIR_RUN_RECOVER_H

#include "store/store.h"

/* Once: how many runs were ended, or what kept them from it. */
typedef void recovered_fn(size_t count, const struct err *failed, void *ctx);

void recover_start(struct store *store, struct loop *loop, recovered_fn *done, void *ctx);

#endif
