#include "daemon/code_rest.h"

#include <assert.h>

const struct state code_states[CODE_STATE_COUNT] = {
    [CODE_STARTING] = {"starting", TO(CODE_USED)},
    [CODE_USED] = {"used", TO(CODE_LET_GO)},
    [CODE_LET_GO] = {"let go", TO(CODE_USED)},
};

static void code_rest_move(struct code_rest *rest, enum code_state next) {
    assert(states_allow(code_states, rest->state, next));
    rest->state = next;
}

static bool code_rest_while_used(struct code_rest *rest, uint64_t now_us, uint64_t since_us) {
    if (++rest->looks >= CODE_REST_LOOKS || now_us - rest->used_us >= CODE_REST_WORK_US)
        rest->stays = false;
    if (rest->stays || since_us > CODE_REST_QUIET_US) return false;
    code_rest_move(rest, CODE_LET_GO);
    return true;
}

static bool code_rest_while_let_go(struct code_rest *rest, uint64_t now_us, uint64_t since_us) {
    if (since_us <= CODE_REST_NOTHING_US) return true;
    rest->stays = true;
    rest->looks = 0;
    rest->used_us = now_us;
    code_rest_move(rest, CODE_USED);
    return false;
}

bool code_rest_look(struct code_rest *rest, uint64_t now_us) {
    uint64_t since_us = now_us - rest->looked_us;
    switch (rest->state) {
    case CODE_STARTING: code_rest_move(rest, CODE_USED); return true;
    case CODE_USED: return code_rest_while_used(rest, now_us, since_us);
    case CODE_LET_GO: return code_rest_while_let_go(rest, now_us, since_us);
    case CODE_STATE_COUNT: break;
    }
    assert(false);
    return false;
}

void code_rest_looked(struct code_rest *rest, uint64_t now_us) {
    rest->looked_us = now_us;
}
