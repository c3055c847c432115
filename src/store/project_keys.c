/* Projects the table of idempotency keys: the run, or the answer, that each key stands for. */
#include "store/projection.h"

struct key_change {
    struct key_change *next;
    const struct run_change *run; /* the run it began; NULL: it came with a human's answer */
    struct key_entry entry;
};

struct key_list {
    struct key_change *first, **end;
};

/* In order; the newest counts. An answer is newer than the start of its run. */
struct keys_gathered {
    struct key_list of_runs, of_answers;
};

static bool keys_open(void *table, struct database *db, struct err *e) {
    return key_open(table, db, e);
}

static void keys_close(void *table) {
    key_close(table);
}

struct key_table *project_keys(const struct project *project) {
    return project_table(project, &project_keys_of_requests);
}

/* --- gathering ---------------------------------------------------------------------------- */

static void keys_begin(void *at) {
    struct keys_gathered *gathered = at;
    gathered->of_runs.end = &gathered->of_runs.first;
    gathered->of_answers.end = &gathered->of_answers.first;
}

static bool add_key(struct batch *batch, struct key_list *list, const struct key_change *change,
                    struct err *e) {
    struct key_change *kept = batch_alloc(batch, sizeof(*kept), e);
    if (!kept) return false;
    *kept = *change;
    *list->end = kept;
    list->end = &kept->next;
    return batch_keep(batch, &kept->entry.user, e) && batch_keep(batch, &kept->entry.key, e) &&
           batch_keep(batch, &kept->entry.means.print, e);
}

static bool take_start(struct batch *batch, struct key_list *list, struct run_change *run,
                       const struct event *event, struct err *e) {
    if (!run->begins || !event->started.key.len) return true;
    const struct key_change change = {
        .run = run,
        .entry = {.workspace = run->entry.workspace,
                  .user = run->user,
                  .key = event->started.key,
                  .means = {.run = run->entry.id,
                            .started_ms = run->entry.started_ms,
                            .print = event->started.print}},
    };
    return add_key(batch, list, &change, e);
}

static bool take_answer(struct batch *batch, struct key_list *list,
                        const struct run_change *run, const struct event *event,
                        struct err *e) {
    struct key_item item;
    if (!str_equal(event->item.type, STR(KEY_ITEM)) || !key_item_read(event->item.bytes, &item))
        return true;
    const struct key_change change = {
        .entry = {.workspace = run->entry.workspace,
                  .user = item.user,
                  .key = item.key,
                  .means = {.run = run->entry.id,
                            .started_ms = run_change_time_ms(run, event),
                            .print = item.print,
                            .seq = item.seq}},
    };
    return add_key(batch, list, &change, e);
}

static bool keys_take(struct batch *batch, void *at, struct run_change *run,
                      const struct event *event, struct err *e) {
    struct keys_gathered *gathered = at;
    return event->kind == EVENT_STARTED
               ? take_start(batch, &gathered->of_runs, run, event, e)
               : take_answer(batch, &gathered->of_answers, run, event, e);
}

/* --- writing ------------------------------------------------------------------------------ */

/* The key of a run that was already in the table is there too. */
static bool write_list(struct key_table *table, const struct key_list *list, struct err *e) {
    for (const struct key_change *change = list->first; change; change = change->next) {
        if (change->run && change->run->repeated) continue;
        if (!key_write(table, &change->entry, e)) return false;
    }
    return true;
}

static bool keys_write(struct batch *batch, const void *at, void *table, struct err *e) {
    const struct keys_gathered *gathered = at;
    (void)batch;
    return write_list(table, &gathered->of_runs, e) &&
           write_list(table, &gathered->of_answers, e);
}

const struct projection project_keys_of_requests = {
    .name = "keys",
    .takes = TAKES(EVENT_STARTED) | TAKES(EVENT_ITEM),
    .table_bytes = sizeof(struct key_table),
    .batch_bytes = sizeof(struct keys_gathered),
    .open = keys_open,
    .close = keys_close,
    .begin = keys_begin,
    .take = keys_take,
    .write = keys_write,
};
