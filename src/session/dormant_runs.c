#include "session/dormant_runs.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "engine/engine.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define BLOCK_RUNS 1024 /* so that many do not move, and few cost little */
#define PER_BUCKET 2
#define BUCKETS_MIN 64
#define NAMES_MAX_BYTES (64 * KIB)
#define NONE UINT32_MAX
#define WORKSPACE_MASK ((UINT32_C(1) << 21) - 1)
#define DEADLINE_MASK ((UINT64_C(1) << 43) - 1) /* until the year 2248 */

struct entry {
    uint64_t run;     /* 0: free, and next_run is the next free one */
    uint64_t session; /* of workspace and session */
    uint32_t workspace : 21, transfers : 11;
    uint32_t user;
    struct engine *engine;
    struct run_host *host;
    uint64_t deadline_ms : 43, alone_s : 20, addressed : 1; /* Unix time; 0: none */
    uint32_t next_run, next_session; /* in their buckets; the second in order */
};

struct dormant_runs {
    pthread_mutex_t lock;
    atomic_size_t count;
    _Atomic uint64_t added;
    struct entry **blocks;
    size_t block_count;
    uint32_t first_free;
    uint32_t *by_run, *by_session; /* buckets: the first of each */
    size_t bucket_count;           /* a power of two */
};

_Static_assert(sizeof(struct entry) == 56, "see dormant_runs.h");

/* --- storage ------------------------------------------------------------------------------ */

static uint32_t *new_buckets(size_t count) {
    uint32_t *buckets = mem_zero(count, sizeof(*buckets));
    memset(buckets, 0xff, count * sizeof(*buckets));
    return buckets;
}

struct dormant_runs *dormant_runs_new(void) {
    struct dormant_runs *dormant = MEM_NEW(struct dormant_runs);
    pthread_mutex_init(&dormant->lock, NULL);
    dormant->first_free = NONE;
    dormant->bucket_count = BUCKETS_MIN;
    dormant->by_run = new_buckets(BUCKETS_MIN);
    dormant->by_session = new_buckets(BUCKETS_MIN);
    return dormant;
}

static void drop_blocks(struct dormant_runs *dormant) {
    for (size_t i = 0; i < dormant->block_count; i++) free(dormant->blocks[i]);
    free(dormant->blocks);
    dormant->blocks = NULL;
    dormant->block_count = 0;
    dormant->first_free = NONE;
}

void dormant_runs_free(struct dormant_runs *dormant) {
    if (!dormant) return;
    assert(dormant_runs_count(dormant) == 0);
    drop_blocks(dormant);
    free(dormant->by_run);
    free(dormant->by_session);
    pthread_mutex_destroy(&dormant->lock);
    free(dormant);
}

uint64_t dormant_runs_added(const struct dormant_runs *dormant) {
    return atomic_load(&dormant->added);
}

size_t dormant_runs_count(const struct dormant_runs *dormant) {
    return atomic_load(&dormant->count);
}

static struct entry *at(const struct dormant_runs *dormant, uint32_t index) {
    return &dormant->blocks[index / BLOCK_RUNS][index % BLOCK_RUNS];
}

static void add_block(struct dormant_runs *dormant) {
    size_t count = dormant->block_count;
    struct entry *block = mem_zero(BLOCK_RUNS, sizeof(*block));
    dormant->blocks = mem_resize(dormant->blocks, (count + 1) * sizeof(struct entry *));
    dormant->blocks[dormant->block_count++] = block;
    for (size_t i = BLOCK_RUNS; i > 0; i--) {
        block[i - 1].next_run = dormant->first_free;
        dormant->first_free = (uint32_t)(count * BLOCK_RUNS + i - 1);
    }
}

static size_t bucket_of(const struct dormant_runs *dormant, uint64_t hash) {
    return (hash ^ hash >> 20) & (dormant->bucket_count - 1);
}

/* At the end of its bucket of sessions, so that the run that waits longest comes first. */
static void link_entry(struct dormant_runs *dormant, uint32_t index) {
    struct entry *entry = at(dormant, index);
    uint32_t *runs = &dormant->by_run[bucket_of(dormant, entry->run)];
    uint32_t *place = &dormant->by_session[bucket_of(dormant, entry->session)];
    entry->next_run = *runs;
    *runs = index;
    while (*place != NONE) place = &at(dormant, *place)->next_session;
    entry->next_session = NONE;
    *place = index;
}

/* Each bucket of the new ones is filled in the order of the old ones. */
static void grow(struct dormant_runs *dormant) {
    uint32_t *by_run = dormant->by_run, *by_session = dormant->by_session;
    size_t before = dormant->bucket_count;
    dormant->bucket_count = 2 * before;
    dormant->by_run = new_buckets(2 * before);
    dormant->by_session = new_buckets(2 * before);
    for (size_t i = 0; i < before; i++) {
        for (uint32_t index = by_session[i], next; index != NONE; index = next) {
            next = at(dormant, index)->next_session;
            link_entry(dormant, index);
        }
    }
    free(by_run);
    free(by_session);
}

static void unlink_from(struct dormant_runs *dormant, uint32_t *place, uint32_t index,
                        size_t offset) {
    while (*place != index) place = (uint32_t *)(void *)((char *)at(dormant, *place) + offset);
    *place = *(uint32_t *)(void *)((char *)at(dormant, index) + offset);
}

/* --- names -------------------------------------------------------------------------------- */

/* The length comes first, so that no two pairs of names are equal. */
static uint64_t hash_session(struct str workspace, struct str session) {
    struct buf names;
    buf_init(&names, NAMES_MAX_BYTES);
    buf_append_u64(&names, workspace.len);
    buf_append_byte(&names, ':');
    buf_append(&names, workspace);
    buf_append(&names, session);
    uint64_t hash = map_hash(buf_str(&names));
    buf_done(&names);
    return hash;
}

static uint32_t hash_workspace(struct str workspace) {
    return (uint32_t)map_hash(workspace) & WORKSPACE_MASK;
}

/* A filter as what an entry has. */
struct sought {
    bool has_workspace, has_user, has_session;
    uint32_t workspace, user;
    uint64_t session, run;
};

static struct sought sought_of(const struct dormant_filter *filter) {
    struct sought sought = {.has_workspace = filter->workspace.at != NULL,
                            .has_user = filter->user.at != NULL,
                            .has_session = filter->workspace.at && filter->session.at,
                            .run = filter->run};
    if (sought.has_workspace) sought.workspace = hash_workspace(filter->workspace);
    if (sought.has_user) sought.user = (uint32_t)map_hash(filter->user);
    if (sought.has_session) sought.session = hash_session(filter->workspace, filter->session);
    return sought;
}

static bool matches(const struct entry *entry, const struct sought *sought) {
    return entry->run && (!sought->run || entry->run == sought->run) &&
           (!sought->has_session || entry->session == sought->session) &&
           (!sought->has_workspace || entry->workspace == sought->workspace) &&
           (!sought->has_user || entry->user == sought->user);
}

/* --- adding, finding, removing ------------------------------------------------------------ */

void dormant_runs_add(struct dormant_runs *dormant, const struct dormant_run *run,
                      struct str workspace, struct str user, struct str session) {
    uint64_t key = hash_session(workspace, session);
    pthread_mutex_lock(&dormant->lock);
    if (dormant->first_free == NONE) add_block(dormant);
    uint32_t index = dormant->first_free;
    struct entry *entry = at(dormant, index);
    dormant->first_free = entry->next_run;
    *entry = (struct entry){.run = run->run,
                            .session = key,
                            .workspace = hash_workspace(workspace) & WORKSPACE_MASK,
                            .user = (uint32_t)map_hash(user),
                            .engine = engine_ref(run->engine),
                            .host = run->host,
                            .deadline_ms = (uint64_t)run->deadline_unix_ms & DEADLINE_MASK,
                            .alone_s = run->alone_s & 0xfffff,
                            .transfers = (unsigned short)(run->transfers & 0x7ffu),
                            .addressed = run->addressed};
    link_entry(dormant, index);
    size_t count = atomic_fetch_add(&dormant->count, 1) + 1;
    atomic_fetch_add(&dormant->added, 1);
    if (count > PER_BUCKET * dormant->bucket_count) grow(dormant);
    pthread_mutex_unlock(&dormant->lock);
}

static uint32_t find_index(struct dormant_runs *dormant, uint64_t run) {
    uint32_t index = dormant->by_run[bucket_of(dormant, run)];
    while (index != NONE && at(dormant, index)->run != run)
        index = at(dormant, index)->next_run;
    return index;
}

bool dormant_runs_find(struct dormant_runs *dormant, uint64_t run, struct dormant_run *ret) {
    pthread_mutex_lock(&dormant->lock);
    uint32_t index = find_index(dormant, run);
    if (index != NONE) {
        const struct entry *entry = at(dormant, index);
        *ret = (struct dormant_run){.run = run,
                                    .engine = entry->engine,
                                    .host = entry->host,
                                    .alone_s = entry->alone_s,
                                    .transfers = (unsigned short)entry->transfers,
                                    .addressed = entry->addressed,
                                    .deadline_unix_ms = (int64_t)entry->deadline_ms};
    }
    pthread_mutex_unlock(&dormant->lock);
    return index != NONE;
}

/* Returns its engine. The last one takes the memory with it. */
static struct engine *dormant_runs_take_out(struct dormant_runs *dormant, uint32_t index) {
    struct entry *entry = at(dormant, index);
    struct engine *engine = entry->engine;
    unlink_from(dormant, &dormant->by_run[bucket_of(dormant, entry->run)], index,
                offsetof(struct entry, next_run));
    unlink_from(dormant, &dormant->by_session[bucket_of(dormant, entry->session)], index,
                offsetof(struct entry, next_session));
    *entry = (struct entry){.next_run = dormant->first_free};
    dormant->first_free = index;
    if (atomic_fetch_sub(&dormant->count, 1) == 1) drop_blocks(dormant);
    return engine;
}

void dormant_runs_remove(struct dormant_runs *dormant, uint64_t run) {
    pthread_mutex_lock(&dormant->lock);
    uint32_t index = find_index(dormant, run);
    struct engine *engine = index == NONE ? NULL : dormant_runs_take_out(dormant, index);
    pthread_mutex_unlock(&dormant->lock);
    engine_unref(engine);
}

void dormant_runs_forget(struct dormant_runs *dormant, const struct run_host *host) {
    for (size_t i = 0;; i++) {
        pthread_mutex_lock(&dormant->lock);
        bool over = i >= dormant->block_count * BLOCK_RUNS;
        const struct entry *entry = over ? NULL : at(dormant, (uint32_t)i);
        bool ours = entry && entry->run && entry->host == host;
        struct engine *engine = ours ? dormant_runs_take_out(dormant, (uint32_t)i) : NULL;
        pthread_mutex_unlock(&dormant->lock);
        engine_unref(engine);
        if (over) return;
    }
}

/* --- searching ---------------------------------------------------------------------------- */

/* Sorted, lowest first; the highest is dropped. */
static size_t dormant_runs_insert(uint64_t *runs, size_t count, size_t max, uint64_t run) {
    size_t place = count;
    while (place > 0 && runs[place - 1] > run) place--;
    if (place == max) return count;
    if (count == max) count--;
    memmove(runs + place + 1, runs + place, (count - place) * sizeof(*runs));
    runs[place] = run;
    return count + 1;
}

static size_t list_all(struct dormant_runs *dormant, const struct sought *sought, size_t max,
                       uint64_t *ret_runs) {
    size_t count = 0;
    for (uint32_t i = 0; i < dormant->block_count * BLOCK_RUNS; i++) {
        const struct entry *entry = at(dormant, i);
        if (matches(entry, sought))
            count = dormant_runs_insert(ret_runs, count, max, entry->run);
    }
    return count;
}

static size_t list_session(struct dormant_runs *dormant, const struct sought *sought,
                           size_t max, uint64_t *ret_runs) {
    size_t count = 0;
    uint32_t index = dormant->by_session[bucket_of(dormant, sought->session)];
    for (; index != NONE && count < max; index = at(dormant, index)->next_session) {
        if (matches(at(dormant, index), sought)) ret_runs[count++] = at(dormant, index)->run;
    }
    return count;
}

static size_t list_run(struct dormant_runs *dormant, const struct sought *sought, size_t max,
                       uint64_t *ret_runs) {
    uint32_t index = find_index(dormant, sought->run);
    if (index == NONE || max == 0 || !matches(at(dormant, index), sought)) return 0;
    *ret_runs = sought->run;
    return 1;
}

size_t dormant_runs_list(struct dormant_runs *dormant, const struct dormant_filter *filter,
                         size_t max, uint64_t *ret_runs) {
    if (dormant_runs_count(dormant) == 0) return 0;
    struct sought sought = sought_of(filter);
    pthread_mutex_lock(&dormant->lock);
    size_t count = sought.run           ? list_run(dormant, &sought, max, ret_runs)
                   : sought.has_session ? list_session(dormant, &sought, max, ret_runs)
                                        : list_all(dormant, &sought, max, ret_runs);
    pthread_mutex_unlock(&dormant->lock);
    return count;
}

bool dormant_runs_has(struct dormant_runs *dormant, const struct dormant_filter *filter) {
    uint64_t run;
    return dormant_runs_list(dormant, filter, 1, &run) == 1;
}

size_t dormant_runs_due(struct dormant_runs *dormant, const struct run_host *host,
                        int64_t unix_ms, size_t max, uint64_t *ret_runs, int64_t *ret_next) {
    size_t count = 0;
    int64_t next = 0;
    pthread_mutex_lock(&dormant->lock);
    for (uint32_t i = 0; i < dormant->block_count * BLOCK_RUNS; i++) {
        const struct entry *entry = at(dormant, i);
        int64_t deadline = (int64_t)entry->deadline_ms;
        if (!entry->run || entry->host != host || !deadline) continue;
        bool due = deadline <= unix_ms && count < max;
        if (due) ret_runs[count++] = entry->run;
        if (!due && (!next || deadline < next)) next = deadline;
    }
    pthread_mutex_unlock(&dormant->lock);
    *ret_next = next;
    return count;
}
