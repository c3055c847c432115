/* topic: what happens to one thing, in order, for any number of subscribers on any loop.
 *
 * An event is encoded once, when it is published, into a frame: a gRPC message with its prefix,
 * which are not changed any more. Frames are shared by reference count. A topic keeps a window of
 * the newest ones, each loop with a subscriber keeps the same window (view.c), and a subscriber
 * holds only a cursor: the sequence of the last event that it has.
 *
 *     publish ─▶ frame ─▶ window of the topic ─▶ mail ─▶ window of each loop
 *                                                           │ cursor
 *                                                           └─▶ transport of reader 1, 2, 3 ...
 *
 * Sequences rise by one. What falls out of the window is gone:
 *
 *     TOPIC_EVENTS  a reader that still needed it is lost: it missed something, and hears so
 *     TOPIC_STATE   each event is the whole state of what its label names, so an older one is
 *                   superseded. Only superseded events are dropped, and a slow reader skips them
 *
 * No publisher waits for a reader, and nothing is queued for one beyond what its transport holds.
 *
 * Memory   a topic is counted: topic_ref(), topic_unref(). A window is at most max_bytes and
 *          max_frames, or one frame. A reader lives inside its owner.
 * Threads  topic_*: any. A reader belongs to its loop.
 * Source   contracts/nimi.md 3.1 K-STREAM-010 to 012, 6.7; checks.md K9, K24, B2.
 */
#ifndef WEIR_TOPIC_TOPIC_H
#define WEIR_TOPIC_TOPIC_H

#include "base/err.h"
#include "base/list.h"
#include "base/states.h"
#include "wire/pb.h"

struct loop;
struct topic;
struct topic_view;

enum topic_kind { TOPIC_EVENTS, TOPIC_STATE };

struct topic_options {
    enum topic_kind kind;
    size_t max_bytes, max_frames;
    uint64_t first_sequence; /* at least 1 */
};

/* The caller owns the result and ends it with topic_unref(), which accepts NULL. */
struct topic *topic_new(const struct topic_options *options);
struct topic *topic_ref(struct topic *topic);
void topic_unref(struct topic *topic);

struct topic_event {
    const struct pb_message *type;
    const void *message;
    uint64_t *sequence; /* a member of the message; filled in before it is encoded */
    struct str label;   /* for readers' wants(); TOPIC_STATE: what it is the state of */
};

/* Returns its sequence. A message that does not fit into 4 MiB is lost, with the events before
 * it: readers learn it as after topic_lose(). */
uint64_t topic_publish(struct topic *topic, const struct topic_event *event);

/* Number the next event above `sequence`. Numbers that are left out are not lost: for those that
 * went to one subscriber alone, or were used before a restart. */
void topic_skip(struct topic *topic, uint64_t sequence);

/* For a topic whose events are numbered elsewhere: those up to `sequence` are not to be had any
 * more. The window is emptied, and the next event has the number after it. */
void topic_lose(struct topic *topic, uint64_t sequence);

/* No event follows. Every reader learns so once it has all events, and so do readers that start
 * later. `text` is constant. A topic ends at most once. */
void topic_end(struct topic *topic, enum err_code code, const char *text);

/* The newest number that was used or left out; first_sequence - 1 if there is none. */
uint64_t topic_last(struct topic *topic);

/* Bytes in its window, and whether anyone reads it now. */
size_t topic_bytes(struct topic *topic);
bool topic_is_read(struct topic *topic);

/* --- readers ------------------------------------------------------------------------------ */

#define TOPIC_HIGH_BYTES (8 * KIB) /* waiting in the transport: the reader waits as well */
#define TOPIC_LOW_BYTES (4 * KIB)
#define TOPIC_TURN_BYTES (16 * KIB) /* in one turn of a reader, or one frame */
#define TOPIC_PASS_TURNS 1024       /* then the loop goes back to its sockets and timers */

/* How a reader's frames leave. Called on its loop, with the reader's ctx, never from inside
 * topic_reader_start() or _drained(). topic_reader_stop() may be called inside lost() and ended()
 * only. */
struct topic_wire {
    /* Room for so many bytes, or NULL: nothing can be sent any more. put() follows at once. */
    char *(*room)(size_t bytes, void *ctx);
    void (*put)(size_t bytes, void *ctx);
    /* Bytes that wait in the transport; and: call topic_reader_drained() when they fall to
     * `low`. */
    size_t (*queued)(void *ctx);
    void (*wake_at)(size_t low, void *ctx);
    /* Whether the reader wants an event with this label. NULL: every event. */
    bool (*wants)(struct str label, void *ctx);
    /* The last call: an event that it still needed was dropped. */
    void (*lost)(void *ctx);
    /* The last call: the topic has ended, and the reader has all of it. NULL: nothing is reported. */
    void (*ended)(enum err_code code, const char *text, void *ctx);
    /* After a turn: the reader has every event up to `cursor`, or does not want it. May be
     * NULL. */
    void (*turned)(uint64_t cursor, void *ctx);
};

enum topic_reader_state {
    TOPIC_READER_NEW,
    TOPIC_READER_READY, /* waits for its turn */
    TOPIC_READER_IDLE,  /* has everything */
    TOPIC_READER_FULL,  /* waits for its transport */
    TOPIC_READER_OVER,  /* lost, ended or stopped */
    TOPIC_READER_STATE_COUNT,
};

extern const struct state topic_reader_states[TOPIC_READER_STATE_COUNT];

/* Zeroed is new. Its members are private to topic/. */
struct topic_reader {
    struct list link; /* in a list of its view */
    struct topic_view *view;
    const struct topic_wire *wire;
    void *ctx;
    uint64_t cursor;      /* the newest event that it has, or does not want */
    uint64_t state_until; /* up to here superseded events are skipped */
    enum topic_reader_state state;
};

enum topic_start {
    TOPIC_LIVE,   /* what is published from now on */
    TOPIC_AFTER,  /* what the window holds after the sequence `after`, then what comes */
    TOPIC_LATEST, /* the newest event of each label, then what comes */
};

/* Begin to read. Between what is there and what comes nothing is missing or repeated.
 * Returns false if the window no longer reaches back to `after`, or the topic never reached it:
 * then the reader gets all that the window holds. */
bool topic_reader_start(struct topic_reader *reader, struct topic *topic, struct loop *loop,
                        enum topic_start start, uint64_t after, const struct topic_wire *wire,
                        void *ctx);

/* Give it what is there now, while less than `max_queued` bytes wait in its transport; before
 * something else is sent, such as the end of the stream. */
void topic_reader_flush(struct topic_reader *reader, size_t max_queued);

/* The transport has drained. */
void topic_reader_drained(struct topic_reader *reader);

/* The newest event that it has, or does not want. */
uint64_t topic_reader_cursor(const struct topic_reader *reader);

/* No more calls. At any time, also for a reader that never started. */
void topic_reader_stop(struct topic_reader *reader);

#endif
