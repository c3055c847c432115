/* approvals: what waits for a human, and the human's answer.
 *
 * An approval's id is its run's id and the number of its event there, "<run>-<seq>"; it is the
 * same after a restart. What waits is read from the table of pending approvals. What is not in
 * memory, or was answered, is read from the run. Reading a run does not bring it back into
 * memory. approvals.c reads one, approvals_list.c lists them, approval_answer.c answers.
 */
#ifndef WEIR_CONTRACT_WEIR_APPROVALS_H
#define WEIR_CONTRACT_WEIR_APPROVALS_H

#include "contract/weir/inner.h"

#define APPROVAL_TEXT_MAX_BYTES (32 * MIB) /* of one, the most that a run can hold */
#define APPROVAL_BODY_MAX_BYTES (64 * MIB)

#define APPROVAL_NO_CALL "this is a question, not a call that could be edited; send an answer"

/* An answer in two forms: as a decision about a call, and as the answer to a plain question. */
struct approval_words {
    struct str decision, words;
    bool edits; /* it changes the arguments of a call, so it is no answer to a plain question */
};

/* Read the run and reply with what the approval came to. `said`: the answer in the request; it
 * gets the same reply as the same answer before. NULL: the request only reads. */
void approval_look_up(struct route_call *call, struct api_instance *instance,
                      const struct api_caller *caller, const struct late *late, uint64_t run,
                      uint64_t seq, const struct approval_words *said);

/* Reply that the answer was taken. state: of its run. */
void approval_report_taken(struct route_call *call, uint64_t run, uint64_t seq,
                           struct str state);

/* Read the id in the path. False: it is invalid, and a refusal has been sent. */
MUST_CHECK bool approval_take_id(struct route_call *call, uint64_t *ret_run, uint64_t *ret_seq);

#endif
