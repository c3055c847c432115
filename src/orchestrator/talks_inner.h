/* talks_inner: what talks.c and talk_turn.c share.
 *
 * A talk lives as long as someone refers to it: itself until it is over, and each of its queries
 * until it is answered.
 *
 * Threads  the loop's.
 */
#ifndef WEIR_ORCHESTRATOR_TALKS_INNER_H
#define WEIR_ORCHESTRATOR_TALKS_INNER_H

#include "base/text.h"
#include "orchestrator/talks.h"

/* One agent's turn. */
struct talk_turn {
    struct talk *talk;
    size_t agent; /* index in the workspace */
    struct uuid id;
    struct turn *turn;   /* NULL: it has not begun */
    struct drive *drive; /* NULL: not with a runtime */
    struct converse_question question;
    struct list waiting; /* for a place */
    struct timer wait;
    struct timer lag; /* runs while the runtime is not read */
    bool placed;      /* it has a place */
    bool unopened;    /* its runtime was never asked */
    bool over;
    bool unstored; /* its end could not be stored */
    uint64_t began_ms;
    uint64_t partial_ms;                   /* its text was stored last; 0: never */
    int64_t created_us, updated_us;        /* of the first part, once it is stored */
    const struct postgres_request *stored; /* while turn_stored() runs */
};

struct talk {
    struct talks *talks;
    struct list link; /* in talks->all */
    unsigned refs;
    struct workspace *workspace;
    struct text message, text, asked, local_id, attachments;
    struct talk_turn turns[TALK_AGENTS_MAX];
    size_t turn_count;
    bool cancelled;
    bool begun;                   /* its turns */
    bool over;                    /* its answer was reported */
    struct list joined;           /* talks about the same message, which get its answer */
    struct list joining;          /* in another one's `joined` */
    struct talk *answers;         /* that other one, while it is in there */
    bool delivered, read;         /* these were shown of the user's message */
    const struct talk_sink *sink; /* NULL: no listener */
    void *ctx;
    struct task task;
};

/* The turns of a workspace. */
struct talks_place {
    size_t taken;
    struct list waiting; /* turns, in their order */
};

struct talks {
    struct talks_options options;
    struct list all;
    struct map *places; /* workspace to struct talks_place */
    struct timer sweep;
    size_t asking; /* queries of its own */
    task_fn *stopped;
    void *stopped_ctx;
};

/* --- talks.c ------------------------------------------------------------------------------------ */

/* Ask with a reference to the talk, which `done` ends. */
void talk_query(struct talk *talk, struct query *query, enum query_kind kind,
                query_done_fn *done);
query_done_fn talk_ignore;
void talk_release(struct talk *talk);
/* One of its turns is over. */
void talk_turn_over(struct talk *talk);
struct talks_place *talks_place_of(struct talks *talks, struct str workspace);
void talks_leave_place(struct talks *talks, struct str workspace);
void talks_check_stopped(struct talks *talks);

/* --- talk_unref.c, by itself because gcc's analyzer does not count ------------------------------- */

void talk_unref(struct talk *talk);

/* --- talk_turn.c ---------------------------------------------------------------------------------- */

void talk_turn_init(struct talk_turn *turn, struct talk *talk, size_t agent);
void talk_turn_done(struct talk_turn *turn);
/* The user's message is stored. */
void talk_turn_begin(struct talk_turn *turn);
/* It has got a place. */
void talk_turn_enter(struct talk_turn *turn);
void talk_turn_cancel(struct talk_turn *turn);
void talk_emit(struct talk *talk, const char *event, struct str json);
/* A part as a message; `content` has its JSON. */
void talk_show_part(const struct talk_turn *turn, const struct turn_part *part,
                    struct buf *content, struct shown_message *ret);

#endif
