#include "contract/nimi/job/run_fold.h"

#define ARENA_MAX_BYTES (64 * MIB)

struct run_fold run_fold_new(const struct run_kind *kind, enum run_fold_depth depth) {
    return (struct run_fold){.kind = kind, .depth = depth, .arena = arena_new(ARENA_MAX_BYTES)};
}

void run_fold_done(struct run_fold *fold) {
    arena_free(fold->arena);
    *fold = (struct run_fold){.kind = fold->kind, .foreign = true};
}

bool run_fold_is_shown(const struct run_fold *fold) {
    return fold->shown && !fold->foreign;
}

bool run_fold_is_over(const struct run_fold *fold) {
    return run_fold_is_shown(fold) && run_job_is_over(fold->note.state);
}

bool run_fold_sections(struct run_fold *fold, const struct store_section *sections,
                       size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct str rest = sections[i].events;
        struct event event = {0};
        struct err e;
        uint64_t seq = sections[i].first_seq;
        for (; rest.len; seq++) {
            if (!event_decode(&rest, &event, &e)) return false;
            event.seq = seq;
            if (seq == fold->seq + 1) fold->kind->take(fold, &event);
        }
    }
    return true;
}

/* --- for its kind ------------------------------------------------------------------------- */

bool run_fold_begin(struct run_fold *fold, const struct event *event, struct str contract) {
    fold->seq = event->seq;
    fold->last_at_ms = event->at_ms;
    if (fold->foreign || event->kind != EVENT_STARTED) return !fold->foreign;
    fold->started_ms = event->started.unix_ms;
    fold->foreign = !str_equal(event->started.contract, contract) ||
                    !arena_str(fold->arena, event->started.trace, &fold->caller);
    return false;
}

bool run_fold_end(struct run_fold *fold, bool good, bool counts) {
    fold->foreign = !good;
    if (!good || !counts) return false;
    fold->sequence++;
    return true;
}

void run_fold_note(struct run_fold *fold, const struct run_job_note *note) {
    fold->note.state = note->state;
    if (note->attempt) fold->note.attempt = note->attempt;
}
