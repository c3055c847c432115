/* code_rest: when the pages of the program's code and constants are let go (base/program.h).
 *
 *     starting ─▶ used ⇄ let go
 *
 * What only the start needed goes at the first look. From then on the code goes at a rest: a time
 * between two looks in which the process took next to no processor time. While nothing but looks
 * happens, each look lets go what it used itself. After anything else the code stays until there
 * was some work, or some minutes have passed, and then goes at the next rest.
 *
 * So the request that ends a rest pays for it, with some 30 page faults, a tenth of a millisecond,
 * but at most once in minutes, and less than a hundredth of all work goes to it. Work without a rest
 * never pays.
 *
 * Threads  one: it is a plain value.
 */
#ifndef WEIR_DAEMON_CODE_REST_H
#define WEIR_DAEMON_CODE_REST_H

#include "base/attr.h"
#include "base/states.h"

#include <stdbool.h>
#include <stdint.h>

/* Of processor time. */
#define CODE_REST_NOTHING_US 100 /* from one look to the next: only a timer */
#define CODE_REST_QUIET_US 2500  /* the same: a rest */
#define CODE_REST_WORK_US 20000  /* since the code was used: some work */
#define CODE_REST_LOOKS 20       /* some minutes */

enum code_state { CODE_STARTING, CODE_USED, CODE_LET_GO, CODE_STATE_COUNT };

extern const struct state code_states[CODE_STATE_COUNT];

/* Begins as {0}. */
struct code_rest {
    enum code_state state; /* written by code_rest_look() only */
    bool stays;            /* used: for some work or some minutes */
    unsigned looks;        /* since the code was used */
    uint64_t used_us;      /* the processor time then */
    uint64_t looked_us;    /* and at the end of the last look */
};

/* A look begins, some seconds after the last one. now_us: the processor time of the process
 * (machine_used_us()). True: let the code go at its end. */
MUST_CHECK bool code_rest_look(struct code_rest *rest, uint64_t now_us);

/* It ends: everything was given back and let go. */
void code_rest_looked(struct code_rest *rest, uint64_t now_us);

#endif
