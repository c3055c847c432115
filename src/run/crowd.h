/* crowd: how many turns of one workspace run at once.
 *
 * One tenant must not take all that a machine can do. Each turn takes a place of its workspace
 * before it begins; where all are taken it waits in line, and whoever leaves lets the next one
 * in. Workspaces do not know of each other.
 *
 *     none ─▶ taken ─▶ none          none ─▶ waiting ─▶ taken
 *
 * Memory   a place belongs to its run and stays until it is left or withdrawn.
 * Threads  any loop; one lock inside. `granted` comes on the place's own loop.
 * Source   checks.md M5.
 */
#ifndef WEIR_RUN_CROWD_H
#define WEIR_RUN_CROWD_H

#include "base/str.h"
#include "loop/loop.h"

struct crowd;
struct throng; /* of one workspace */

enum place_state { PLACE_NONE, PLACE_WAITING, PLACE_TAKEN, PLACE_STATE_COUNT };

struct place {
    struct loop *loop;
    void (*granted)(void *ctx); /* it was waiting, and is taken now */
    void *ctx;
    /* The crowd's. */
    enum place_state state;
    struct throng *throng;
    struct list link;
    struct mail mail;
};

struct crowd *crowd_new(void);
void crowd_free(struct crowd *crowd); /* no place may be taken; NULL is fine */

/* True: there was a place. False: it waits, and `granted` comes unless it is withdrawn. */
MUST_CHECK bool crowd_enter(struct crowd *crowd, struct str workspace, size_t places_max,
                            struct place *place);

/* Stop waiting. False: too late, `granted` is on its way and must be awaited. */
MUST_CHECK bool crowd_withdraw(struct crowd *crowd, struct place *place);

/* Harmless when none is taken. */
void crowd_leave(struct crowd *crowd, struct place *place);

#endif
