#include "base/log_writer.h"

#include "base/clock.h"
#include "base/mem.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STACK_BYTES (64 * KIB)
#define LOOK_UP_MS 20 /* how often the thread checks whether to go on waiting for the reader */
#define LAST_WRITE_MS 100
#define STARVED_ROUNDS 50 /* of LAST_WRITE_MS, while not the reader but the machine is slow */

struct log_writer {
    int fd;
    log_writer_note_fn *note;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work;    /* signals the thread: there is something to do */
    pthread_cond_t settled; /* signals callers: the ring is empty, or the thread has ended */

    /* Guarded by the lock. */
    bool running, stopping, ended;
    bool abandoned; /* stop waiting for the reader */
    bool writing;
    bool refusing; /* the ring was full: dropped lines are counted until it is empty */
    bool failing;  /* the last write was an error: no count is written until one succeeds */
    unsigned long long dropped, dropped_unreported;
    size_t first, len, room;
    char ring[];
};

/* --- one write ---------------------------------------------------------------------------- */

enum written { WRITTEN, WRITTEN_LATER, WRITTEN_NEVER };

/* Whether the descriptor accepts bytes within `ms`: above 0; below it is an error. */
static int wait_ready(int fd, int ms) {
    struct pollfd ready = {.fd = fd, .events = POLLOUT};
    return poll(&ready, 1, ms);
}

/* Write as much as the descriptor accepts within `ms`; the rest stays in `bytes`. */
static enum written log_writer_write_piece(int fd, struct str *bytes, int ms) {
    int count = wait_ready(fd, ms);
    if (count == 0 || (count < 0 && errno == EINTR)) return WRITTEN_LATER;
    if (count < 0) return WRITTEN_NEVER;
    struct str piece = str_head(*bytes, LOG_WRITER_PIECE_BYTES);
    ssize_t len = write(fd, piece.at, piece.len);
    if (len < 0) return errno == EINTR || errno == EAGAIN ? WRITTEN_LATER : WRITTEN_NEVER;
    *bytes = str_skip(*bytes, (size_t)len);
    return bytes->len ? WRITTEN_LATER : WRITTEN;
}

bool log_write_within(int fd, struct str bytes, unsigned within_ms) {
    uint64_t end_ms = clock_mono_ms() + within_ms;
    enum written written;
    do {
        uint64_t now_ms = clock_mono_ms();
        int left_ms = now_ms < end_ms ? (int)(end_ms - now_ms) : 0;
        written = log_writer_write_piece(fd, &bytes, left_ms);
    } while (written == WRITTEN_LATER && clock_mono_ms() < end_ms);
    return written == WRITTEN;
}

/* --- the ring ----------------------------------------------------------------------------- */

static void ring_add(struct log_writer *writer, struct str line) {
    size_t at = (writer->first + writer->len) % writer->room;
    struct str head = str_head(line, writer->room - at), rest = str_skip(line, head.len);
    memcpy(writer->ring + at, head.at, head.len);
    if (rest.len) memcpy(writer->ring, rest.at, rest.len);
    writer->len += line.len;
}

/* Length of the whole lines in a piece, or of all of it when there are none. */
static size_t whole_lines(struct str piece) {
    size_t len = piece.len;
    while (len && piece.at[len - 1] != '\n') len--;
    return len ? len : piece.len;
}

/* An empty ring restarts at its front, so that a quiet log touches few of its pages. */
static struct str ring_take(struct log_writer *writer, char piece[LOG_WRITER_PIECE_BYTES]) {
    size_t len = writer->len < LOG_WRITER_PIECE_BYTES ? writer->len : LOG_WRITER_PIECE_BYTES;
    for (size_t i = 0; i < len; i++)
        piece[i] = writer->ring[(writer->first + i) % writer->room];
    len = whole_lines(str_of(piece, len));
    writer->len -= len;
    writer->first = writer->len ? (writer->first + len) % writer->room : 0;
    return str_of(piece, len);
}

/* --- the thread --------------------------------------------------------------------------- */

/* Called with the lock held; releases it while writing. */
static bool write_out(struct log_writer *writer, struct str bytes) {
    enum written written = WRITTEN_LATER;
    writer->writing = true;
    while (written == WRITTEN_LATER && !writer->abandoned) {
        pthread_mutex_unlock(&writer->lock);
        written = log_writer_write_piece(writer->fd, &bytes, LOOK_UP_MS);
        pthread_mutex_lock(&writer->lock);
    }
    writer->writing = false;
    writer->failing = written == WRITTEN_NEVER;
    return written == WRITTEN;
}

static unsigned count_lines(struct str text) {
    unsigned count = 0;
    for (size_t i = 0; i < text.len; i++) count += text.at[i] == '\n';
    return count;
}

static void write_lines(struct log_writer *writer) {
    char room[LOG_WRITER_PIECE_BYTES];
    struct str piece = ring_take(writer, room);
    if (write_out(writer, piece)) return;
    unsigned lost = count_lines(piece);
    writer->dropped += lost;
    writer->dropped_unreported += lost;
}

static void write_note(struct log_writer *writer) {
    char room[LOG_WRITER_NOTE_BYTES];
    unsigned long long noted = writer->dropped_unreported;
    if (write_out(writer, str_of(room, writer->note(noted, room))))
        writer->dropped_unreported -= noted;
    writer->refusing = false;
}

static bool has_note(const struct log_writer *writer) {
    return writer->dropped_unreported && !writer->failing;
}

static bool is_settled(const struct log_writer *writer) {
    return !writer->len && !writer->writing && !has_note(writer);
}

static bool wait_for_work(struct log_writer *writer) {
    while (is_settled(writer)) {
        writer->refusing = false;
        pthread_cond_broadcast(&writer->settled);
        if (writer->stopping) return false;
        pthread_cond_wait(&writer->work, &writer->lock);
    }
    return !writer->abandoned;
}

static void *log_writer_write_all(void *ctx) {
    struct log_writer *writer = ctx;
    pthread_mutex_lock(&writer->lock);
    while (wait_for_work(writer)) {
        if (writer->len)
            write_lines(writer);
        else
            write_note(writer);
    }
    writer->ended = true;
    pthread_cond_broadcast(&writer->settled);
    pthread_mutex_unlock(&writer->lock);
    return NULL;
}

/* --- public functions --------------------------------------------------------------------- */

struct log_writer *log_writer_new(int fd, size_t ring_bytes, log_writer_note_fn *note) {
    struct log_writer *writer = mem_zero(1, sizeof(struct log_writer) + ring_bytes);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&writer->lock, NULL);
    pthread_cond_init(&writer->work, NULL);
    pthread_cond_init(&writer->settled, &monotonic);
    pthread_condattr_destroy(&monotonic);
    writer->fd = fd;
    writer->room = ring_bytes;
    writer->note = note;
    return writer;
}

void log_writer_free(struct log_writer *writer) {
    if (!writer || writer->running) return; /* its thread was abandoned and still uses it */
    pthread_cond_destroy(&writer->settled);
    pthread_cond_destroy(&writer->work);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

bool log_writer_start(struct log_writer *writer) {
    pthread_attr_t small;
    sigset_t all, before;
    if (writer->running) return false; /* an abandoned thread still uses it */
    writer->stopping = writer->abandoned = writer->ended = false;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, STACK_BYTES);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* other threads handle signals */
    pthread_mutex_lock(&writer->lock);
    writer->running =
        pthread_create(&writer->thread, &small, log_writer_write_all, writer) == 0;
    bool running = writer->running;
    pthread_mutex_unlock(&writer->lock);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&small);
    return running;
}

bool log_writer_put(struct log_writer *writer, struct str line) {
    pthread_mutex_lock(&writer->lock);
    bool taken = writer->running && !writer->stopping;
    if (taken && !writer->refusing && line.len <= writer->room - writer->len) {
        ring_add(writer, line);
    } else if (taken) {
        writer->refusing = true;
        writer->dropped++;
        writer->dropped_unreported++;
    }
    pthread_cond_signal(&writer->work);
    pthread_mutex_unlock(&writer->lock);
    return taken;
}

/* Wait, with the lock held, until `done` returns true. */
static bool wait_until(struct log_writer *writer, bool (*done)(const struct log_writer *),
                       unsigned within_ms) {
    struct timespec end = clock_mono_in(within_ms);
    int late = 0;
    while (!done(writer) && !late) {
        late = pthread_cond_timedwait(&writer->settled, &writer->lock, &end);
    }
    return done(writer);
}

static bool has_ended(const struct log_writer *writer) {
    return writer->ended;
}

bool log_writer_flush(struct log_writer *writer, unsigned within_ms) {
    pthread_mutex_lock(&writer->lock);
    bool flushed = !writer->running || wait_until(writer, is_settled, within_ms);
    pthread_mutex_unlock(&writer->lock);
    return flushed;
}

/* With the lock held. The thread may lack its turn on a busy machine while its reader waits for the
 * last lines, which often say why the program ends. */
static bool wait_until_ended(struct log_writer *writer, unsigned within_ms) {
    bool ended = wait_until(writer, has_ended, within_ms);
    for (int i = 0; !ended && i < STARVED_ROUNDS && wait_ready(writer->fd, 0) > 0; i++)
        ended = wait_until(writer, has_ended, LAST_WRITE_MS);
    return ended;
}

/* Only a write that blocks because another process filled the pipe can outlast `abandoned`; its
 * thread is then left running until the process ends. */
void log_writer_stop(struct log_writer *writer, unsigned within_ms) {
    if (!writer->running) return;
    pthread_mutex_lock(&writer->lock);
    writer->stopping = true;
    pthread_cond_signal(&writer->work);
    writer->abandoned = !wait_until_ended(writer, within_ms);
    bool ended = !writer->abandoned || wait_until(writer, has_ended, LAST_WRITE_MS);
    writer->running = !ended;
    pthread_mutex_unlock(&writer->lock);
    if (ended)
        pthread_join(writer->thread, NULL);
    else
        pthread_detach(writer->thread);
}

unsigned long long log_writer_dropped(struct log_writer *writer) {
    pthread_mutex_lock(&writer->lock);
    unsigned long long dropped = writer->dropped;
    pthread_mutex_unlock(&writer->lock);
    return dropped;
}
