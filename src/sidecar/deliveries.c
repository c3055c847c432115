#include "sidecar/deliveries.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/job.h"
#include "sidecar/delivery_file.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define SEND_MS 5000 /* as the published sidecar */
#define BATCH_MAX_BYTES (8 * MIB)
#define SLACK_BYTES (1 * MIB) /* of lines that no longer count */

/* After a failure the file is replaced again when it has grown to twice its size, or so much
 * later: what makes it fail is mostly a folder that cannot be written. */
#define REPLACE_AGAIN_MS 60000

struct delivery {
    struct list link;
    struct text id, path, body;
    bool once; /* dropped after one attempt that failed */
};

/* A call of deliveries_put() whose events are not on disk yet. */
struct put {
    struct list link;
    delivery_kept_fn *kept;
    void *ctx;
    struct list events;
    size_t count, bytes;
};

struct deliveries {
    struct loop *loop;
    struct http_pool *pool;
    struct text url, authorization;
    struct list kept; /* in the order of their ids */
    size_t kept_count, put_count;
    uint64_t kept_bytes, put_bytes; /* of their lines */
    uint64_t process, next_id;      /* an id is both: no other process has it */
    struct list puts, writing;      /* writing: those of the batch on the other thread */
    struct task turn;               /* reports what is kept in memory */
    struct delivery_counts counts;
    /* the one that is being sent: the first one kept */
    struct http_call *call;
    unsigned status;
    struct timer again;
    uint64_t wait_ms;
    bool stopping;
    void (*stopped)(void *ctx);
    void *stopped_ctx;
    struct {
        struct delivery_file file;
        struct job job;
        struct buf batch; /* lines to append; of the job while it runs */
        struct buf sent;  /* lines of what was delivered, for the next batch */
        size_t sent_len;  /* of those that are in `batch` */
        size_t new_at;    /* where the lines in `batch` begin that the file does not have */
        bool replaces;
        bool used, busy, good;
        struct err why;
        bool replaced; /* or it was not tried */
        struct err why_not;
        uint64_t failed_bytes, failed_ms; /* at the last replacing, if it failed */
    } disk;
};

/* --- events ----------------------------------------------------------------------------------- */

static struct delivery *delivery_new(const struct delivery_line *line) {
    struct delivery *delivery = MEM_NEW(struct delivery);
    delivery->id = text_copy(line->id);
    delivery->path = text_copy(line->path);
    delivery->body = text_copy(line->body);
    delivery->once = line->once;
    return delivery;
}

/* As its line in the file, or more. */
static size_t delivery_bytes(const struct delivery *delivery) {
    return DELIVERY_LINE_MORE_BYTES + delivery->path.len + delivery->body.len;
}

static void delivery_free(struct delivery *delivery) {
    text_done(&delivery->id);
    text_done(&delivery->path);
    text_done(&delivery->body);
    free(delivery);
}

static void send_next(struct deliveries *deliveries);
static void write_batch(struct deliveries *deliveries);

static void deliveries_keep_event(struct deliveries *deliveries, struct delivery *delivery) {
    list_append(&deliveries->kept, &delivery->link);
    deliveries->kept_count++;
    deliveries->kept_bytes += delivery_bytes(delivery);
}

/* It leaves the list of kept ones; the caller frees it. */
static void unkeep_event(struct deliveries *deliveries, struct delivery *delivery) {
    list_remove(&delivery->link);
    deliveries->kept_count--;
    deliveries->kept_bytes -= delivery_bytes(delivery);
}

/* Report a put, and keep its events unless it failed. */
static void end_put(struct deliveries *deliveries, struct put *put, const struct err *failed) {
    LIST_EACH(&put->events, link) {
        struct delivery *delivery = CONTAINER_OF(link, struct delivery, link);
        if (failed)
            delivery_free(delivery);
        else
            deliveries_keep_event(deliveries, delivery);
    }
    deliveries->put_count -= put->count;
    deliveries->put_bytes -= put->bytes;
    delivery_kept_fn *kept = put->kept;
    void *ctx = put->ctx;
    free(put);
    if (kept) kept(failed, ctx);
}

static void end_puts(struct deliveries *deliveries, struct list *puts,
                     const struct err *failed) {
    struct list ended; /* its reports may put more */
    list_init(&ended);
    list_move(puts, &ended);
    LIST_EACH(&ended, link) {
        end_put(deliveries, CONTAINER_OF(link, struct put, link), failed);
    }
}

static struct delivery *number_event(struct deliveries *deliveries,
                                     const struct delivery_event *event) {
    char id[DELIVERY_ID_MAX_BYTES + 1];
    snprintf(id, sizeof(id), "%016llx-%llu", (unsigned long long)deliveries->process,
             (unsigned long long)deliveries->next_id++);
    return delivery_new(
        &(struct delivery_line){str_from(id), event->path, event->body, event->once});
}

void deliveries_put(struct deliveries *deliveries, const struct delivery_event *events,
                    size_t count, delivery_kept_fn *kept, void *ctx) {
    struct put *put = MEM_NEW(struct put);
    *put = (struct put){.kept = kept, .ctx = ctx, .count = count};
    list_init(&put->events);
    for (size_t i = 0; i < count; i++) {
        struct delivery *delivery = number_event(deliveries, &events[i]);
        put->bytes += delivery_bytes(delivery);
        list_append(&put->events, &delivery->link);
    }
    deliveries->put_count += count;
    deliveries->put_bytes += put->bytes;
    list_append(&deliveries->puts, &put->link);
    loop_defer(deliveries->loop, &deliveries->turn);
}

static void forget_in(struct list *puts, const void *ctx) {
    LIST_EACH(puts, link) {
        struct put *put = CONTAINER_OF(link, struct put, link);
        if (put->ctx == ctx) put->kept = NULL;
    }
}

void deliveries_forget(struct deliveries *deliveries, void *ctx) {
    forget_in(&deliveries->puts, ctx);
    forget_in(&deliveries->writing, ctx);
}

/* Refuse what is too much. */
static void refuse_surplus(struct deliveries *deliveries) {
    struct err full;
    struct list refused;
    size_t count = deliveries->kept_count + deliveries->put_count;
    uint64_t bytes = deliveries->kept_bytes + deliveries->put_bytes;
    list_init(&refused);
    while ((count > DELIVERIES_MAX || bytes > DELIVERIES_MAX_BYTES) &&
           !list_empty(&deliveries->puts)) {
        struct list *last = deliveries->puts.prev;
        count -= CONTAINER_OF(last, struct put, link)->count;
        bytes -= CONTAINER_OF(last, struct put, link)->bytes;
        list_remove(last);
        list_append(&refused, last);
    }
    err_set(&full, ERR_RESOURCE_EXHAUSTED, "%zu events wait for the platform already", count);
    end_puts(deliveries, &refused, &full);
}

static void deliveries_on_turn(void *ctx) {
    struct deliveries *deliveries = ctx;
    refuse_surplus(deliveries);
    if (deliveries->disk.used) {
        write_batch(deliveries);
        return;
    }
    end_puts(deliveries, &deliveries->puts, NULL);
    send_next(deliveries);
}

/* --- the file --------------------------------------------------------------------------------- */

static void put_line(const struct delivery *delivery, struct buf *out) {
    delivery_line_write(&(struct delivery_line){text_str(delivery->id),
                                                text_str(delivery->path),
                                                text_str(delivery->body), delivery->once},
                        out);
}

/* What cannot be replaced may still be appended to. */
static void work(void *ctx) {
    struct deliveries *deliveries = ctx;
    struct str lines = buf_str(&deliveries->disk.batch);
    struct delivery_file *file = &deliveries->disk.file;
    deliveries->disk.good = true;
    deliveries->disk.replaced = !deliveries->disk.replaces ||
                                delivery_file_replace(file, lines, &deliveries->disk.why_not);
    if (deliveries->disk.replaces && deliveries->disk.replaced) return;
    deliveries->disk.good = delivery_file_append(file, str_skip(lines, deliveries->disk.new_at),
                                                 &deliveries->disk.why);
}

static void check_stopped(struct deliveries *deliveries) {
    if (!deliveries->stopping || deliveries->disk.busy || !deliveries->stopped) return;
    void (*stopped)(void *) = deliveries->stopped;
    deliveries->stopped = NULL;
    stopped(deliveries->stopped_ctx);
}

static void note_replacing(struct deliveries *deliveries) {
    if (!deliveries->disk.replaces) return;
    deliveries->disk.failed_bytes = deliveries->disk.replaced ? 0 : deliveries->disk.file.bytes;
    deliveries->disk.failed_ms = loop_now_ms(deliveries->loop);
    if (!deliveries->disk.replaced) log_often(LOG_ERROR, "%s", deliveries->disk.why_not.text);
}

static void deliveries_on_written(void *ctx) {
    struct deliveries *deliveries = ctx;
    deliveries->disk.busy = false;
    note_replacing(deliveries);
    if (deliveries->disk.good || deliveries->stopping)
        buf_drop(&deliveries->disk.sent, deliveries->disk.sent_len);
    if (!deliveries->disk.good) log_often(LOG_ERROR, "%s", deliveries->disk.why.text);
    end_puts(deliveries, &deliveries->writing,
             deliveries->disk.good ? NULL : &deliveries->disk.why);
    write_batch(deliveries);
    send_next(deliveries);
}

static bool may_replace(const struct deliveries *deliveries) {
    uint64_t failed_bytes = deliveries->disk.failed_bytes;
    return !failed_bytes || deliveries->disk.file.bytes / 2 >= failed_bytes ||
           loop_now_ms(deliveries->loop) - deliveries->disk.failed_ms >= REPLACE_AGAIN_MS;
}

/* Whether most of the file no longer counts. With what is kept at most, it is half as long as
 * it may be. */
static bool wants_replacing(const struct deliveries *deliveries) {
    return !deliveries->stopping &&
           deliveries->disk.file.bytes > 2 * deliveries->kept_bytes + SLACK_BYTES &&
           may_replace(deliveries);
}

static void gather_kept(struct deliveries *deliveries) {
    LIST_EACH(&deliveries->kept, link)
    put_line(CONTAINER_OF(link, struct delivery, link), &deliveries->disk.batch);
}

static void gather_puts(struct deliveries *deliveries) {
    while (!list_empty(&deliveries->puts) && deliveries->disk.batch.len < BATCH_MAX_BYTES) {
        struct list *first = list_pop(&deliveries->puts);
        struct put *put = CONTAINER_OF(first, struct put, link);
        LIST_EACH(&put->events, link)
        put_line(CONTAINER_OF(link, struct delivery, link), &deliveries->disk.batch);
        list_append(&deliveries->writing, first);
    }
}

/* Lines of what was delivered wait for the next event: if they are lost, it is sent again. */
static void write_batch(struct deliveries *deliveries) {
    if (deliveries->disk.busy) return;
    deliveries->disk.replaces = wants_replacing(deliveries);
    if (list_empty(&deliveries->puts) && !deliveries->disk.replaces &&
        !(deliveries->stopping && deliveries->disk.sent.len)) {
        check_stopped(deliveries);
        return;
    }
    buf_clear(&deliveries->disk.batch);
    if (deliveries->disk.replaces) gather_kept(deliveries);
    deliveries->disk.new_at = deliveries->disk.batch.len;
    buf_append(&deliveries->disk.batch, buf_str(&deliveries->disk.sent));
    gather_puts(deliveries);
    assert(buf_ok(&deliveries->disk.sent) && buf_ok(&deliveries->disk.batch));
    deliveries->disk.sent_len = deliveries->disk.sent.len;
    deliveries->disk.busy = true;
    job_start(&deliveries->disk.job, deliveries->loop, work, deliveries_on_written, deliveries);
}

/* --- sending ---------------------------------------------------------------------------------- */

static struct delivery *deliveries_first_of(const struct deliveries *deliveries) {
    if (list_empty(&deliveries->kept)) return NULL;
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    return CONTAINER_OF(deliveries->kept.next, struct delivery, link);
}

static void drop_first(struct deliveries *deliveries) {
    struct delivery *first = deliveries_first_of(deliveries);
    if (!first) return;
    unkeep_event(deliveries, first);
    if (deliveries->disk.used)
        delivery_line_write(
            &(struct delivery_line){.id = text_str(first->id), .path = STR_EMPTY},
            &deliveries->disk.sent);
    delivery_free(first);
    if (deliveries->disk.used) write_batch(deliveries);
}

static void deliveries_on_head(const struct http_head *head, void *ctx) {
    struct deliveries *deliveries = ctx;
    deliveries->status = head->status;
}

static void deliveries_on_body(struct lent bytes, void *ctx) {
    (void)bytes;
    (void)ctx;
}

/* The platform could not take it now: it may be able to later. */
static bool may_help(unsigned status) {
    return status < 200 || status / 100 == 3 || status >= 500 || status == 408 ||
           status == 429 || status == 401 || status == 403;
}

static void wait_again(struct deliveries *deliveries) {
    timer_start(&deliveries->again, deliveries->wait_ms);
    deliveries->wait_ms *= 2;
    if (deliveries->wait_ms > DELIVERY_LAST_WAIT_MS)
        deliveries->wait_ms = DELIVERY_LAST_WAIT_MS;
}

/* The first event was not taken now. An event that is sent once must not hold up the others. */
static void keep_or_drop(struct deliveries *deliveries) {
    const struct delivery *first = deliveries_first_of(deliveries);
    deliveries->counts.failed++;
    if (first && !first->once) {
        wait_again(deliveries);
        return;
    }
    deliveries->counts.dropped++;
    drop_first(deliveries);
    send_next(deliveries);
}

static void deliveries_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct deliveries *deliveries = ctx;
    (void)stage;
    deliveries->call = NULL;
    unsigned status = failed ? 0 : deliveries->status;
    if (may_help(status)) {
        log_often(LOG_WARNING, "the platform did not take an event: %s, status %u",
                  failed ? failed->text : "refused", status);
        keep_or_drop(deliveries);
        return;
    }
    *(status < 300 ? &deliveries->counts.sent : &deliveries->counts.refused) += 1;
    if (status >= 300)
        log_often(LOG_WARNING, "the platform refused an event with status %u: it is dropped",
                  status);
    deliveries->wait_ms = DELIVERY_FIRST_WAIT_MS;
    drop_first(deliveries);
    send_next(deliveries);
}

static const struct http_sink sink = {deliveries_on_head, deliveries_on_body,
                                      deliveries_on_end};

static void send_next(struct deliveries *deliveries) {
    struct delivery *first = deliveries_first_of(deliveries);
    struct buf url;
    char key[DELIVERY_ID_MAX_BYTES + 8];
    if (!first || deliveries->call || deliveries->stopping || timer_waits(&deliveries->again))
        return;
    snprintf(key, sizeof(key), "weir-" STR_FMT, STR_ARG(text_str(first->id)));
    buf_init(&url, 8 * KIB);
    buf_append(&url, text_str(deliveries->url));
    buf_append(&url, text_str(first->path));
    const struct http_header headers[] = {
        {STR("Content-Type"), STR("application/json")},
        {STR("Idempotency-Key"), str_from(key)},
        {STR("Authorization"), text_str(deliveries->authorization)}};
    const struct http_request request = {.method = STR("POST"),
                                         .url = buf_str(&url),
                                         .headers = headers,
                                         .header_count = deliveries->authorization.len ? 3 : 2,
                                         .body = text_str(first->body),
                                         .total_ms = SEND_MS,
                                         .body_max_bytes = 1 * MIB};
    deliveries->status = 0;
    deliveries->call =
        http_start(deliveries->pool, deliveries->loop, &request, &sink, deliveries);
    buf_done(&url);
}

static void on_again(void *ctx) {
    send_next(ctx);
}

/* --- life ------------------------------------------------------------------------------------- */

static void forget_sent(struct deliveries *deliveries, struct str id) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    LIST_EACH(&deliveries->kept, link) {
        struct delivery *delivery = CONTAINER_OF(link, struct delivery, link);
        if (!str_equal(text_str(delivery->id), id)) continue;
        unkeep_event(deliveries, delivery);
        delivery_free(delivery);
        return;
    }
}

/* Events are delivered in order, so the line of a delivered one is found at once. */
static void load(struct deliveries *deliveries, struct str text) {
    while (text.len) {
        struct delivery_line read;
        struct str line = str_split(text, '\n', &text);
        if (!text.at || !delivery_line_read(line, &read)) continue;
        if (read.path.len)
            deliveries_keep_event(deliveries, delivery_new(&read));
        else
            forget_sent(deliveries, read.id);
    }
    if (deliveries->kept_count)
        log_info("%zu events of an earlier process wait for the platform",
                 deliveries->kept_count);
}

static bool open_file(struct deliveries *deliveries, struct str path, struct err *e) {
    struct buf text;
    deliveries->disk.file.fd = -1;
    if (!path.len) return true;
    buf_init(&text, DELIVERY_FILE_MAX_BYTES + BATCH_MAX_BYTES); /* of a batch that was cut */
    bool good = delivery_file_open(&deliveries->disk.file, path, &text, e);
    deliveries->disk.used = good;
    if (good) load(deliveries, buf_str(&text));
    /* A line that was cut must not swallow the next one. */
    bool cut = text.len && !str_ends(buf_str(&text), STR("\n"));
    if (good && cut) buf_append(&deliveries->disk.sent, STR("\n"));
    buf_done(&text);
    return good;
}

/* Two replicas that start in the same microsecond must not have the same. */
static uint64_t random_process(void) {
    uint64_t random;
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random)) abort();
    return random;
}

bool deliveries_new(const struct deliveries_options *options, struct deliveries **ret,
                    struct err *e) {
    struct deliveries *deliveries = MEM_NEW(struct deliveries);
    struct str url = options->url;
    struct buf authorization;
    deliveries->loop = options->loop;
    deliveries->pool = options->pool;
    while (str_ends(url, STR("/"))) url = str_head(url, url.len - 1);
    deliveries->url = text_copy(url);
    buf_init(&authorization, 64 * KIB);
    if (options->token.len) {
        buf_append(&authorization, STR("Bearer "));
        buf_append(&authorization, options->token);
    }
    deliveries->authorization = text_copy(buf_str(&authorization));
    buf_done(&authorization);
    deliveries->process = random_process();
    deliveries->wait_ms = DELIVERY_FIRST_WAIT_MS;
    list_init(&deliveries->kept);
    list_init(&deliveries->puts);
    list_init(&deliveries->writing);
    buf_init(&deliveries->disk.batch, 2 * DELIVERY_FILE_MAX_BYTES);
    buf_init(&deliveries->disk.sent, DELIVERY_FILE_MAX_BYTES);
    task_init(&deliveries->turn, deliveries_on_turn, deliveries);
    timer_init(&deliveries->again, options->loop, on_again, deliveries);
    if (!open_file(deliveries, options->file, e)) {
        deliveries_free(deliveries);
        return false;
    }
    loop_defer(options->loop, &deliveries->turn);
    if (deliveries->kept_count) timer_start(&deliveries->again, 0);
    *ret = deliveries;
    return true;
}

struct delivery_counts deliveries_counts(const struct deliveries *deliveries) {
    struct delivery_counts counts = deliveries->counts;
    counts.waiting = deliveries->kept_count + deliveries->put_count;
    return counts;
}

void deliveries_stop(struct deliveries *deliveries, void (*stopped)(void *ctx), void *ctx) {
    deliveries->stopping = true;
    deliveries->stopped = stopped;
    deliveries->stopped_ctx = ctx;
    timer_stop(&deliveries->again);
    if (deliveries->call) http_cancel(deliveries->call);
    deliveries->call = NULL;
    if (deliveries->disk.used)
        write_batch(deliveries);
    else if (deliveries->kept_count)
        log_warning("%zu events for the platform are lost: they waited in memory",
                    deliveries->kept_count);
    if (!deliveries->disk.used) check_stopped(deliveries);
}

void deliveries_free(struct deliveries *deliveries) {
    struct err gone;
    if (!deliveries) return;
    task_cancel(&deliveries->turn);
    timer_stop(&deliveries->again);
    err_set(&gone, ERR_UNAVAILABLE, "the sidecar stops");
    end_puts(deliveries, &deliveries->puts, &gone);
    LIST_EACH(&deliveries->kept, link) {
        delivery_free(CONTAINER_OF(link, struct delivery, link));
    }
    delivery_file_close(&deliveries->disk.file);
    buf_done(&deliveries->disk.batch);
    buf_done(&deliveries->disk.sent);
    text_wipe(&deliveries->authorization);
    text_done(&deliveries->url);
    free(deliveries);
}
