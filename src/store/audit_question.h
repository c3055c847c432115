/* audit_question: the open questions to humans, by run. Private to store/.
 *
 * The result of a question's call is the human's answer, and the audit log has a record of it. A
 * question may stay open for months and there may be many, so a run that waits costs 16 bytes
 * here, and nothing else in the audit log's memory.
 *
 * Memory   owns its array, at most AUDIT_QUESTIONS_MAX entries. A question beyond that is not
 *          kept; its answer is then recognised by its form, as after a restart.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_AUDIT_QUESTION_H
#define WEIR_STORE_AUDIT_QUESTION_H

#include "base/str.h"

#define AUDIT_QUESTIONS_MAX 65536

struct audit_question {
    uint64_t run;
    uint64_t call; /* the first 8 bytes of the SHA-256 of the call's id */
};

/* Sorted by run. All zero is an empty one. */
struct audit_questions {
    struct audit_question *at;
    size_t count, room;
};

/* A run has one open question: a newer one replaces it. */
void audit_questions_put(struct audit_questions *questions, uint64_t run, struct str call_id);

/* NULL: none is known. */
const struct audit_question *audit_questions_find(const struct audit_questions *questions,
                                                  uint64_t run);

/* Whether the question was asked by the call with this id. */
bool audit_question_is(const struct audit_question *question, struct str call_id);

void audit_questions_remove(struct audit_questions *questions, uint64_t run);
void audit_questions_clear(struct audit_questions *questions);

#endif
