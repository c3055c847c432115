/* inner: what a topic and its views know of each other. Private to topic/. */
#ifndef WEIR_TOPIC_INNER_H
#define WEIR_TOPIC_INNER_H

#include "loop/loop.h"
#include "topic/log.h"

#include <pthread.h>

/* How a topic ended. */
struct topic_ending {
    bool over;
    enum err_code code;
    const char *text;
};

struct topic {
    atomic_uint refs;
    struct topic_options options;
    pthread_mutex_t lock; /* guards the rest, and `link` and `mailed` of its views */
    struct topic_log log;
    struct topic_ending ending;
    struct buf scratch;
    struct list views; /* one for each loop that reads */
};

/* A loop's share of a topic. It exists while a reader of that loop does. */
struct topic_view {
    struct topic *topic;
    struct loop *loop;
    struct list link; /* in topic->views; unlinked: it has no reader here any more */
    struct mail mail;
    bool mailed; /* the mail is on its way */

    /* The loop's own. */
    struct topic_log log;
    struct topic_ending ending;    /* of the topic, when `log` was brought up to date */
    struct list ready, idle, full; /* readers, by state */
    size_t reader_count;
    struct task pass;
    struct timer next_pass;
    bool news;    /* the topic may have more than the log */
    bool passing; /* on_pass() is on the stack */
};

/* Tell each view. The lock is held. */
void topic_views_tell(struct topic *topic);

#endif
