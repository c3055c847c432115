#include "topic/topics.h"

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

#include <pthread.h>
#include <stdlib.h>

#define DROP_TRIES 16

struct named {
    struct list link; /* in topics->used, the one used longest ago first */
    struct text name;
    struct topic *topic;
};

struct topics {
    pthread_mutex_t lock;
    struct topics_limits limits;
    struct map *named; /* name -> struct named */
    struct list used;
    uint64_t first; /* the sequence at which the newest topic began */
};

struct topics *topics_new(const struct topics_limits *limits) {
    struct topics *topics = MEM_NEW(struct topics);
    pthread_mutex_init(&topics->lock, NULL);
    topics->limits = *limits;
    topics->named = map_new();
    list_init(&topics->used);
    return topics;
}

static void named_drop(struct topics *topics, struct named *named) {
    map_remove(topics->named, text_str(named->name));
    list_remove(&named->link);
    text_done(&named->name);
    topic_unref(named->topic);
    free(named);
}

void topics_free(struct topics *topics) {
    if (!topics) return;
    LIST_EACH(&topics->used, link) named_drop(topics, CONTAINER_OF(link, struct named, link));
    map_free(topics->named);
    pthread_mutex_destroy(&topics->lock);
    free(topics);
}

/* Make room for one more. A topic that is read stays, and is looked at again last, so that many of
 * those cost no caller a long walk. */
static void drop_idle(struct topics *topics) {
    if (map_count(topics->named) < topics->limits.max) return;
    struct named *named = NULL;
    for (int tries = 0; tries < DROP_TRIES; tries++) {
        named = CONTAINER_OF(topics->used.next, struct named, link);
        if (!topic_is_read(named->topic)) break;
        list_remove(&named->link);
        list_append(&topics->used, &named->link);
        named = NULL;
    }
    if (named) named_drop(topics, named);
}

/* Later than that of every topic before: a dropped one may have been the same. */
static uint64_t next_first(struct topics *topics) {
    uint64_t now = (uint64_t)clock_unix_us();
    topics->first = now > topics->first ? now : topics->first + 1;
    return topics->first;
}

static struct named *named_new(struct topics *topics, struct str name) {
    const struct topic_options options = {.kind = TOPIC_EVENTS,
                                          .max_bytes = topics->limits.topic_max_bytes,
                                          .max_frames = topics->limits.topic_max_frames,
                                          .first_sequence = next_first(topics)};
    struct named *named = MEM_NEW(struct named);
    named->name = text_copy(name);
    named->topic = topic_new(&options);
    list_append(&topics->used, &named->link);
    map_put(topics->named, text_str(named->name), named);
    return named;
}

struct topic *topics_get(struct topics *topics, struct str name) {
    pthread_mutex_lock(&topics->lock);
    struct named *named = map_find(topics->named, name);
    if (named) {
        list_remove(&named->link);
        list_append(&topics->used, &named->link);
    } else {
        drop_idle(topics);
        named = named_new(topics, name);
    }
    struct topic *topic = topic_ref(named->topic);
    pthread_mutex_unlock(&topics->lock);
    return topic;
}
