/* reply: the store's answers, as mail to the loops that asked. Private to store/.
 *
 * Each function takes a list, which belongs to its owners again as soon as it is posted.
 *
 * Threads  the store's; callbacks run on the `home` of each request.
 */
#ifndef WEIR_STORE_REPLY_H
#define WEIR_STORE_REPLY_H

#include "store/task.h"

/* Each with its own result, in `failed`. */
void reply_writes(struct store_write *writes);
void reply_loads(struct store_load *loads);
void reply_tasks(struct store_task *tasks);

/* All with the same. */
void reply_writes_failed(struct store_write *writes, const struct err *why);
void reply_loads_failed(struct store_load *loads, const struct err *why);
void reply_tasks_failed(struct store_task *tasks, const struct err *why);

#endif
