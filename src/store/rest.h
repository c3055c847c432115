/* rest: the store's thread frees what it can do without.
 *
 * Threads  any loop; fn runs on the store's.
 */
#ifndef WEIR_STORE_REST_H
#define WEIR_STORE_REST_H

#include "store/store.h"

/* Free the memory of cached pages, which will not be needed for a while; then call fn(ctx). */
void store_rest(struct store *store, struct loop *home, task_fn *fn, void *ctx);

#endif
