#include "contract/nimi/replies.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct entry {
    struct list link;
    struct str key, reply; /* both are stored after the struct */
    uint64_t until_ms;
    uint8_t digest[REPLIES_DIGEST_BYTES];
    char bytes[];
};

struct replies {
    pthread_mutex_t lock;
    struct map *entries;
    struct list used; /* least recently used first */
    size_t count_max, bytes_max, bytes;
    struct map *writes; /* writes in progress */
};

struct replies *replies_new(size_t count_max, size_t bytes_max) {
    struct replies *replies = MEM_NEW(struct replies);
    replies->entries = map_new();
    replies->writes = map_new();
    replies->count_max = count_max;
    replies->bytes_max = bytes_max;
    list_init(&replies->used);
    pthread_mutex_init(&replies->lock, NULL);
    return replies;
}

static void replies_drop(struct replies *replies, struct entry *entry) {
    map_remove(replies->entries, entry->key);
    list_remove(&entry->link);
    replies->bytes -= entry->key.len + entry->reply.len;
    free(entry);
}

static struct entry *oldest(struct replies *replies) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): replies_drop() unlinks what it frees */
    return list_empty(&replies->used) ? NULL
                                      : CONTAINER_OF(replies->used.next, struct entry, link);
}

void replies_free(struct replies *replies) {
    if (!replies) return;
    size_t place = 0;
    struct str key;
    void *entry;
    while (map_next(replies->entries, &place, &key, &entry)) free(entry);
    map_free(replies->entries);
    assert(map_count(replies->writes) == 0);
    map_free(replies->writes);
    pthread_mutex_destroy(&replies->lock);
    free(replies);
}

/* The entry under `key`, unless it has expired. */
static struct entry *living(struct replies *replies, struct str key, uint64_t now_ms) {
    struct entry *entry = map_find(replies->entries, key);
    if (!entry || now_ms < entry->until_ms) return entry;
    replies_drop(replies, entry);
    return NULL;
}

static bool same(const uint8_t *one, const uint8_t *other) {
    return memcmp(one, other, REPLIES_DIGEST_BYTES) == 0;
}

static enum reply_found find_stored(struct replies *replies, struct str key,
                                    const uint8_t *digest, uint64_t now_ms, struct buf *out) {
    struct entry *entry = living(replies, key, now_ms);
    if (!entry) return REPLY_NEW;
    if (!same(entry->digest, digest)) return REPLY_CONFLICT;
    list_remove(&entry->link);
    list_append(&replies->used, &entry->link);
    buf_append(out, entry->reply);
    return REPLY_STORED;
}

enum reply_found replies_find(struct replies *replies, struct str key, const uint8_t *digest,
                              uint64_t now_ms, struct buf *out) {
    pthread_mutex_lock(&replies->lock);
    enum reply_found found = find_stored(replies, key, digest, now_ms, out);
    pthread_mutex_unlock(&replies->lock);
    return found;
}

static struct str replies_put(char **at, struct str text) {
    struct str here = {*at, text.len};
    if (text.len) memcpy(*at, text.at, text.len);
    *at += text.len;
    return here;
}

void replies_keep(struct replies *replies, struct str key, const uint8_t *digest,
                  uint64_t now_ms, struct str reply) {
    size_t bytes = key.len + reply.len;
    if (bytes > replies->bytes_max || replies->count_max == 0) return;
    struct entry *entry = mem_zero(1, sizeof(struct entry) + bytes);
    char *at = entry->bytes;
    entry->key = replies_put(&at, key);
    entry->reply = replies_put(&at, reply);
    entry->until_ms = now_ms + REPLIES_KEPT_MS;
    memcpy(entry->digest, digest, REPLIES_DIGEST_BYTES);
    list_init(&entry->link);

    pthread_mutex_lock(&replies->lock);
    struct entry *before = map_find(replies->entries, key);
    if (before) replies_drop(replies, before);
    while (map_count(replies->entries) >= replies->count_max ||
           replies->bytes + bytes > replies->bytes_max) {
        struct entry *old = oldest(replies);
        if (!old) break;
        replies_drop(replies, old);
    }
    map_put(replies->entries, key, entry);
    list_append(&replies->used, &entry->link);
    replies->bytes += bytes;
    pthread_mutex_unlock(&replies->lock);
}

void replies_forget(struct replies *replies, struct str key, struct str reply) {
    pthread_mutex_lock(&replies->lock);
    struct entry *entry = map_find(replies->entries, key);
    if (entry && str_equal(entry->reply, reply)) replies_drop(replies, entry);
    pthread_mutex_unlock(&replies->lock);
}

size_t replies_count(struct replies *replies) {
    pthread_mutex_lock(&replies->lock);
    size_t count = map_count(replies->entries);
    pthread_mutex_unlock(&replies->lock);
    return count;
}

/* --- writes in progress ------------------------------------------------------------------- */

/* The outcome of a write, shared by all askers. */
struct answer {
    size_t readers; /* askers that have not received it yet */
    struct write_outcome outcome;
    struct fault fault;
    char bytes[];
};

struct reply_ask {
    struct replies *replies;
    struct list link;            /* in pending->asks, while it waits */
    struct reply_write *pending; /* NULL: the write is over */
    struct answer *answer;       /* set once the mail is on its way */
    bool left;                   /* the asker left while the mail was on its way */
    struct loop *loop;
    struct mail mail;
    reply_outcome_fn *on_outcome;
    void *ctx;
};

struct reply_write {
    struct replies *replies;
    struct list asks; /* empty: abandoned, and no longer in the map */
    struct loop *loop;
    struct mail mail;
    bool posted; /* its mail is on its way */
    bool made;   /* it ended while the mail was on its way */
    reply_left_fn *left;
    void *ctx;
    uint8_t digest[REPLIES_DIGEST_BYTES];
    struct str key; /* stored after the struct */
    char bytes[];
};

static struct reply_write *reply_write_new(struct replies *replies,
                                           const struct reply_question *question) {
    struct reply_write *pending = mem_zero(1, sizeof(struct reply_write) + question->key.len);
    char *at = pending->bytes;
    pending->replies = replies;
    pending->loop = question->loop;
    pending->key = replies_put(&at, question->key);
    memcpy(pending->digest, question->digest, REPLIES_DIGEST_BYTES);
    list_init(&pending->asks);
    map_put(replies->writes, pending->key, pending);
    return pending;
}

static struct reply_ask *replies_join(struct reply_write *pending,
                                      const struct reply_question *question) {
    struct reply_ask *ask = MEM_NEW(struct reply_ask);
    ask->replies = pending->replies;
    ask->pending = pending;
    ask->loop = question->loop;
    ask->on_outcome = question->on_outcome;
    ask->ctx = question->ctx;
    list_append(&pending->asks, &ask->link);
    return ask;
}

static enum reply_found find_made_now(struct replies *replies,
                                      const struct reply_question *question,
                                      struct reply_ask **ret) {
    struct reply_write *pending = map_find(replies->writes, question->key);
    enum reply_found found = pending ? REPLY_WAITS : REPLY_NEW;
    if (pending && !same(pending->digest, question->digest)) return REPLY_CONFLICT;
    if (!pending) pending = reply_write_new(replies, question);
    *ret = replies_join(pending, question);
    return found;
}

enum reply_found replies_ask(struct replies *replies, const struct reply_question *question,
                             struct buf *out, struct reply_ask **ret) {
    pthread_mutex_lock(&replies->lock);
    enum reply_found found =
        find_stored(replies, question->key, question->digest, question->now_ms, out);
    if (found == REPLY_NEW) found = find_made_now(replies, question, ret);
    pthread_mutex_unlock(&replies->lock);
    return found;
}

struct reply_write *reply_write_of(struct reply_ask *ask, reply_left_fn *left, void *ctx) {
    struct reply_write *pending = ask->pending;
    pthread_mutex_lock(&pending->replies->lock);
    pending->left = left;
    pending->ctx = ctx;
    pthread_mutex_unlock(&pending->replies->lock);
    return pending;
}

/* --- leaving ------------------------------------------------------------------------------ */

/* Mail to the maker: no asker is left. */
static void replies_on_left(void *mail_ctx) {
    struct reply_write *pending = mail_ctx;
    struct replies *replies = pending->replies;
    pthread_mutex_lock(&replies->lock);
    bool made = pending->made;
    pending->posted = false;
    reply_left_fn *left = pending->left;
    void *ctx = pending->ctx;
    pthread_mutex_unlock(&replies->lock);
    if (made) {
        free(pending);
    } else {
        left(ctx);
    }
}

/* Called with the lock held. The next call with this request starts a new write. */
static void abandon(struct reply_write *pending) {
    map_remove(pending->replies->writes, pending->key);
    pending->posted = true;
    loop_post(pending->loop, &pending->mail, replies_on_left, pending);
}

void replies_leave(struct reply_ask *ask) {
    if (!ask) return;
    struct replies *replies = ask->replies;
    pthread_mutex_lock(&replies->lock);
    struct reply_write *pending = ask->pending;
    bool answered = ask->answer != NULL;
    if (answered) {
        ask->left = true; /* its mail frees it */
    } else {
        list_remove(&ask->link);
        if (list_empty(&pending->asks)) abandon(pending);
    }
    pthread_mutex_unlock(&replies->lock);
    if (!answered) free(ask);
}

/* --- the outcome -------------------------------------------------------------------------- */

static struct answer *answer_new(const struct write_outcome *outcome) {
    struct answer *answer = mem_zero(1, sizeof(struct answer) + outcome->reply.len);
    char *at = answer->bytes;
    answer->outcome = *outcome;
    answer->outcome.reply = replies_put(&at, outcome->reply);
    if (outcome->fault) {
        answer->fault = *outcome->fault;
        answer->outcome.fault = &answer->fault;
    }
    return answer;
}

/* Mail to an asker: the write is over. */
static void replies_on_made(void *mail_ctx) {
    struct reply_ask *ask = mail_ctx;
    struct replies *replies = ask->replies;
    struct answer *answer = ask->answer;
    if (!ask->left) ask->on_outcome(&answer->outcome, ask->ctx);
    pthread_mutex_lock(&replies->lock);
    bool last = --answer->readers == 0;
    pthread_mutex_unlock(&replies->lock);
    if (last) free(answer);
    free(ask);
}

/* Called with the lock held: post a mail to each asker. */
static void report_all(struct reply_write *pending, struct answer *answer) {
    LIST_EACH(&pending->asks, link) {
        struct reply_ask *ask = CONTAINER_OF(link, struct reply_ask, link);
        list_remove(&ask->link);
        ask->pending = NULL;
        ask->answer = answer;
        answer->readers++;
        loop_post(ask->loop, &ask->mail, replies_on_made, ask);
    }
}

void replies_made(struct reply_write *pending, const struct write_outcome *outcome,
                  uint64_t now_ms) {
    struct replies *replies = pending->replies;
    struct answer *answer = answer_new(outcome);
    /* Store the reply first: at any moment a call must find either the reply or its maker. */
    if (!outcome->fault)
        replies_keep(replies, pending->key, pending->digest, now_ms, outcome->reply);
    pthread_mutex_lock(&replies->lock);
    if (!list_empty(&pending->asks)) map_remove(replies->writes, pending->key);
    report_all(pending, answer);
    bool unread = answer->readers == 0;
    bool posted = pending->posted;
    pending->made = true;
    pthread_mutex_unlock(&replies->lock);
    if (unread) free(answer);
    if (!posted) free(pending); /* else the mail frees it */
}
