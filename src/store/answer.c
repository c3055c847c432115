#include "store/answer.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define ANSWER_MAX_BYTES (1024 * MIB)
#define ANSWER_EXTRA_BYTES (64 * MIB) /* for the list of sections */

bool answer_open(struct answer *answer, struct project *project, struct err *e) {
    *answer = (struct answer){
        .db = project->db,
        .rows = project->rows,
        .runs = project->runs,
        .project = project,
    };
    return database_prepare(answer->db,
                            "SELECT id, last_seq FROM run INDEXED BY run_unfinished"
                            " WHERE state = 0 ORDER BY id",
                            &answer->unfinished, e) &&
           database_prepare(answer->db,
                            "SELECT newest_run, user FROM session"
                            " WHERE id > (SELECT max(id) FROM session) - ?"
                            " AND +workspace = ? AND +name = ?",
                            &answer->threads, e);
}

void answer_close(struct answer *answer) {
    database_finalize(answer->unfinished);
    database_finalize(answer->threads);
}

/* --- gathering sections ------------------------------------------------------------------- */

struct gather {
    struct store_load *load;
    size_t room;      /* capacity of load->sections */
    size_t bytes;     /* bytes of events so far */
    size_t max_bytes; /* limit on `bytes` */
    uint64_t run;     /* the run whose sections are read */
    bool own_only;    /* leave shared rows out */
    bool ids_only;    /* only list the runs, without their events */
    bool cut;         /* there is more than max_bytes */
};

static bool out_of_room(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED, "store: the answer is too large; ask for less");
}

static bool add_section(struct gather *gather, struct store_section section, struct err *e) {
    struct store_load *load = gather->load;
    if (load->section_count == gather->room) {
        size_t room = gather->room ? gather->room * 2 : 8;
        struct store_section *more = arena_alloc(load->arena, room * sizeof(*more));
        if (!more) return out_of_room(e);
        if (load->section_count)
            memcpy(more, load->sections, load->section_count * sizeof(*more));
        load->sections = more;
        gather->room = room;
    }
    if (!arena_str(load->arena, section.events, &section.events)) return out_of_room(e);
    load->sections[load->section_count++] = section;
    gather->bytes += section.events.len;
    return true;
}

/* Drop the events up to `after_seq`. */
static bool skip_events(struct store_section *section, uint64_t after_seq, struct err *e) {
    while (section->events.len && section->first_seq <= after_seq) {
        struct event event = {0};
        if (!event_decode(&section->events, &event, e)) return false;
        section->first_seq++;
    }
    return true;
}

/* Keep the events that fit into `max_bytes`, but at least `least` of them. */
static bool cut_events(struct store_section *section, size_t max_bytes, size_t least,
                       struct err *e) {
    struct str rest = section->events;
    size_t kept = 0;
    for (size_t count = 1; rest.len; count++) {
        struct event event = {0};
        if (!event_decode(&rest, &event, e)) return false;
        size_t len = section->events.len - rest.len;
        if (len > max_bytes && count > least) break;
        kept = len;
    }
    section->events = str_head(section->events, kept);
    return true;
}

/* Take whole sections only; the caller leaves out a run that does not fit. */
static bool take_whole(const struct row *row, void *ctx, struct err *e) {
    struct gather *gather = ctx;
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    if (gather->own_only && row->run == 0) return true;
    while (!gather->cut && store_section_next(&rest, &section, &bad)) {
        if (section.run != gather->run) continue;
        section.row = row->order;
        gather->cut = section.events.len > gather->max_bytes - gather->bytes;
        if (!gather->cut && !add_section(gather, section, e)) return false;
    }
    return !gather->cut;
}

/* Take the events after after_seq. The last section may be cut between two events. What has no room
 * in the arena (the list of very many short sections) is left for the next answer, too. */
static bool take_after(const struct row *row, void *ctx, struct err *e) {
    struct gather *gather = ctx;
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    while (!gather->cut && store_section_next(&rest, &section, &bad)) {
        if (section.run != gather->run) continue;
        if (!skip_events(&section, gather->load->after_seq, e)) return false;
        size_t left = gather->max_bytes - gather->bytes, whole = section.events.len;
        if (whole > left) {
            if (!cut_events(&section, left, gather->bytes ? 0 : 1, e)) return false;
            gather->cut = section.events.len < whole;
        }
        if (section.events.len && !add_section(gather, section, e)) {
            gather->cut = gather->load->section_count > 0;
            return false;
        }
        if (gather->bytes >= gather->max_bytes) gather->max_bytes = gather->bytes;
    }
    return !gather->cut;
}

/* --- the rows of a run -------------------------------------------------------------------- */

struct first_seq {
    uint64_t run, seq;
};

static bool look_for_first(const struct row *row, void *ctx, struct err *e) {
    struct first_seq *first = ctx;
    struct str rest = row->bytes;
    struct store_section section;
    bool bad = false;
    (void)e;
    while (!first->seq && store_section_next(&rest, &section, &bad)) {
        if (section.run == first->run) first->seq = section.first_seq;
    }
    return true;
}

/* The sequence number at which the run's first section in a row begins; 0: it has none. */
static bool first_seq_in(struct answer *answer, int64_t id, uint64_t run, uint64_t *ret,
                         struct err *e) {
    struct first_seq first = {.run = run};
    if (!row_each_in(answer->rows, id, run, look_for_first, &first, e)) return false;
    *ret = first.seq;
    return true;
}

/* Whether the needed events begin in this place or a later one. */
static bool is_early_enough(struct answer *answer, const struct run_places *place, uint64_t run,
                            uint64_t after_seq, bool *ret, struct err *e) {
    uint64_t seq;
    if (!first_seq_in(answer, place->row, run, &seq, e)) return false;
    *ret = seq && seq <= after_seq + 1;
    return true;
}

/* The last place that begins at or before after_seq + 1. Earlier places hold nothing that is
 * needed. */
static bool first_place(struct answer *answer, const struct run_places *places, size_t count,
                        uint64_t run, uint64_t after_seq, size_t *ret, struct err *e) {
    size_t low = 0, high = count;
    while (after_seq && high - low > 1) {
        size_t middle = low + (high - low) / 2;
        uint64_t seq;
        if (!first_seq_in(answer, places[middle].row, run, &seq, e)) return false;
        if (seq <= after_seq + 1) {
            low = middle;
        } else {
            high = middle;
        }
    }
    *ret = low;
    return true;
}

/* A search reads whole rows. A reader that comes again for the next piece of a run (place) needs
 * none. */
static bool place_to_begin(struct answer *answer, const struct run_places *places, size_t count,
                           const struct gather *gather, uint64_t run, size_t *ret,
                           struct err *e) {
    uint64_t after_seq = gather->load->after_seq;
    size_t place = gather->load->place;
    bool early_enough = false;
    if (after_seq && place && place < count &&
        !is_early_enough(answer, &places[place], run, after_seq, &early_enough, e))
        return false;
    *ret = place;
    return early_enough || first_place(answer, places, count, run, after_seq, ret, e);
}

/* Call `each` for every row that may hold needed events of the run, until the answer is cut. */
static bool walk_run(struct answer *answer, const struct run_entry *entry, row_fn *each,
                     struct gather *gather, struct err *e) {
    struct run_places *places = mem_alloc(run_entry_places_bytes(entry).len * sizeof(*places));
    size_t count = 0, at = 0;
    struct run_places cursor = run_entry_places(entry);
    while (run_places_next(&cursor)) places[count++] = cursor;
    bool ok = place_to_begin(answer, places, count, gather, entry->id, &at, e);
    for (; ok && !gather->cut && at < count; at++) {
        if (gather->own_only && places[at].shared) continue;
        gather->load->place = at;
        ok = row_each_in(answer->rows, places[at].row, entry->id, each, gather, e) ||
             gather->cut;
    }
    int64_t listed = count ? places[count - 1].row : entry->first_log - 1;
    free(places);
    if (!ok || gather->cut || listed >= entry->last_log) return ok;
    return row_each_of(answer->rows, entry->id, listed, entry->last_log, each, gather, e) ||
           gather->cut;
}

/* --- STORE_SESSION ------------------------------------------------------------------------ */

static void reverse(struct store_section *sections, size_t count) {
    for (size_t i = 0; i + i + 1 < count; i++) {
        struct store_section other = sections[count - 1 - i];
        sections[count - 1 - i] = sections[i];
        sections[i] = other;
    }
}

/* Runs were gathered newest first. Sort them oldest first, keeping the order of each run's
 * sections. */
static void oldest_first(struct store_section *sections, size_t count) {
    reverse(sections, count);
    for (size_t from = 0, to; from < count; from = to) {
        for (to = from + 1; to < count && sections[to].run == sections[from].run;) to++;
        reverse(sections + from, to - from);
    }
}

/* The newest run may exceed max_bytes, because the next turn continues from it. */
#define NEWEST_MAX_BYTES (32 * MIB)

static void widen_for_newest(struct gather *gather) {
    if (gather->max_bytes < NEWEST_MAX_BYTES) gather->max_bytes = NEWEST_MAX_BYTES;
}

static void narrow_again(struct gather *gather) {
    size_t asked = gather->load->max_bytes;
    gather->max_bytes = gather->bytes > asked ? gather->bytes : asked;
}

/* Take one run of the session, completely or not at all. */
static bool take_run(struct answer *answer, const struct run_entry *entry,
                     struct gather *gather, struct err *e) {
    size_t count = gather->load->section_count, bytes = gather->bytes;
    if (gather->ids_only)
        return add_section(gather,
                           (struct store_section){.run = entry->id, .events = STR_EMPTY}, e);
    gather->run = entry->id;
    bool newest = count == 0;
    if (newest) widen_for_newest(gather);
    if (!walk_run(answer, entry, take_whole, gather, e)) return false;
    if (newest) narrow_again(gather);
    if (!gather->cut) return true;
    gather->load->section_count = count;
    gather->bytes = bytes;
    return true;
}

static bool walk_session(struct answer *answer, uint64_t newest, struct gather *gather,
                         struct run_entry *entry, struct err *e) {
    struct store_load *load = gather->load;
    struct run_chain chain = run_chain();
    for (size_t taken = 0; newest; newest = entry->previous) {
        bool found;
        entry->id = newest;
        if (!run_find(answer->runs, entry, &found, e)) return false;
        run_release(answer->runs);
        if (!found || !run_chain_follows(&chain, entry))
            return err_set(e, ERR_DATA_LOSS,
                           "store %s: its table of runs is damaged; restore the file from a "
                           "backup",
                           answer->db->path);
        if (entry->state == 0 && !gather->ids_only) continue;
        load->more = taken == load->runs_max;
        if (!load->more && !take_run(answer, entry, gather, e)) return false;
        load->more = load->more || gather->cut;
        if (load->more) return true;
        taken++;
    }
    return true;
}

static bool answer_session(struct answer *answer, struct gather *gather, struct err *e) {
    struct store_load *load = gather->load;
    int64_t session;
    uint64_t newest;
    if (!project_session(answer->project, load->workspace, load->user, load->session, &session,
                         &newest, e))
        return false;
    struct run_entry entry;
    run_entry_init(&entry, 0);
    gather->own_only = true;
    load->after_seq = 0;
    bool ok = walk_session(answer, newest, gather, &entry, e);
    run_entry_done(&entry);
    if (ok) oldest_first(load->sections, load->section_count);
    return ok;
}

static bool answer_session_runs(struct answer *answer, struct gather *gather, struct err *e) {
    gather->ids_only = true;
    return answer_session(answer, gather, e);
}

/* --- STORE_RUN, STORE_UNFINISHED ---------------------------------------------------------- */

static bool answer_run(struct answer *answer, struct gather *gather, struct err *e) {
    struct run_entry entry;
    bool found;
    run_entry_init(&entry, gather->load->run);
    bool ok = run_find(answer->runs, &entry, &found, e);
    run_release(answer->runs);
    gather->run = entry.id;
    gather->load->open = ok && found && entry.state == 0;
    if (ok && found) ok = walk_run(answer, &entry, take_after, gather, e);
    gather->load->more = gather->cut;
    run_entry_done(&entry);
    return ok;
}

static bool answer_unfinished(struct answer *answer, struct gather *gather, struct err *e) {
    struct prepared *unfinished = answer->unfinished;
    bool row, ok;
    while ((ok = database_row(answer->db, unfinished, &row, e)) && row) {
        struct store_section section = {
            .run = (uint64_t)database_number_of(unfinished, 0),
            .first_seq = (uint64_t)database_number_of(unfinished, 1),
            .events = STR_EMPTY,
        };
        if (!(ok = add_section(gather, section, e))) break;
    }
    database_reset(unfinished);
    int64_t newest = 0;
    ok = ok && database_number(answer->db, "SELECT coalesce(max(id), 0) FROM run", &newest, e);
    gather->load->newest_run = (uint64_t)newest;
    return ok;
}

/* --- STORE_THREAD ------------------------------------------------------------------------- */

static bool answer_thread_of(struct answer *answer, struct gather *gather, struct err *e) {
    const struct store_load *load = gather->load;
    int64_t session;
    uint64_t newest;
    return project_session(answer->project, load->workspace, load->user, load->session,
                           &session, &newest, e) &&
           (!newest ||
            add_section(gather, (struct store_section){.run = newest, .events = load->user},
                        e));
}

/* There is no index from a name to its users: it would have to be written with every
 * session. */
static bool answer_thread(struct answer *answer, struct gather *gather, struct err *e) {
    const struct store_load *load = gather->load;
    struct prepared *threads = answer->threads;
    bool row, ok;
    if (load->user.at) return answer_thread_of(answer, gather, e);
    database_bind_number(threads, 1, THREADS_LOOK_MAX);
    database_bind(threads, 2, load->workspace);
    database_bind(threads, 3, load->session);
    while ((ok = database_row(answer->db, threads, &row, e)) && row) {
        struct store_section section = {.run = (uint64_t)database_number_of(threads, 0),
                                        .events = database_bytes(threads, 1)};
        if (!(ok = add_section(gather, section, e))) break;
    }
    database_reset(threads);
    return ok;
}

/* --- STORE_USAGE -------------------------------------------------------------------------- */

static bool too_much(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED,
                   "store: the answer is too large; ask for fewer days, or for one workspace");
}

static bool take_usage(const struct store_usage *usage, void *ctx, struct err *e) {
    struct gather *gather = ctx;
    struct store_load *load = gather->load;
    if (load->usage_count == gather->room) {
        size_t room = gather->room ? gather->room * 2 : 8;
        struct store_usage *more = arena_alloc(load->arena, room * sizeof(*more));
        if (!more) return too_much(e);
        if (load->usage_count) memcpy(more, load->usages, load->usage_count * sizeof(*more));
        load->usages = more;
        gather->room = room;
    }
    struct store_usage *kept = &load->usages[load->usage_count];
    *kept = *usage;
    gather->bytes +=
        sizeof(*kept) + kept->workspace.len + kept->agent.len + kept->sums.model.len;
    if (gather->bytes > gather->max_bytes ||
        !arena_str(load->arena, kept->workspace, &kept->workspace) ||
        !arena_str(load->arena, kept->agent, &kept->agent) ||
        !arena_str(load->arena, kept->sums.model, &kept->sums.model))
        return too_much(e);
    load->usage_count++;
    return true;
}

static bool answer_usage(struct answer *answer, struct gather *gather, struct err *e) {
    return usage_each(project_usage(answer->project), gather->load, take_usage, gather, e);
}

/* --- STORE_KEY ---------------------------------------------------------------------------- */

/* Read how the run ended from its last event, if it did not end well. */
static void read_end(const struct store_load *load, struct store_key *ret) {
    struct event event = {0};
    struct err e;
    if (load->section_count == 0) return;
    struct str rest = load->sections[load->section_count - 1].events;
    while (rest.len && event_decode(&rest, &event, &e)) {
    }
    ret->failed = event.kind == EVENT_FAILED;
    ret->left = event.kind == EVENT_CANCELLED && event.cancelled.left;
    ret->acted = (ret->failed && event.failed.acted) || (ret->left && event.cancelled.acted);
}

/* The end is only in the run's last event, which is rarely needed. */
static bool look_at_end(struct answer *answer, struct gather *gather, struct store_key *means,
                        struct err *e) {
    struct store_load *load = gather->load;
    struct run_entry entry;
    bool found;
    run_entry_init(&entry, means->run);
    bool ok = run_find(answer->runs, &entry, &found, e);
    run_release(answer->runs);
    bool cut = entry.state == EVENT_CANCELLED || entry.state == EVENT_FAILED;
    if (ok && found && cut) {
        gather->run = means->run;
        load->after_seq = entry.last_seq - 1;
        ok = walk_run(answer, &entry, take_after, gather, e);
        if (ok) read_end(load, means);
        load->sections = NULL;
        load->section_count = 0;
    }
    run_entry_done(&entry);
    return ok;
}

static bool answer_key(struct answer *answer, struct gather *gather, struct err *e) {
    struct store_load *load = gather->load;
    struct key_entry entry = {
        .workspace = load->workspace, .user = load->user, .key = load->key};
    if (!key_find(project_keys(answer->project), &entry, load->arena, e)) return false;
    load->key_means = entry.means;
    return !entry.means.run || look_at_end(answer, gather, &load->key_means, e);
}

/* The function for each question. */
static bool (*const questions[])(struct answer *, struct gather *, struct err *) = {
    [STORE_SESSION] = answer_session, [STORE_SESSION_RUNS] = answer_session_runs,
    [STORE_RUN] = answer_run,         [STORE_UNFINISHED] = answer_unfinished,
    [STORE_USAGE] = answer_usage,     [STORE_KEY] = answer_key,
    [STORE_THREAD] = answer_thread,
};

bool answer_load(struct answer *answer, struct store_load *load, struct err *e) {
    assert((size_t)load->question < ARRAY_LEN(questions));
    struct gather gather = {.load = load, .max_bytes = load->max_bytes};
    if (gather.max_bytes > ANSWER_MAX_BYTES) gather.max_bytes = ANSWER_MAX_BYTES;
    load->arena = arena_new(2 * gather.max_bytes + ANSWER_EXTRA_BYTES);
    if (questions[load->question](answer, &gather, e)) return true;
    load->sections = NULL;
    load->section_count = 0;
    load->usages = NULL;
    load->usage_count = 0;
    load->more = false;
    return false;
}
