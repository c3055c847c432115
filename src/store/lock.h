/* lock: one process per store folder.
 *
 * folder/weir.lock is locked while the store is open. It holds the owner's process id, for the
 * error message of a process that is refused. The kernel releases the lock when the process
 * dies, however it dies. The file stays, because removing it would let two processes each lock
 * their own.
 *
 * Memory   none.
 * Threads  any one.
 */
#ifndef WEIR_STORE_LOCK_H
#define WEIR_STORE_LOCK_H

#include "base/err.h"

#define LOCK_NONE (-1)

/* errors  ERR_FAILED_PRECONDITION another process has it; ERR_UNAVAILABLE cannot be opened */
MUST_CHECK bool lock_take(const char *folder, int *ret_lock, struct err *e);
void lock_drop(int lock);

#endif
