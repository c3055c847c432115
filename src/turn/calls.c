#include "turn/calls.h"

#include "base/mem.h"
#include "turn/turn.h"

#include <assert.h>
#include <stdlib.h>

const struct state turn_call_states[TURN_CALL_STATE_COUNT] = {
    /* clang-format off */
    [TURN_CALL_PENDING]  = {"pending",  TO(TURN_CALL_OUT) | TO(TURN_CALL_ANSWERED)},
    [TURN_CALL_OUT]      = {"out",      TO(TURN_CALL_ANSWERED)},
    [TURN_CALL_ANSWERED] = {"answered", 0},
    /* clang-format on */
};

void turn_call_move(struct turn_call *call, enum turn_call_state next) {
    size_t *out = &call->run->calls.out;
    assert(states_allow(turn_call_states, call->state, next));
    if (call->state == TURN_CALL_OUT) (*out)--;
    if (next == TURN_CALL_OUT) (*out)++;
    call->state = next;
}

/* --- the list ----------------------------------------------------------------------------- */

struct turn_call *calls_add(struct run *run) {
    struct calls *calls = &run->calls;
    if (calls->count == calls->room) {
        calls->room = calls->room ? calls->room * 2 : 4;
        calls->list = mem_resize(calls->list, calls->room * sizeof(struct turn_call));
    }
    struct turn_call *call = &calls->list[calls->count++];
    *call = (struct turn_call){.run = run, .state = TURN_CALL_PENDING};
    return call;
}

void calls_clear(struct calls *calls) {
    assert(calls->out == 0);
    calls->count = 0;
}

void calls_leave_only(struct calls *calls, size_t index) {
    calls->list[0] = calls->list[index];
    calls->count = 1;
}

void calls_retract(struct calls *calls) {
    for (size_t i = 0; i < calls->count; i++) calls->list[i].recorded = false;
}

void calls_done(struct calls *calls) {
    free(calls->list);
}

/* --- searching ---------------------------------------------------------------------------- */

bool turn_call_is_transfer(const struct turn_call *call) {
    return str_equal(call->tool, STR(TRANSFER_TOOL));
}

static bool is_undecided(const struct turn_call *call) {
    return call->state == TURN_CALL_PENDING && call->asks;
}

static bool is_open_transfer(const struct turn_call *call) {
    return call->state == TURN_CALL_PENDING && turn_call_is_transfer(call);
}

struct turn_call *calls_undecided(const struct calls *calls) {
    for (size_t i = 0; i < calls->count; i++) {
        if (is_undecided(&calls->list[i])) return &calls->list[i];
    }
    return NULL;
}

struct turn_call *calls_transfer(const struct calls *calls) {
    for (size_t i = 0; i < calls->count; i++) {
        if (is_open_transfer(&calls->list[i])) return &calls->list[i];
    }
    return NULL;
}

bool calls_settled(const struct calls *calls) {
    for (size_t i = 0; i < calls->count; i++) {
        const struct turn_call *call = &calls->list[i];
        if (call->state != TURN_CALL_ANSWERED && !is_undecided(call) && !is_open_transfer(call))
            return false;
    }
    return true;
}

struct turn_call *calls_open(const struct calls *calls, struct str call_id) {
    for (size_t i = 0; i < calls->count; i++) {
        struct turn_call *call = &calls->list[i];
        if (call->state != TURN_CALL_ANSWERED && str_equal(call->call_id, call_id)) return call;
    }
    return NULL;
}
