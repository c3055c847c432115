/* Projects the table of usage: sums by workspace, agent, model and day.
 *
 *     log   1 2 3 4 5 6 7 8 │ 9        meta.projected = 8, meta.usage = 3
 *           in usage│ waiting
 *
 * A row of this table costs four times what one of the others does, and most batches add to the same
 * sums. So they wait in memory, over several batches, and are written together with a mark of their
 * own. After a crash the rows between the two marks are read once more, for this table alone.
 *
 * In a store that replicas share nothing waits: core_project() writes the sums with the rows, so
 * that both marks move together, under the lock of all writers. A replica that finds them moved
 * by another one goes on from there (project_usage_move()). */
#include "store/project_usage.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define DAY_MS INT64_C(86400000)
#define KEY_BYTES (64 * MIB)
/* Sums are written when this much waits: */
#define WAITING_SUMS 512         /* takes some milliseconds */
#define WAITING_BYTES (32 * MIB) /* of rows, which a start after a crash reads again */

struct usage_change {
    struct usage_change *next;
    struct usage_sum sum;
};

struct usage_gathered {
    struct map *map;
    struct usage_change *first;
};

/* Sums that wait, and how far they and the table are. */
struct sums {
    struct usage_table table;
    struct prepared *note;
    struct buf key;             /* scratch */
    struct usage_change *first; /* each with its texts, in a block of its own */
    struct map *map;
    size_t count, bytes; /* bytes: of the rows whose sums wait */
    int64_t seen;        /* rows up to here are in the table, or wait */
    int64_t done;        /* rows up to here are in the table */
    int64_t written;     /* as `done`, in the open transaction; 0: not written in it */
};

static void forget_waiting(struct sums *sums) {
    for (struct usage_change *one = sums->first, *next; one; one = next) {
        next = one->next;
        free(one);
    }
    map_free(sums->map);
    sums->map = map_new();
    sums->first = NULL;
    sums->count = sums->bytes = 0;
}

static bool sums_open(void *at, struct database *db, struct err *e) {
    struct sums *sums = at;
    int64_t projected = 0;
    sums->map = map_new();
    buf_init(&sums->key, KEY_BYTES);
    if (!usage_open(&sums->table, db, e) ||
        !database_prepare(db, "UPDATE meta SET value = ? WHERE name = 'usage'", &sums->note,
                          e) ||
        !database_number(db, "SELECT value FROM meta WHERE name = 'usage'", &sums->done, e) ||
        !database_number(db, "SELECT value FROM meta WHERE name = 'projected'", &projected, e))
        return false;
    /* An operator set the other mark back, to have the tables filled again. */
    bool ahead = sums->done > projected;
    if (ahead) {
        sums->done = projected;
        database_bind_number(sums->note, 1, projected);
    }
    sums->seen = sums->done;
    /* Among replicas the mark moves under their lock, with the next sums. */
    return !ahead || db->replica || database_do(db, sums->note, e);
}

static void sums_close(void *at) {
    struct sums *sums = at;
    usage_close(&sums->table);
    database_finalize(sums->note);
    if (sums->map) forget_waiting(sums);
    map_free(sums->map);
    buf_done(&sums->key);
}

static struct sums *sums_of(const struct project *project) {
    return project_table(project, &project_usage_sums);
}

struct usage_table *project_usage(const struct project *project) {
    return &sums_of(project)->table;
}

/* --- gathering ---------------------------------------------------------------------------- */

static void sums_begin(void *at) {
    struct usage_gathered *gathered = at;
    gathered->map = map_new();
}

static void sums_end(void *at) {
    struct usage_gathered *gathered = at;
    map_free(gathered->map);
}

static int64_t day_of(const struct run_change *run, const struct event *event) {
    int64_t at_ms = run_change_time_ms(run, event);
    return at_ms >= 0 ? at_ms / DAY_MS : -1 - (-1 - at_ms) / DAY_MS;
}

static bool is_sum_of(const struct usage_change *usage, const struct event *event,
                      int64_t day) {
    return usage->sum.day == day && str_equal(usage->sum.agent, event->agent) &&
           str_equal(usage->sum.model, event->usage.model);
}

static struct usage_change *sum_of(struct batch *batch, struct usage_gathered *gathered,
                                   const struct run_change *run, const struct event *event,
                                   int64_t day, struct err *e) {
    buf_clear(&batch->key);
    projection_key_add(&batch->key, run->entry.workspace);
    projection_key_add(&batch->key, event->agent);
    projection_key_add(&batch->key, event->usage.model);
    buf_append(&batch->key, str_of(&day, sizeof(day)));
    struct usage_change *usage = map_find(gathered->map, buf_str(&batch->key));
    if (usage) return usage;
    usage = batch_alloc(batch, sizeof(*usage), e);
    if (!usage) return NULL;
    usage->sum = (struct usage_sum){.workspace = run->entry.workspace,
                                    .agent = event->agent,
                                    .model = event->usage.model,
                                    .day = day};
    if (!batch_keep(batch, &usage->sum.agent, e) || !batch_keep(batch, &usage->sum.model, e))
        return NULL;
    usage->next = gathered->first;
    gathered->first = usage;
    map_put(gathered->map, buf_str(&batch->key), usage);
    return usage;
}

static bool sums_take(struct batch *batch, void *gathered, struct run_change *run,
                      const struct event *event, struct err *e) {
    int64_t day = day_of(run, event);
    /* Nearly all calls of a session count in one sum. */
    struct usage_change *usage = run->usage ? *run->usage : NULL;
    if (!usage || !is_sum_of(usage, event, day))
        usage = sum_of(batch, gathered, run, event, day, e);
    if (!usage) return false;
    if (run->usage) *run->usage = usage;
    usage_sum_add(&usage->sum, &event->usage);
    return true;
}

/* --- waiting ------------------------------------------------------------------------------ */

static struct str copy_text(char **room, struct str text) {
    char *at = *room;
    if (text.len) memcpy(at, text.at, text.len);
    *room += text.len;
    return str_of(at, text.len);
}

static struct usage_change *waiting_of(struct sums *sums, const struct usage_sum *sum) {
    buf_clear(&sums->key);
    projection_key_add(&sums->key, sum->workspace);
    projection_key_add(&sums->key, sum->agent);
    projection_key_add(&sums->key, sum->model);
    buf_append(&sums->key, str_of(&sum->day, sizeof(sum->day)));
    struct usage_change *waiting = map_find(sums->map, buf_str(&sums->key));
    if (waiting) return waiting;
    size_t texts = sum->workspace.len + sum->agent.len + sum->model.len;
    waiting = mem_zero(1, sizeof(*waiting) + texts);
    char *room = (char *)(waiting + 1);
    waiting->sum.workspace = copy_text(&room, sum->workspace);
    waiting->sum.agent = copy_text(&room, sum->agent);
    waiting->sum.model = copy_text(&room, sum->model);
    waiting->sum.day = sum->day;
    waiting->next = sums->first;
    sums->first = waiting;
    sums->count++;
    map_put(sums->map, buf_str(&sums->key), waiting);
    return waiting;
}

static void sums_keep(const struct batch *batch, const void *at, void *table) {
    const struct usage_gathered *gathered = at;
    struct sums *sums = table;
    if (batch->from != sums->seen) return; /* rows before it are read first, then these again */
    for (const struct usage_change *one = gathered->first; one; one = one->next)
        usage_sum_join(&waiting_of(sums, &one->sum)->sum, &one->sum);
    sums->seen = batch->reached;
    sums->bytes += batch->bytes;
}

/* --- writing ------------------------------------------------------------------------------ */

static bool write_list(struct sums *sums, const struct usage_change *list, struct err *e) {
    for (const struct usage_change *one = list; one; one = one->next) {
        if (!usage_write(&sums->table, &one->sum, e)) return false;
    }
    return true;
}

bool project_usage_settle(struct project *project, struct err *e) {
    struct sums *sums = sums_of(project);
    assert(project_usage_is_read(project));
    if (!write_list(sums, sums->first, e)) return false;
    for (struct batch *batch = project->written; batch; batch = batch->next) {
        const struct usage_gathered *gathered = batch_gathered(batch, &project_usage_sums);
        if (!write_list(sums, gathered->first, e)) return false;
    }
    sums->written = project->reached;
    database_bind_number(sums->note, 1, project->reached);
    return database_do(project->db, sums->note, e);
}

bool project_usage_kept(struct project *project) {
    struct sums *sums = sums_of(project);
    if (!sums->written) return false;
    sums->done = sums->seen = sums->written;
    sums->written = 0;
    forget_waiting(sums);
    return true;
}

void project_usage_dropped(struct project *project) {
    sums_of(project)->written = 0;
}

/* --- how far it is ------------------------------------------------------------------------ */

int64_t project_usage_seen(const struct project *project) {
    return sums_of(project)->seen;
}

bool project_usage_is_read(const struct project *project) {
    return sums_of(project)->seen == project->done;
}

bool project_usage_is_settled(const struct project *project) {
    return sums_of(project)->done == project->done;
}

bool project_usage_is_due(const struct project *project) {
    const struct sums *sums = sums_of(project);
    return sums->count >= WAITING_SUMS || sums->bytes >= WAITING_BYTES;
}

/* A mark that is ahead of the other counts as the other: see sums_open(). */
static int64_t usage_mark(int64_t projected, int64_t usage) {
    return usage < projected ? usage : projected;
}

bool project_usage_is_at(const struct project *project, int64_t projected, int64_t usage) {
    return sums_of(project)->done == usage_mark(projected, usage);
}

void project_usage_move(struct project *project, int64_t projected, int64_t usage) {
    struct sums *sums = sums_of(project);
    forget_waiting(sums);
    sums->done = sums->seen = usage_mark(projected, usage);
}

const struct projection project_usage_sums = {
    .name = "usage",
    .takes = TAKES(EVENT_USAGE),
    .lags = true,
    .table_bytes = sizeof(struct sums),
    .batch_bytes = sizeof(struct usage_gathered),
    .open = sums_open,
    .close = sums_close,
    .begin = sums_begin,
    .take = sums_take,
    .keep = sums_keep,
    .end = sums_end,
};
