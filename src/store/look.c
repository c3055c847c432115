#include "store/look.h"

#include "store/store.h"

/* A new session must be in `known` before its write is acknowledged; the projection adds it. */
static void learn_from(const struct look *look, const struct event *event) {
    if (look->project->seen || event->kind != EVENT_STARTED) return;
    session_filter_add(look->known, event->started.workspace, event->started.user,
                       event->started.session);
}

static bool look_at_event(const struct look *look, const struct row *row, uint64_t run,
                          const struct event *event, struct err *e) {
    project_see_event(look->project, event);
    learn_from(look, event);
    return row->run == 0 || audit_see(look->audit, row->id, run, event, e);
}

static bool look_at_section(const struct look *look, const struct row *row,
                            const struct store_section *section, struct shorten_end *ret_end,
                            struct err *e) {
    struct str rest = section->events;
    uint64_t seq = section->first_seq;
    project_see_section(look->project, row, section);
    for (;; seq++) {
        seq += event_skip_texts(&rest, SIZE_MAX); /* most events, and no one keeps them */
        if (!rest.len) break;
        struct event event = {.seq = seq};
        struct err unknown;
        size_t begun = (size_t)(rest.at - row->bytes.at);
        if (!event_decode(&rest, &event, &unknown)) {
            project_see_unknown(look->project, row, &unknown);
            break;
        }
        if (event.kind == EVENT_DONE && rest.len == 0)
            *ret_end = (struct shorten_end){event.done.turns, begun};
        if (!look_at_event(look, row, section->run, &event, e)) return false;
    }
    project_see_section_end(look->project, seq);
    return true;
}

bool look_at(const struct look *look, const struct row *row, struct shorten_end *ret_end,
             struct err *e) {
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    *ret_end = SHORTEN_NOT;
    while (store_section_next(&rest, &section, &bad)) {
        *ret_end = SHORTEN_NOT; /* it was not the last one */
        if (!look_at_section(look, row, &section, ret_end, e)) return false;
    }
    if (bad) *ret_end = SHORTEN_NOT;
    project_see_end(look->project, row, bad);
    return true;
}
