#include "store/audit_question.h"

#include "base/mem.h"
#include "store/audit.h"

#include <stdlib.h>

#define ROOM_MIN 16

/* The index of the first question of `run` or of a later run. */
static size_t question_place(const struct audit_questions *questions, uint64_t run) {
    size_t low = 0, high = questions->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (questions->at[middle].run < run) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool is_at(const struct audit_questions *questions, size_t place, uint64_t run) {
    return place < questions->count && questions->at[place].run == run;
}

static void set_room(struct audit_questions *questions, size_t room) {
    questions->at = mem_resize(questions->at, room * sizeof(*questions->at));
    questions->room = room;
}

static uint64_t call_digest(struct str call_id) {
    uint8_t digest[AUDIT_HASH_BYTES];
    uint64_t first;
    audit_digest(&call_id, 1, digest);
    memcpy(&first, digest, sizeof(first));
    return first;
}

void audit_questions_put(struct audit_questions *questions, uint64_t run, struct str call_id) {
    const struct audit_question question = {.run = run, .call = call_digest(call_id)};
    size_t place = question_place(questions, run);
    if (is_at(questions, place, run)) {
        questions->at[place] = question;
        return;
    }
    if (questions->count == AUDIT_QUESTIONS_MAX) return;
    if (questions->count == questions->room)
        set_room(questions, questions->room ? questions->room / 2 * 3 : ROOM_MIN);
    struct audit_question *at = questions->at + place;
    memmove(at + 1, at, (questions->count - place) * sizeof(*at));
    *at = question;
    questions->count++;
}

const struct audit_question *audit_questions_find(const struct audit_questions *questions,
                                                  uint64_t run) {
    size_t place = question_place(questions, run);
    return is_at(questions, place, run) ? &questions->at[place] : NULL;
}

bool audit_question_is(const struct audit_question *question, struct str call_id) {
    return question->call == call_digest(call_id);
}

void audit_questions_remove(struct audit_questions *questions, uint64_t run) {
    size_t place = question_place(questions, run);
    if (!is_at(questions, place, run)) return;
    struct audit_question *at = questions->at + place;
    questions->count--;
    memmove(at, at + 1, (questions->count - place) * sizeof(*at));
    if (questions->room > ROOM_MIN && questions->count < questions->room / 4)
        set_room(questions, questions->room / 2);
}

void audit_questions_clear(struct audit_questions *questions) {
    free(questions->at);
    *questions = (struct audit_questions){0};
}
