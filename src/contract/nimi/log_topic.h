/* log_topic: the events of a stored log, shared live by all who subscribe to them.
 *
 *     a change is committed ─▶ tell ─▶ mail ─▶ the topic's loop reads what is new in the log
 *                                                 └─▶ topic (topic/topic.h) ─▶ each subscriber
 *
 * A caller that commits a change only says that there is news. What is published is read from the log,
 * in its order and with its numbers. So the order of two commits on two loops, a process that
 * dies after a commit, and an outcome that was unknown for a while all come out right.
 *
 * A topic exists while someone subscribes. Labels of its frames are the sequence (8 bytes), then
 * the label of the event.
 *
 * Private to contract/nimi.
 *
 * Memory   topics and their table are counted.
 * Threads  any. A topic is fed on the loop that made it.
 * Source   contracts/nimi.md 6.7, 10; checks.md K24.
 */
#ifndef WEIR_CONTRACT_NIMI_LOG_TOPIC_H
#define WEIR_CONTRACT_NIMI_LOG_TOPIC_H

#include "loop/loop.h"
#include "store/event_log.h"
#include "topic/topic.h"

#define LOG_TOPIC_WINDOW_BYTES (256 * KIB)
#define LOG_TOPIC_WINDOW_FRAMES 256
#define LOG_TOPIC_LABEL_BYTES 8 /* in front of an event's own label */

/* How the events of one kind of log become messages. */
struct log_kind {
    const struct pb_message *type;
    /* Make the message in the arena; *ret_sequence is the place of its number. False: these are
     * not the bytes of such an event. */
    bool (*read)(const struct event_log_event *from, struct arena *arena, void **ret,
                 uint64_t **ret_sequence);
};

#define LOG_EVENT_ARENA_BYTES (1 * MIB) /* enough to read any event */

struct log_topics;

/* The caller owns a reference to the result. */
struct log_topics *log_topics_new(void);
struct log_topics *log_topics_ref(struct log_topics *topics);
void log_topics_unref(struct log_topics *topics); /* NULL is fine */

/* Something was appended to this log, and is committed. */
void log_topics_report(struct log_topics *topics, const struct event_log_key *key);

struct log_topic;

/* The topic of a log, which begins after `last` if it is new. End it with log_topic_unref(). */
struct log_topic *log_topic_get(struct log_topics *topics, const struct log_kind *kind,
                                const struct event_log_key *key, struct store *store,
                                struct loop *loop, uint64_t last);
void log_topic_unref(struct log_topic *source); /* NULL is fine */
struct topic *log_topic_of(const struct log_topic *source);

#endif
