#include "reader/reader.h"

#include "reader/frame.h"

#include <assert.h>

const struct state reader_states[READER_STATE_COUNT] = {
    /* clang-format off */
    [READER_WAITING]  = {"waiting",  TO(READER_READING) | TO(READER_FINISHED) | TO(READER_CLOSED)},
    [READER_READING]  = {"reading",  TO(READER_FINISHED) | TO(READER_CLOSED)},
    [READER_FINISHED] = {"finished", TO(READER_CLOSED)},
    [READER_CLOSED]   = {"closed",   0},
    /* clang-format on */
};

/* The only function that writes reader->state. */
static void reader_move(struct reader *reader, enum reader_state next) {
    assert(states_allow(reader_states, reader->state, next));
    reader->state = next;
}

void reader_init(struct reader *reader, const struct reader_method *method, size_t turns) {
    *reader = (struct reader){.method = method, .turns = turns ? turns : 1};
    buf_init(&reader->reason, READER_REASON_MAX_BYTES);
    buf_init(&reader->message, READER_MESSAGE_MAX_BYTES);
}

void reader_done(struct reader *reader) {
    buf_done(&reader->reason);
    buf_done(&reader->message);
}

/* --- faults ------------------------------------------------------------------------------- */

bool reader_note(struct reader *reader, enum reader_fault fault) {
    bool new = !(reader->faults & fault);
    reader->faults |= fault;
    return new;
}

static void note_in(struct reader *reader, enum reader_fault fault, struct reader_frame *ret) {
    if (reader_note(reader, fault)) ret->faults |= fault;
}

/* By the number of the bit. */
static const struct {
    struct str name, meaning;
} faults[FAULT_COUNT] = {
    /* clang-format off */
    {STR_INIT("malformed"),       STR_INIT("a frame is not a message of its type")},
    {STR_INIT("after_end"),       STR_INIT("frames came after the completing one; they were dropped")},
    {STR_INIT("first_number"),    STR_INIT("the numbers of the frames do not start where they must")},
    {STR_INIT("gap"),             STR_INIT("the number of a frame is missing")},
    {STR_INIT("number_order"),    STR_INIT("the numbers of the frames do not rise")},
    {STR_INIT("disagrees"),       STR_INIT("a frame contradicts itself about the end of the stream")},
    {STR_INIT("no_end"),          STR_INIT("the call ended with OK, without a completing frame")},
    {STR_INIT("error_after_end"), STR_INIT("an error status came after the completing frame")},
    {STR_INIT("not_closed"),      STR_INIT("the call was not closed after the completing frame")},
    {STR_INIT("ok_on_subscription"), STR_INIT("a subscription was closed with OK, which the contract does not have")},
    {STR_INIT("version"),         STR_INIT("the answer does not say that it is of version 1 of the Runtime Contract")},
    /* clang-format on */
};

/* The number of the bit; FAULT_COUNT: it is not one. */
static size_t fault_index(enum reader_fault fault) {
    size_t i = 0;
    while (i < FAULT_COUNT && fault != 1u << i) i++;
    return i;
}

struct str reader_fault_name(enum reader_fault fault) {
    size_t i = fault_index(fault);
    return i < FAULT_COUNT ? faults[i].name : STR_EMPTY;
}

struct str reader_fault_meaning(enum reader_fault fault) {
    size_t i = fault_index(fault);
    return i < FAULT_COUNT ? faults[i].meaning : STR_EMPTY;
}

/* --- numbers ------------------------------------------------------------------------------ */

static const struct {
    bool strict; /* no number may be left out */
    bool starts; /* it has a first number, which is ... */
    uint64_t first;
    unsigned uncompared; /* frames at the beginning that the next is not compared with */
} numbers[NUMBERS_COUNT] = {
    /* clang-format off */
    [NUMBERS_NONE]           = {.strict = false},
    [NUMBERS_FROM_ONE]       = {.strict = true,  .starts = true, .first = 1},
    [NUMBERS_FROM_ONE_GAPS]  = {.strict = false, .starts = true, .first = 1},
    [NUMBERS_FROM_ZERO]      = {.strict = true,  .starts = true, .first = 0},
    [NUMBERS_RISING]         = {.strict = false},
    [NUMBERS_AFTER_SNAPSHOT] = {.strict = false, .uncompared = 1},
    /* clang-format on */
};

/* The number that must come next; false: any may. */
static bool expected_number(const struct reader *reader, uint64_t *ret) {
    enum reader_numbers rule = reader->method->numbers;
    if (reader->numbered > numbers[rule].uncompared) {
        *ret = reader->number + 1;
        return true;
    }
    *ret = numbers[rule].first;
    return reader->numbered == 0 && numbers[rule].starts && !reader->resumed;
}

static void reader_read_number(struct reader *reader, uint64_t number,
                               struct reader_frame *ret) {
    uint64_t expected;
    enum reader_numbers rule = reader->method->numbers;
    if (rule == NUMBERS_NONE) return;
    bool first = reader->numbered == 0, compared = expected_number(reader, &expected);
    ret->has_number = true;
    ret->number = number;
    if (compared && number < expected) {
        note_in(reader, first ? FAULT_FIRST_NUMBER : FAULT_NUMBER_ORDER, ret);
    } else if (compared && number > expected) {
        ret->missing = number - expected;
        reader->missing += ret->missing;
        if (numbers[rule].strict) note_in(reader, first ? FAULT_FIRST_NUMBER : FAULT_GAP, ret);
    }
    reader->number = number;
    reader->numbered++;
}

/* --- frames ------------------------------------------------------------------------------- */

static void reader_keep_text(struct buf *into, struct str text) {
    buf_clear(into);
    buf_append(into, str_head(text, into->max_bytes));
}

/* The first failure counts. */
static void keep_reason(struct reader *reader, const struct frame_facts *facts) {
    if (reader->reason_code || reader->reason.len || reader->message.len) return;
    reader->reason_code = facts->reason_code;
    reader_keep_text(&reader->reason, facts->reason);
    reader_keep_text(&reader->message, facts->message);
}

/* Whether an export has no gap so far. */
static bool whole(const struct reader *reader) {
    return !(reader->faults & (FAULT_GAP | FAULT_FIRST_NUMBER | FAULT_NUMBER_ORDER));
}

/* The completing frame: the end of the stream, or of the last of its turns. */
static void reader_reader_finish(struct reader *reader, enum stream_outcome_last last) {
    bool export = reader->method->kind == READER_EXPORT;
    reader->last = export && !whole(reader) ? LAST_INVALID : last;
    reader_move(reader, READER_FINISHED);
}

static void take_end(struct reader *reader, const struct frame_facts *facts,
                     struct reader_frame *ret) {
    if (facts->last == LAST_FAILED) {
        reader->failed = true;
        keep_reason(reader, facts);
    }
    if (reader->method->kind == READER_CONVERSE) ret->turn_over = true;
    if (reader->method->kind == READER_CONVERSE && --reader->turns > 0) return;
    ret->last = true;
    reader_reader_finish(reader, reader->failed ? LAST_FAILED : facts->last);
}

static void take_frame(struct reader *reader, const struct frame_facts *facts,
                       struct reader_frame *ret) {
    if (reader->state == READER_WAITING) {
        reader_move(reader, READER_READING);
        reader->last = LAST_DATA;
    }
    reader->frames++;
    ret->text = facts->text;
    if (facts->malformed) note_in(reader, FAULT_MALFORMED, ret);
    if (facts->disagrees) note_in(reader, FAULT_DISAGREES, ret);
    if (facts->has_number) reader_read_number(reader, facts->number, ret);
    if (facts->announces_failure) {
        reader->failed = true;
        keep_reason(reader, facts);
    }
    if (facts->last > LAST_DATA) take_end(reader, facts, ret);
}

/* False: it comes after the end. */
static bool may_come(struct reader *reader, struct reader_frame *ret) {
    assert(reader->state != READER_CLOSED);
    *ret = (struct reader_frame){.text = STR_EMPTY};
    if (reader->state != READER_FINISHED) return true;
    ret->dropped = true;
    note_in(reader, FAULT_AFTER_END, ret);
    return false;
}

void reader_message(struct reader *reader, struct str message, struct arena *arena,
                    struct reader_frame *ret) {
    struct frame_facts facts;
    if (!may_come(reader, ret)) return;
    frame_read_message(reader->method, message, arena, &facts);
    take_frame(reader, &facts, ret);
}

void reader_event(struct reader *reader, const struct sse_event *event, struct arena *arena,
                  struct reader_frame *ret) {
    struct frame_facts facts;
    if (!may_come(reader, ret)) return;
    frame_read_event(reader->method, event, arena, &facts);
    take_frame(reader, &facts, ret);
}

/* --- the end ------------------------------------------------------------------------------ */

/* Faults that only the end shows. */
static void note_end(struct reader *reader, const struct reader_end *end, enum err_code code) {
    bool finished = reader->state == READER_FINISHED;
    if (finished && end->open) reader_note(reader, FAULT_NOT_CLOSED);
    if (end->open || end->by_us) return;
    if (finished && code != ERR_NONE) reader_note(reader, FAULT_ERROR_AFTER_END);
    if (finished || code != ERR_NONE) return;
    reader_note(reader, reader->method->mode == CLOSE_SUBSCRIPTION ? FAULT_SUBSCRIPTION_OK
                                                                   : FAULT_NO_END);
}

/* In Converse a failure of the work is an event, so a status that comes before any event refuses
 * the call. */
static bool refuses_by_itself(const struct reader *reader, enum err_code status) {
    bool refusal = status == ERR_UNAUTHENTICATED || status == ERR_PERMISSION_DENIED ||
                   status == ERR_UNIMPLEMENTED || status == ERR_INVALID_ARGUMENT;
    return reader->method->kind == READER_CONVERSE && refusal;
}

struct stream_outcome_advice reader_close(struct reader *reader, const struct reader_end *end) {
    enum err_code status = stream_outcome_status(end->code, end->from_server);
    note_end(reader, end, status);
    /* An error event, and then nothing: the run failed, whatever else is missing. */
    if (reader->state == READER_READING && reader->failed &&
        reader->method->kind == READER_TURN && !end->by_us)
        reader->last = LAST_FAILED;
    struct str reason = buf_str(&reader->reason);
    bool reasoned = reason.len || reader->reason_code || refuses_by_itself(reader, status);
    bool by_status = reader->state != READER_FINISHED && err_kinds[status].retry;
    bool by_reason = reader_reason_can_help(reason, reader->reason_code);
    bool can_help = reader->stated ? reader->retryable : by_reason || by_status;
    const struct stream_outcome_close close = {.mode = reader->method->mode,
                                               .last = reader->last,
                                               .status = status,
                                               .by_us = end->by_us,
                                               .reasoned = reasoned,
                                               .never_seen = end->never_seen,
                                               .can_help = can_help};
    reader_move(reader, READER_CLOSED);
    return stream_outcome_decide(&close);
}
