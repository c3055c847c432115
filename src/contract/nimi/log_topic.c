#include "contract/nimi/log_topic.h"

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "store/changes.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define PAGE_BYTES (64 * KIB)
#define TROUBLE_MS 1000 /* pause after the store failed to read */
#define KEY_MAX_BYTES (4 * KIB)

struct log_topics {
    atomic_uint refs;
    pthread_mutex_t lock; /* guards the map, and the refs of its topics */
    struct map *named;    /* kind, owner and name -> struct log_topic */
};

struct log_topic {
    struct log_topics *topics;
    struct buf texts; /* of the keys */
    struct str name;  /* in the map */
    struct event_log_key key;
    const struct log_kind *kind;
    struct store *store;
    struct topic *topic;
    unsigned refs;

    pthread_mutex_t lock; /* guards the next two */
    bool mailed;          /* the mail is on its way */
    bool closing;         /* no reference is left */
    struct mail mail;

    /* The loop's own. */
    struct loop *loop;
    struct event_log_ask *ask;
    struct timer again_at;
    struct changes_watcher *watcher; /* other replicas append too; NULL: there are none */
    bool again;                      /* news came while it asked */
};

struct log_topics *log_topics_new(void) {
    struct log_topics *topics = MEM_NEW(struct log_topics);
    atomic_init(&topics->refs, 1);
    pthread_mutex_init(&topics->lock, NULL);
    topics->named = map_new();
    return topics;
}

struct log_topics *log_topics_ref(struct log_topics *topics) {
    atomic_fetch_add_explicit(&topics->refs, 1, memory_order_relaxed);
    return topics;
}

void log_topics_unref(struct log_topics *topics) {
    if (!topics || atomic_fetch_sub_explicit(&topics->refs, 1, memory_order_acq_rel) != 1)
        return;
    assert(map_count(topics->named) == 0);
    map_free(topics->named);
    pthread_mutex_destroy(&topics->lock);
    free(topics);
}

/* Ids hold no control characters, so no two keys have the same name. */
static void put_name(struct buf *out, const struct event_log_key *key) {
    buf_printf(out, "%d\n", (int)key->kind);
    buf_append(out, key->owner.app);
    buf_append_byte(out, '\n');
    buf_append(out, key->owner.subject);
    buf_append_byte(out, '\n');
    buf_append(out, key->name);
}

/* --- feeding ------------------------------------------------------------------------------ */

static void log_topic_feed(struct log_topic *source);

static void publish_event(struct log_topic *source, const struct event_log_event *event) {
    struct arena *arena = arena_new(LOG_EVENT_ARENA_BYTES);
    struct buf label;
    void *message;
    uint64_t *sequence;
    if (event->sequence != topic_last(source->topic) + 1)
        topic_lose(source->topic, event->sequence - 1);
    buf_init(&label, LOG_TOPIC_LABEL_BYTES + EVENT_LOG_LABEL_MAX_BYTES);
    buf_append(&label, str_of(&event->sequence, LOG_TOPIC_LABEL_BYTES));
    buf_append(&label, event->label);
    if (source->kind->read(event, arena, &message, &sequence)) {
        topic_publish(source->topic, &(struct topic_event){.type = source->kind->type,
                                                           .message = message,
                                                           .sequence = sequence,
                                                           .label = buf_str(&label)});
    } else {
        log_often(LOG_WARNING, "an event of the store is no %s; it is left out",
                  source->kind->type->name);
    }
    buf_done(&label);
    arena_free(arena);
}

static void on_news_read(const struct event_log_page *page, const struct err *failed,
                         void *ctx) {
    struct log_topic *source = ctx;
    source->ask = NULL;
    if (failed) {
        log_often(LOG_WARNING, "subscribers wait for the store: %s", failed->text);
        timer_start(&source->again_at, TROUBLE_MS);
        return;
    }
    for (size_t i = 0; i < page->count; i++) publish_event(source, &page->events[i]);
    if (page->more || source->again) log_topic_feed(source);
}

static void log_topic_feed(struct log_topic *source) {
    source->again = source->ask != NULL;
    if (source->ask) return;
    source->ask =
        event_log_read_start(source->store, source->loop, &source->key,
                             topic_last(source->topic), PAGE_BYTES, on_news_read, source);
}

static void log_topic_on_again(void *ctx) {
    log_topic_feed(ctx);
}

static void log_topic_free(struct log_topic *source) {
    event_log_forget(source->ask);
    changes_leave(source->watcher);
    timer_stop(&source->again_at);
    topic_unref(source->topic);
    pthread_mutex_destroy(&source->lock);
    buf_done(&source->texts);
    free(source);
}

static void on_log_mail(void *ctx) {
    struct log_topic *source = ctx;
    pthread_mutex_lock(&source->lock);
    source->mailed = false;
    bool closing = source->closing;
    pthread_mutex_unlock(&source->lock);
    if (closing) {
        log_topic_free(source);
    } else {
        log_topic_feed(source);
    }
}

static void log_topic_wake(struct log_topic *source, bool closing) {
    pthread_mutex_lock(&source->lock);
    source->closing = closing;
    if (!source->mailed) loop_post(source->loop, &source->mail, on_log_mail, source);
    source->mailed = true;
    pthread_mutex_unlock(&source->lock);
}

/* --- the table ---------------------------------------------------------------------------- */

void log_topics_report(struct log_topics *topics, const struct event_log_key *key) {
    struct buf name;
    buf_init(&name, KEY_MAX_BYTES);
    put_name(&name, key);
    pthread_mutex_lock(&topics->lock);
    struct log_topic *source = map_find(topics->named, buf_str(&name));
    if (source) log_topic_wake(source, false);
    pthread_mutex_unlock(&topics->lock);
    buf_done(&name);
}

static struct log_topic *log_topic_new(struct log_topics *topics, struct str name,
                                       const struct log_kind *kind,
                                       const struct event_log_key *key, uint64_t last) {
    struct log_topic *source = MEM_NEW(struct log_topic);
    source->topics = topics;
    source->kind = kind;
    source->name = name;
    source->key = *key;
    struct str *const texts[] = {&source->name, &source->key.owner.app,
                                 &source->key.owner.subject, &source->key.name};
    buf_keep_texts(&source->texts, texts, ARRAY_LEN(texts));
    source->topic = topic_new(&(struct topic_options){.kind = TOPIC_EVENTS,
                                                      .max_bytes = LOG_TOPIC_WINDOW_BYTES,
                                                      .max_frames = LOG_TOPIC_WINDOW_FRAMES,
                                                      .first_sequence = last + 1});
    pthread_mutex_init(&source->lock, NULL);
    return source;
}

/* A new topic looks at once for what was committed since `last` was read, because at
 * that commit there was no topic to notify. */
struct log_topic *log_topic_get(struct log_topics *topics, const struct log_kind *kind,
                                const struct event_log_key *key, struct store *store,
                                struct loop *loop, uint64_t last) {
    struct buf name;
    buf_init(&name, KEY_MAX_BYTES);
    put_name(&name, key);
    pthread_mutex_lock(&topics->lock);
    struct log_topic *source = map_find(topics->named, buf_str(&name));
    if (!source) {
        source = log_topic_new(topics, buf_str(&name), kind, key, last);
        source->store = store;
        source->loop = loop;
        timer_init(&source->again_at, loop, log_topic_on_again, source);
        if (store_is_shared(store))
            source->watcher = changes_watch(store_changes(store), CHANGE_EVENTS, loop,
                                            log_topic_on_again, source);
        map_put(topics->named, source->name, source);
        log_topic_wake(source, false);
    }
    source->refs++;
    pthread_mutex_unlock(&topics->lock);
    buf_done(&name);
    return source;
}

void log_topic_unref(struct log_topic *source) {
    if (!source) return;
    struct log_topics *topics = source->topics;
    pthread_mutex_lock(&topics->lock);
    if (--source->refs == 0) {
        map_remove(topics->named, source->name);
        log_topic_wake(source, true);
    }
    pthread_mutex_unlock(&topics->lock);
}

struct topic *log_topic_of(const struct log_topic *source) {
    return source->topic;
}
