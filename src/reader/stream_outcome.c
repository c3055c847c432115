#include "reader/stream_outcome.h"

#include <assert.h>

#define BIT(value) (1u << (value))

#define A BIT(CLOSE_DONE)
#define B BIT(CLOSE_TERMINAL)
#define C BIT(CLOSE_EOF)
#define D BIT(CLOSE_SUBSCRIPTION)

#define NOTHING BIT(LAST_NOTHING)
#define DATA BIT(LAST_DATA)
#define DONE BIT(LAST_DONE)
#define FAILED BIT(LAST_FAILED)
#define STOPPED BIT(LAST_CANCELLED)
#define INVALID BIT(LAST_INVALID)
#define NO_END (NOTHING | DATA)
#define ANY_FRAME (NO_END | DONE | FAILED | STOPPED | INVALID)

/* Sets of statuses. */
#define OK BIT(ERR_NONE)
#define CANCELLED BIT(ERR_CANCELLED)
#define EXHAUSTED BIT(ERR_RESOURCE_EXHAUSTED)
#define LATE BIT(ERR_DEADLINE_EXCEEDED)
#define NOT_FOR_US                                                                             \
    (BIT(ERR_NOT_FOUND) | BIT(ERR_PERMISSION_DENIED) | BIT(ERR_UNAUTHENTICATED) |              \
     BIT(ERR_INVALID_ARGUMENT) | BIT(ERR_UNIMPLEMENTED) | BIT(ERR_FAILED_PRECONDITION) |       \
     BIT(ERR_ALREADY_EXISTS) | BIT(ERR_OUT_OF_RANGE))
#define ANY_STATUS (~0u)
#define ERRORS (~OK)

/* Facts that a row demands, beside the three columns. */
enum demand {
    ALWAYS,
    BY_US,
    NEVER_SEEN,
    REASONED,
    HELPABLE, /* a reason that says that a later try can succeed */
};

struct row {
    unsigned modes, last, statuses;
    enum demand demand;
    struct stream_outcome_advice advice;
};

/* The first row that fits counts. The last row of each mode takes what is left. */
static const struct row rows[] = {
    /* clang-format off */
    /* The verdict of a completing frame stands, whatever follows it. */
    {A | B | C, DONE,      ANY_STATUS, ALWAYS,     {STREAM_COMPLETED,      REPEAT_NO,      WAIT_NONE,    false}},
    {A,         FAILED,    ANY_STATUS, HELPABLE,   {STREAM_FAILED,         REPEAT_UNKNOWN, WAIT_BACKOFF, false}},
    {A,         FAILED,    ANY_STATUS, ALWAYS,     {STREAM_FAILED,         REPEAT_UNKNOWN, WAIT_NONE,    false}},
    {B,         FAILED,    ANY_STATUS, ALWAYS,     {STREAM_FAILED,         REPEAT_NO,      WAIT_NONE,    false}},
    {A | B,     STOPPED,   ANY_STATUS, ALWAYS,     {STREAM_WORK_CANCELLED, REPEAT_NO,      WAIT_NONE,    false}},
    {C,         INVALID,   ANY_STATUS, ALWAYS,     {STREAM_INCOMPLETE,     REPEAT_YES,     WAIT_NONE,    false}},

    /* We ended it. */
    {A,         ANY_FRAME, ANY_STATUS, BY_US,      {STREAM_CANCELLED,      REPEAT_UNKNOWN, WAIT_NONE,    false}},
    {B | C | D, ANY_FRAME, ANY_STATUS, BY_US,      {STREAM_CANCELLED,      REPEAT_YES,     WAIT_NONE,    false}},

    /* A: one execution, which is never repeated without asking. */
    {A,         NOTHING,   ERRORS,     NEVER_SEEN, {STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, false}},
    {A,         NO_END,    OK,         ALWAYS,     {STREAM_TRUNCATED,      REPEAT_UNKNOWN, WAIT_NONE,    false}},
    {A,         NO_END,    CANCELLED,  ALWAYS,     {STREAM_PREEMPTED,      REPEAT_UNKNOWN, WAIT_READY,   false}},
    {A,         NO_END,    LATE,       ALWAYS,     {STREAM_TIMED_OUT,      REPEAT_UNKNOWN, WAIT_NONE,    false}},
    {A,         NOTHING,   ERRORS,     HELPABLE,   {STREAM_REFUSED,        REPEAT_YES,     WAIT_BACKOFF, false}},
    {A,         NOTHING,   ERRORS,     REASONED,   {STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false}},
    {A,         NOTHING,   ERRORS,     ALWAYS,     {STREAM_UNKNOWN,        REPEAT_UNKNOWN, WAIT_NONE,    false}},
    {A,         ANY_FRAME, EXHAUSTED,  ALWAYS,     {STREAM_SLOW_CONSUMER,  REPEAT_UNKNOWN, WAIT_NONE,    false}},
    {A,         ANY_FRAME, ANY_STATUS, ALWAYS,     {STREAM_BROKEN,         REPEAT_UNKNOWN, WAIT_NONE,    false}},

    /* B: a view of work that goes on without us. */
    {B,         NOTHING,   NOT_FOR_US, ALWAYS,     {STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false}},
    {B,         ANY_FRAME, OK,         ALWAYS,     {STREAM_TRUNCATED,      REPEAT_YES,     WAIT_BACKOFF, true}},
    {B,         ANY_FRAME, CANCELLED,  ALWAYS,     {STREAM_PREEMPTED,      REPEAT_YES,     WAIT_READY,   true}},
    {B,         ANY_FRAME, EXHAUSTED,  ALWAYS,     {STREAM_SLOW_CONSUMER,  REPEAT_YES,     WAIT_NONE,    true}},
    {B,         ANY_FRAME, LATE,       ALWAYS,     {STREAM_TIMED_OUT,      REPEAT_YES,     WAIT_NONE,    true}},
    {B,         ANY_FRAME, ANY_STATUS, ALWAYS,     {STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, true}},

    /* C: a read that is worth nothing unless it is whole. */
    {C,         NOTHING,   NOT_FOR_US, ALWAYS,     {STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false}},
    {C,         ANY_FRAME, CANCELLED,  ALWAYS,     {STREAM_INCOMPLETE,     REPEAT_YES,     WAIT_READY,   false}},
    {C,         ANY_FRAME, ANY_STATUS, ALWAYS,     {STREAM_INCOMPLETE,     REPEAT_YES,     WAIT_BACKOFF, false}},

    /* D: a subscription, which the client opens again. */
    {D,         ANY_FRAME, OK,         ALWAYS,     {STREAM_DISCONNECTED,   REPEAT_YES,     WAIT_READY,   false}},
    {D,         ANY_FRAME, CANCELLED,  ALWAYS,     {STREAM_DISCONNECTED,   REPEAT_YES,     WAIT_READY,   false}},
    {D,         ANY_FRAME, EXHAUSTED,  ALWAYS,     {STREAM_SLOW_CONSUMER,  REPEAT_YES,     WAIT_NONE,    true}},
    {D,         ANY_FRAME, NOT_FOR_US, ALWAYS,     {STREAM_REFUSED,        REPEAT_NO,      WAIT_NONE,    false}},
    {D,         ANY_FRAME, ANY_STATUS, ALWAYS,     {STREAM_BROKEN,         REPEAT_YES,     WAIT_BACKOFF, false}},
    /* clang-format on */
};

static bool demands(const struct stream_outcome_close *close, enum demand demand) {
    switch (demand) {
    case BY_US: return close->by_us;
    case NEVER_SEEN: return close->never_seen;
    case REASONED: return close->reasoned;
    case HELPABLE: return close->reasoned && close->can_help;
    case ALWAYS: break;
    }
    return true;
}

static bool stream_outcome_fits(const struct row *row,
                                const struct stream_outcome_close *close) {
    return row->modes & BIT(close->mode) && row->last & BIT(close->last) &&
           row->statuses & BIT(close->status) && demands(close, row->demand);
}

struct stream_outcome_advice stream_outcome_decide(const struct stream_outcome_close *close) {
    size_t i = 0;
    assert(close->mode > CLOSE_SINGLE && close->mode < CLOSE_MODE_COUNT);
    assert(close->last < LAST_COUNT && (int)close->status <= ERR_UNAUTHENTICATED);
    while (!stream_outcome_fits(&rows[i], close)) {
        i++;
        assert(i < ARRAY_LEN(rows)); /* the last row of each mode takes every input */
    }
    return rows[i].advice;
}

enum err_code stream_outcome_status(enum err_code code, bool from_server) {
    enum err_code status = (enum err_code)err_kinds[code].grpc_status;
    if (from_server || code == ERR_NONE || code == ERR_DEADLINE_EXCEEDED) return status;
    /* An HTTP status stands for these three where there is no gRPC status. */
    bool by_http = code == ERR_UNAUTHENTICATED || code == ERR_PERMISSION_DENIED ||
                   code == ERR_UNIMPLEMENTED;
    return by_http ? status : ERR_UNAVAILABLE;
}

uint64_t stream_outcome_backoff_ms(unsigned attempt, uint64_t random) {
    uint64_t ms = STREAM_OUTCOME_BACKOFF_FIRST_MS;
    for (unsigned i = 1; i < attempt && ms < STREAM_OUTCOME_BACKOFF_MAX_MS; i++) ms *= 2;
    if (ms > STREAM_OUTCOME_BACKOFF_MAX_MS) ms = STREAM_OUTCOME_BACKOFF_MAX_MS;
    return ms - random % (ms / 2);
}

/* --- names -------------------------------------------------------------------------------- */

static const struct {
    struct str name, meaning;
} outcomes[STREAM_OUTCOME_COUNT] = {
    /* clang-format off */
    [STREAM_COMPLETED]      = {STR_INIT("completed"),      STR_INIT("the stream has arrived whole")},
    [STREAM_FAILED]         = {STR_INIT("failed"),         STR_INIT("the stream says that the work failed")},
    [STREAM_WORK_CANCELLED] = {STR_INIT("work_cancelled"), STR_INIT("the stream says that the work was cancelled")},
    [STREAM_REFUSED]        = {STR_INIT("refused"),        STR_INIT("the server refused the request before it did anything")},
    [STREAM_UNKNOWN]        = {STR_INIT("unknown"),        STR_INIT("the call failed without a frame and without a reason: the work may have been done or not")},
    [STREAM_TRUNCATED]      = {STR_INIT("truncated"),      STR_INIT("the server said OK, but the completing frame is missing")},
    [STREAM_PREEMPTED]      = {STR_INIT("preempted"),      STR_INIT("the server cancelled the call: it stops, or this client read too slowly")},
    [STREAM_SLOW_CONSUMER]  = {STR_INIT("slow_consumer"),  STR_INIT("the server gave up: this client read too slowly")},
    [STREAM_TIMED_OUT]      = {STR_INIT("timed_out"),      STR_INIT("time ran out before the stream was complete")},
    [STREAM_BROKEN]         = {STR_INIT("broken"),         STR_INIT("the connection or the server failed before the stream was complete")},
    [STREAM_INCOMPLETE]     = {STR_INIT("incomplete"),     STR_INIT("the export is not whole and must not be used")},
    [STREAM_DISCONNECTED]   = {STR_INIT("disconnected"),   STR_INIT("the server closed the subscription (runtime.disconnected)")},
    [STREAM_CANCELLED]      = {STR_INIT("cancelled"),      STR_INIT("this client cancelled the call")},
    /* clang-format on */
};

static const struct str repeats[REPEAT_COUNT] = {
    [REPEAT_NO] = STR_INIT("no"),
    [REPEAT_YES] = STR_INIT("yes"),
    [REPEAT_UNKNOWN] = STR_INIT("unknown"),
};

static const struct str waits[WAIT_COUNT] = {
    [WAIT_NONE] = STR_INIT("none"),
    [WAIT_BACKOFF] = STR_INIT("backoff"),
    [WAIT_READY] = STR_INIT("ready"),
};

struct str stream_outcome_name(enum stream_outcome outcome) {
    return outcomes[outcome].name;
}

struct str stream_outcome_meaning(enum stream_outcome outcome) {
    return outcomes[outcome].meaning;
}

struct str stream_outcome_repeat_name(enum stream_outcome_repeat repeat) {
    return repeats[repeat];
}

struct str stream_outcome_wait_name(enum stream_outcome_wait wait) {
    return waits[wait];
}
