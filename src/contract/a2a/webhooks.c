#include "contract/a2a/webhooks.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/webhook_claim.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define RECORD_MAX_BYTES (64 * KIB)

#define READ_AGAIN_MS 5000 /* after the store failed; until then nothing is added */

struct entry {
    struct push push; /* its loop's; its id, url and names do not change */
    struct list link; /* in `all`, or in `removed` */
    struct webhooks *webhooks;
    struct text workspace;
    bool settled, removed;
    struct mail mail; /* to its loop, once it is removed */
};

struct webhooks {
    pthread_mutex_t lock;
    struct list all;     /* oldest first */
    struct list removed; /* on the way to their loops */
    size_t count;
    bool reading, loaded, closed;
    struct kept_ask *ask; /* while `reading` */
    struct timer again;   /* to read, of the reader's loop */
    const struct push_place *reader;
};

struct webhooks *webhooks_new(void) {
    struct webhooks *webhooks = MEM_NEW(struct webhooks);
    pthread_mutex_init(&webhooks->lock, NULL);
    list_init(&webhooks->all);
    list_init(&webhooks->removed);
    return webhooks;
}

void webhooks_free(struct webhooks *webhooks) {
    if (!webhooks) return;
    assert(list_empty(&webhooks->all) && list_empty(&webhooks->removed));
    pthread_mutex_destroy(&webhooks->lock);
    free(webhooks);
}

static struct entry *entry_of(struct list *link) {
    return CONTAINER_OF(link, struct entry, link);
}

/* --- the store ---------------------------------------------------------------------------- */

static struct kept_ask *keep(struct entry *entry, kept_done_fn *kept, void *ctx) {
    const struct push *push = &entry->push;
    const struct webhook_record record = {push->webhook, text_str(entry->workspace),
                                          push->dialect};
    struct buf key, bytes;
    if (!push->place->store) return NULL;
    webhook_key_begin(push->run, push->webhook.id, &key);
    buf_init(&bytes, RECORD_MAX_BYTES);
    webhook_record_write(&record, &bytes);
    const struct kept_record records[] = {
        {.space = KEPT_WEBHOOK, .key = buf_str(&key), .bytes = buf_str(&bytes)},
        {.space = KEPT_WEBHOOK_SENT, .key = buf_str(&key), .gone = true}};
    struct kept_ask *ask = kept_write_start(push->place->store, push->place->loop, records,
                                            ARRAY_LEN(records), kept, ctx);
    buf_done(&bytes);
    buf_done(&key);
    return ask;
}

static void keep_gone(struct store *store, struct loop *loop, struct str key) {
    const struct kept_record records[] = {
        {.space = KEPT_WEBHOOK, .key = key, .gone = true},
        {.space = KEPT_WEBHOOK_SENT, .key = key, .gone = true}};
    kept_write_start(store, loop, records, ARRAY_LEN(records), NULL, NULL);
}

static void keep_removal(const struct entry *entry) {
    const struct push *push = &entry->push;
    struct buf key;
    if (!push->place->store) return;
    webhook_key_begin(push->run, push->webhook.id, &key);
    keep_gone(push->place->store, push->place->loop, buf_str(&key));
    buf_done(&key);
}

static void keep_progress(const struct entry *entry) {
    const struct push *push = &entry->push;
    char room[40];
    struct buf key, sent = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    if (!push->place->store) return;
    webhook_key_begin(push->run, push->webhook.id, &key);
    buf_append_u64(&sent, push->sent);
    if (push->state == PUSH_SETTLED) buf_append(&sent, STR(WEBHOOK_CLAIM_OVER));
    const struct kept_record record = {
        .space = KEPT_WEBHOOK_SENT, .key = buf_str(&key), .bytes = buf_str(&sent)};
    kept_write_start(push->place->store, push->place->loop, &record, 1, NULL, NULL);
    buf_done(&key);
}

/* --- one of them -------------------------------------------------------------------------- */

static void entry_free(struct entry *entry) {
    push_done(&entry->push);
    text_done(&entry->workspace);
    free(entry);
}

/* Under the lock, so that nothing is kept after a removal. */
static void on_progress(struct push *push) {
    struct entry *entry = CONTAINER_OF(push, struct entry, push);
    struct webhooks *webhooks = entry->webhooks;
    pthread_mutex_lock(&webhooks->lock);
    if (push->state == PUSH_SETTLED) entry->settled = true;
    if (!entry->removed && !push->gone) keep_progress(entry); /* erased: so are its records */
    pthread_mutex_unlock(&webhooks->lock);
}

static struct entry *entry_new(struct webhooks *webhooks, const struct webhook_put *put,
                               uint64_t sent) {
    struct entry *entry = MEM_NEW(struct entry);
    entry->webhooks = webhooks;
    entry->workspace = text_copy(put->workspace);
    push_init(&entry->push, put->place, put->run, put->dialect, &put->webhook, sent);
    entry->push.progress = on_progress;
    return entry;
}

/* On its loop. */
static void on_removed(void *ctx) {
    struct entry *entry = ctx;
    struct webhooks *webhooks = entry->webhooks;
    pthread_mutex_lock(&webhooks->lock);
    list_remove(&entry->link);
    pthread_mutex_unlock(&webhooks->lock);
    entry_free(entry);
}

/* Under the lock: take it out, and have its loop end it. */
static void take_out(struct webhooks *webhooks, struct entry *entry) {
    list_remove(&entry->link);
    list_append(&webhooks->removed, &entry->link);
    webhooks->count--;
    entry->removed = true;
    loop_post(entry->push.place->loop, &entry->mail, on_removed, entry);
}

/* --- room --------------------------------------------------------------------------------- */

static struct entry *webhooks_find(struct webhooks *webhooks, uint64_t run, struct str id) {
    LIST_EACH(&webhooks->all, link) {
        struct entry *entry = entry_of(link);
        if (entry->push.run == run && str_equal(entry->push.webhook.id, id)) return entry;
    }
    return NULL;
}

/* How many there are, and which may be removed for one more. */
struct webhook_room {
    size_t of_workspace, of_task;
    struct entry *oldest, *oldest_of_workspace, *oldest_of_task; /* settled; or NULL */
};

static void webhook_room_add(struct webhook_room *room, struct entry *entry,
                             const struct webhook_put *put) {
    bool same_workspace = str_equal(text_str(entry->workspace), put->workspace);
    bool same_task = entry->push.run == put->run;
    room->of_workspace += same_workspace;
    room->of_task += same_task;
    if (!entry->settled) return;
    if (!room->oldest) room->oldest = entry;
    if (same_workspace && !room->oldest_of_workspace) room->oldest_of_workspace = entry;
    if (same_task && !room->oldest_of_task) room->oldest_of_task = entry;
}

/* False: it is full. Otherwise *ret is the one to remove first, or NULL. */
static bool webhook_room_has(const struct webhook_room *room, size_t count,
                             struct entry **ret) {
    *ret = NULL;
    if (room->of_task >= WEBHOOKS_OF_TASK_MAX) return (*ret = room->oldest_of_task) != NULL;
    if (room->of_workspace >= WEBHOOKS_OF_WORKSPACE_MAX)
        return (*ret = room->oldest_of_workspace) != NULL;
    if (count >= WEBHOOKS_MAX) return (*ret = room->oldest) != NULL;
    return true;
}

static bool is_open(const struct webhooks *webhooks, struct err *e) {
    if (webhooks->closed)
        return err_set(e, ERR_UNAVAILABLE, "the server is stopping; try again");
    return webhooks->loaded ||
           err_set(e, ERR_UNAVAILABLE, "the webhooks are being read; try again");
}

/* Under the lock. */
static bool webhooks_make_room(struct webhooks *webhooks, const struct webhook_put *put,
                               struct entry **ret_old, struct err *e) {
    struct webhook_room room = {.oldest = NULL};
    if (!is_open(webhooks, e)) return false;
    if ((*ret_old = webhooks_find(webhooks, put->run, put->webhook.id))) return true;
    LIST_EACH(&webhooks->all, link) {
        webhook_room_add(&room, entry_of(link), put);
    }
    return webhook_room_has(&room, webhooks->count, ret_old) ||
           err_set(
               e, ERR_RESOURCE_EXHAUSTED,
               "there are too many webhooks of tasks that go on: %zu, of this workspace %zu, "
               "of this task %zu; delete some",
               webhooks->count, room.of_workspace, room.of_task);
}

bool webhooks_have_room(struct webhooks *webhooks, const struct webhook_put *put,
                        struct err *e) {
    struct entry *old;
    pthread_mutex_lock(&webhooks->lock);
    bool fits = webhooks_make_room(webhooks, put, &old, e);
    pthread_mutex_unlock(&webhooks->lock);
    return fits;
}

/* --- adding and removing ------------------------------------------------------------------- */

bool webhooks_put(struct webhooks *webhooks, const struct webhook_put *put, kept_done_fn *kept,
                  void *ctx, struct kept_ask **ret_ask, struct err *e) {
    struct entry *entry = entry_new(webhooks, put, 0), *old;
    pthread_mutex_lock(&webhooks->lock);
    bool fits = webhooks_make_room(webhooks, put, &old, e);
    if (fits && old) {
        keep_removal(old);
        take_out(webhooks, old);
    }
    if (fits) {
        list_append(&webhooks->all, &entry->link);
        webhooks->count++;
        *ret_ask = keep(entry, kept, ctx);
        push_start(&entry->push);
    }
    pthread_mutex_unlock(&webhooks->lock);
    if (!fits) entry_free(entry);
    return fits;
}

size_t webhooks_each(struct webhooks *webhooks, uint64_t run, struct str id,
                     webhook_each_fn *each, void *ctx) {
    size_t count = 0;
    pthread_mutex_lock(&webhooks->lock);
    LIST_EACH(&webhooks->all, link) {
        const struct entry *entry = entry_of(link);
        if (entry->push.run != run) continue;
        if (id.len && !str_equal(entry->push.webhook.id, id)) continue;
        count++;
        each(&entry->push.webhook, ctx);
    }
    pthread_mutex_unlock(&webhooks->lock);
    return count;
}

void webhooks_remove(struct webhooks *webhooks, uint64_t run, struct str id) {
    pthread_mutex_lock(&webhooks->lock);
    struct entry *entry = webhooks->closed ? NULL : webhooks_find(webhooks, run, id);
    if (entry) {
        keep_removal(entry);
        take_out(webhooks, entry);
    }
    pthread_mutex_unlock(&webhooks->lock);
}

/* --- the start ---------------------------------------------------------------------------- */

static const struct kept_record *sent_of(const struct kept_record *records, size_t count,
                                         struct str key) {
    for (size_t i = 0; i < count; i++) {
        if (records[i].space == KEPT_WEBHOOK_SENT && str_equal(records[i].key, key))
            return &records[i];
    }
    return NULL;
}

bool webhook_put_read(struct str key, struct str bytes, struct arena *arena,
                      struct webhook_put *ret) {
    struct webhook_record kept;
    if (!webhook_key_read(key, &ret->run) || !webhook_record_read(bytes, arena, &kept)) {
        log_warning("a2a: the store has a webhook that cannot be read; it is not called");
        return false;
    }
    ret->workspace = kept.workspace;
    ret->dialect = kept.dialect;
    ret->webhook = kept.webhook;
    return true;
}

/* Under the lock. */
static void restore(struct webhooks *webhooks, const struct webhook_put *put, uint64_t sent,
                    bool over) {
    struct entry *entry = entry_new(webhooks, put, sent);
    list_append(&webhooks->all, &entry->link);
    webhooks->count++;
    entry->settled = over;
    if (over) {
        push_settle(&entry->push);
    } else {
        push_start(&entry->push);
    }
}

static void take_record(struct webhooks *webhooks, const struct kept_record *record,
                        const struct kept_record *sent, struct arena *arena) {
    struct webhook_put put = {.place = webhooks->reader};
    bool over = false;
    if (!webhook_put_read(record->key, record->bytes, arena, &put)) return;
    uint64_t seq = sent ? webhook_sent_read(sent->bytes, &over) : 0;
    restore(webhooks, &put, seq, over);
}

static void take_records(struct webhooks *webhooks, const struct kept_record *records,
                         size_t count) {
    struct arena *arena = arena_new(KEPT_READ_MAX_BYTES);
    for (size_t i = 0; i < count; i++) {
        if (records[i].space != KEPT_WEBHOOK) continue;
        take_record(webhooks, &records[i], sent_of(records, count, records[i].key), arena);
    }
    arena_free(arena);
}

static void webhooks_on_read(const struct kept_record *records, size_t count,
                             const struct err *failed, void *ctx) {
    struct webhooks *webhooks = ctx;
    pthread_mutex_lock(&webhooks->lock);
    webhooks->ask = NULL;
    if (failed && !webhooks->closed) {
        log_often(LOG_WARNING, "a2a: kept webhooks are read again: %s", failed->text);
        timer_start(&webhooks->again, READ_AGAIN_MS);
    }
    if (!failed && !webhooks->closed) take_records(webhooks, records, count);
    webhooks->loaded = !failed;
    pthread_mutex_unlock(&webhooks->lock);
}

/* Under the lock. */
static void read_kept(struct webhooks *webhooks) {
    const struct push_place *place = webhooks->reader;
    webhooks->ask = kept_read_start(place->store, place->loop, KEPT_WEBHOOK, KEPT_WEBHOOK_SENT,
                                    webhooks_on_read, webhooks);
}

static void on_read_again(void *ctx) {
    struct webhooks *webhooks = ctx;
    pthread_mutex_lock(&webhooks->lock);
    if (!webhooks->closed) read_kept(webhooks);
    pthread_mutex_unlock(&webhooks->lock);
}

void webhooks_serve(struct webhooks *webhooks, const struct push_place *place) {
    pthread_mutex_lock(&webhooks->lock);
    bool reads = !webhooks->reading && !webhooks->closed;
    webhooks->reading = true;
    if (reads && place->store) {
        webhooks->reader = place;
        timer_init(&webhooks->again, place->loop, on_read_again, webhooks);
        read_kept(webhooks);
    } else if (reads) {
        webhooks->loaded = true;
    }
    pthread_mutex_unlock(&webhooks->lock);
}

/* --- the end ------------------------------------------------------------------------------ */

/* Under the lock: move those of this place to `ret`. */
static void take_those_of(struct webhooks *webhooks, const struct push_place *place,
                          struct list *ret) {
    list_init(ret);
    LIST_EACH(&webhooks->all, link) {
        if (entry_of(link)->push.place != place) continue;
        list_remove(link);
        list_append(ret, link);
        webhooks->count--;
    }
    /* Their mail ends them. */
    LIST_EACH(&webhooks->removed, link) {
        if (entry_of(link)->push.place == place) push_stop(&entry_of(link)->push);
    }
}

void webhooks_leave(struct webhooks *webhooks, const struct push_place *place) {
    struct list own;
    pthread_mutex_lock(&webhooks->lock);
    webhooks->closed = true;
    if (webhooks->reader == place) {
        timer_stop(&webhooks->again);
        kept_forget(webhooks->ask);
        webhooks->ask = NULL;
    }
    take_those_of(webhooks, place, &own);
    pthread_mutex_unlock(&webhooks->lock);
    LIST_EACH(&own, link) entry_free(entry_of(link));
}
