/* answer: fill in what a load asked for, from the tables and the log.
 *
 * What is pending must be in the tables by then, if only within a transaction that has not
 * been committed.
 *
 * Memory   the answer is in the load's arena, which the asker frees.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_ANSWER_H
#define WEIR_STORE_ANSWER_H

#include "store/project.h"
#include "store/store.h"

struct answer {
    struct database *db;
    struct rows *rows;
    struct runs *runs;
    struct project *project;
    struct prepared *unfinished, *threads;
};

MUST_CHECK bool answer_open(struct answer *answer, struct project *project, struct err *e);
void answer_close(struct answer *answer);

/* errors  ERR_DATA_LOSS a row is damaged; ERR_RESOURCE_EXHAUSTED more than fits an arena */
MUST_CHECK bool answer_load(struct answer *answer, struct store_load *load, struct err *e);

#endif
