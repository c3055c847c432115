/* store_fake: a store whose answers the test gives, one by one.
 *
 * Defines store_write(), store_load() and store_run(), so a test that is linked with it decides
 * when a commit reaches the disk, in which order, and whether at all. Successful writes are
 * remembered, and loads are answered from them as by the real store. A task runs on a database
 * in memory that has the real tables.
 *
 * Threads  one: everything happens on the test's.
 */
#ifndef WEIR_TEST_FAKE_STORE_FAKE_H
#define WEIR_TEST_FAKE_STORE_FAKE_H

#include "store/task.h"

struct store *fake_store_new(void);
void fake_store_free(struct store *store); /* nothing may wait */

/* From now on another replica writes to it as well, and holds what the test puts into the table
 * `lease` for number 2. This one is number 1. Its tasks also find the tables `posted`, `moved` and `place`,
 * but runs only if the test puts them there. */
void fake_store_share(struct store *store);

/* Run this on the tables of its tasks. */
void fake_store_sql(struct store *store, const char *sql);

/* What store_bucket() answers; NULL until set. */
void fake_store_bucket(struct store *store, struct bucket *bucket);

/* Writes that wait, the oldest first. */
size_t fake_store_writes(const struct store *store);
const struct store_write *fake_store_write(const struct store *store, size_t index);

/* Answer the write at `index`; the answer arrives with the next turn of its loop. */
void fake_store_commit(struct store *store, size_t index);
void fake_store_lose(struct store *store, size_t index, enum err_code code);

/* From now on answer each write and each task at once: commit it, or lose it. */
void fake_store_always_commit(struct store *store);
void fake_store_always_lose(struct store *store, enum err_code code);
void fake_store_ask_me(struct store *store); /* back to one by one */

/* Put encoded events of a run into the log, in a row of their own, as if they had been written
 * before. */
void fake_store_put(struct store *store, uint64_t run, uint64_t first_seq, struct str events);
/* Nothing of any run is there any more. */
void fake_store_erase_all(struct store *store);

/* How many writes were ever sent. */
size_t fake_store_sent(const struct store *store);

/* Loads that wait, answered from what was committed, or refused. */
size_t fake_store_loads(const struct store *store);
void fake_store_answer(struct store *store, size_t index);
void fake_store_refuse(struct store *store, size_t index, enum err_code code);

/* Tasks that wait, the oldest first; run it, or have it fail without having run. */
size_t fake_store_tasks(const struct store *store);
void fake_store_run(struct store *store, size_t index);
void fake_store_fail(struct store *store, size_t index, enum err_code code);

/* What the tables of its tasks say, as one number. */
int64_t fake_store_number(struct store *store, const char *sql);

#endif
