/* topics: topics that are named as they are needed, such as one for each app.
 *
 * An unread topic is kept for its window, so that a subscriber can come back with its
 * cursor, until there are too many topics: then the ones used longest ago go. A topic that is
 * made again continues above every number that it had, because numbers begin at the
 * clock's microseconds. So a cursor of before is known to be too old, also after a restart.
 *
 * Memory   owns its topics. A topic that is handed out is counted.
 * Threads  any; one lock.
 */
#ifndef WEIR_TOPIC_TOPICS_H
#define WEIR_TOPIC_TOPICS_H

#include "topic/topic.h"

struct topics;

struct topics_limits {
    size_t topic_max_bytes, topic_max_frames; /* of one window */
    size_t max; /* from here on, unread topics make room for new ones */
};

/* The caller owns the result and ends it with topics_free(), which accepts NULL. */
struct topics *topics_new(const struct topics_limits *limits);
void topics_free(struct topics *topics);

/* The topic of this name, made if there is none. End it with topic_unref(). */
struct topic *topics_get(struct topics *topics, struct str name);

#endif
