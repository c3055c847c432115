/* lock: one process per store folder.
 *
 * folder/weir.lock is locked for as long as the store is open and holds the owner's process
 * id for whoever is refused. The kernel lets go of it when the process dies, however it dies;
 * the file itself stays, because removing it would let two processes each lock their own.
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
