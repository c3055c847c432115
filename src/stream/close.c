#include "stream/close.h"

#include <assert.h>

const struct state close_states[CLOSE_STATE_COUNT] = {
    /* clang-format off */
    [CLOSE_OPENING]     = {"opening",     TO(CLOSE_ESTABLISHED) | TO(CLOSE_CLOSING)},
    [CLOSE_ESTABLISHED] = {"established", TO(CLOSE_CLOSING)},
    [CLOSE_CLOSING]     = {"closing",     TO(CLOSE_CLOSED)},
    [CLOSE_CLOSED]      = {"closed",      0},
    /* clang-format on */
};

/* For each mode, the frames that end it. Every other cause ends it with a status. */
static const struct {
    const char *name;
    enum close_frame finished; /* last frame when the work finishes */
    enum close_frame failed;   /* last frame when it fails; NONE: its code becomes the status */
} modes[CLOSE_MODE_COUNT] = {
    /* clang-format off */
    [CLOSE_SINGLE]       = {"single",       FRAME_REPLY,    FRAME_NONE},
    [CLOSE_DONE]         = {"done",         FRAME_DONE,     FRAME_DONE},
    [CLOSE_TERMINAL]     = {"terminal",     FRAME_TERMINAL, FRAME_TERMINAL},
    [CLOSE_EOF]          = {"eof",          FRAME_EOF,      FRAME_NONE},
    [CLOSE_SUBSCRIPTION] = {"subscription", FRAME_NONE,     FRAME_NONE},
    /* clang-format on */
};

/* The status of each cause; ERR_NONE: the code of the work decides. */
static const enum err_code cause_status[CAUSE_COUNT] = {
    [CAUSE_LEFT] = ERR_CANCELLED,
    [CAUSE_DEADLINE] = ERR_DEADLINE_EXCEEDED,
    [CAUSE_STALLED] = ERR_RESOURCE_EXHAUSTED,
    [CAUSE_STOPPING] = ERR_CANCELLED,
};

struct str close_mode_name(enum close_mode mode) {
    return str_from(modes[mode].name);
}

/* The only function that writes close->state. */
static void close_move(struct close *close, enum close_state next) {
    assert(states_allow(close_states, close->state, next));
    close->state = next;
}

void close_init(struct close *close, enum close_mode mode) {
    *close = (struct close){.mode = mode, .state = CLOSE_OPENING};
}

void close_establish(struct close *close) {
    close_move(close, CLOSE_ESTABLISHED);
}

void close_frame(struct close *close, enum close_frame frame) {
    if (frame == FRAME_DATA) {
        assert(close->state == CLOSE_ESTABLISHED && close->mode != CLOSE_SINGLE);
        return;
    }
    assert(close->state == CLOSE_CLOSING && frame == close->ending.last && frame != FRAME_NONE);
    close->ending.last = FRAME_NONE; /* sent, so no longer due */
}

static struct close_ending ending_of(const struct close *close, enum close_cause cause,
                                     enum err_code code) {
    if (cause_status[cause] != ERR_NONE) {
        return (struct close_ending){FRAME_NONE, cause_status[cause]};
    }
    enum close_frame last =
        cause == CAUSE_FINISHED ? modes[close->mode].finished : modes[close->mode].failed;
    if (close->state == CLOSE_OPENING) last = FRAME_NONE;
    if (last != FRAME_NONE) return (struct close_ending){last, ERR_NONE};
    /* A subscription does not end by itself. If its source ends, it is cancelled. */
    if (cause == CAUSE_FINISHED) return (struct close_ending){FRAME_NONE, ERR_CANCELLED};
    return (struct close_ending){FRAME_NONE, code == ERR_NONE ? ERR_UNKNOWN : code};
}

struct close_ending close_decide(struct close *close, enum close_cause cause,
                                 enum err_code code) {
    if (close->state >= CLOSE_CLOSING) {
        if (cause == CAUSE_LEFT) close->ending.last = FRAME_NONE;
        return close->ending;
    }
    assert(cause != CAUSE_FINISHED || close->state == CLOSE_ESTABLISHED);
    close->ending = ending_of(close, cause, code);
    close_move(close, CLOSE_CLOSING);
    return close->ending;
}

void close_end(struct close *close) {
    assert(close->ending.last == FRAME_NONE);
    close_move(close, CLOSE_CLOSED);
}

bool close_is_by_peer(enum close_cause cause) {
    return cause == CAUSE_LEFT || cause == CAUSE_DEADLINE || cause == CAUSE_STALLED;
}
