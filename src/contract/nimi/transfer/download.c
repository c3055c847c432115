#include "contract/nimi/transfer/download.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "contract/nimi/transfer/carry.h"
#include "topic/topic.h"
#include "wire/moment.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

struct downloads {
    pthread_mutex_t lock;
    struct list all; /* struct download, the oldest first */
    size_t running;
    struct topic *topic;
    bool loaded;
    struct nimi_instance *loader; /* while `load` is under way */
    struct download_ask *load;
};

struct download_wait {
    struct list link; /* in download->waits, under the lock */
    struct downloads *table;
    struct loop *loop;
    struct mail mail;
    bool posted; /* under the lock */
    bool left;   /* its loop's */
    struct download_ended how;
    download_ended_fn *ended;
    void *ctx;
};

static struct download *download_of(struct list *link) {
    return CONTAINER_OF(link, struct download, link);
}

/* --- the table ---------------------------------------------------------------------------- */

/* A watcher that lags by more has missed something, and learns so. */
static const struct topic_options events = {
    .kind = TOPIC_EVENTS, .max_bytes = 256 * KIB, .max_frames = 512, .first_sequence = 1};

struct downloads *downloads_new(void) {
    struct downloads *downloads = MEM_NEW(struct downloads);
    pthread_mutex_init(&downloads->lock, NULL);
    list_init(&downloads->all);
    downloads->topic = topic_new(&events);
    return downloads;
}

/* The lock is held, or no thread is left. */
static void download_unref(struct download *download) {
    if (--download->refs) return;
    assert(!download->carry && list_empty(&download->waits));
    text_done(&download->connector);
    text_done(&download->model);
    text_done(&download->owner);
    text_done(&download->asset);
    text_done(&download->local_asset);
    free(download);
}

void downloads_free(struct downloads *downloads) {
    if (!downloads) return;
    LIST_EACH(&downloads->all, link) {
        list_remove(link);
        download_unref(download_of(link));
    }
    topic_unref(downloads->topic);
    pthread_mutex_destroy(&downloads->lock);
    free(downloads);
}

struct topic *downloads_topic(struct downloads *downloads) {
    return downloads->topic;
}

/* --- as the protocol tells it ------------------------------------------------------------- */

static struct str put_time(int64_t unix_ms, struct buf *out) {
    size_t at = out->len;
    moment_put(out, unix_ms / 1000, 0);
    return str_of(out->at + at, out->len - at);
}

struct nimi_local_transfer_session_summary download_summary(const struct download *download,
                                                            char room[DOWNLOAD_TIMES_BYTES]) {
    struct buf times = {
        .at = room, .room = DOWNLOAD_TIMES_BYTES, .max_bytes = DOWNLOAD_TIMES_BYTES};
    return (struct nimi_local_transfer_session_summary){
        .install_session_id = str_of(download->id, DOWNLOAD_ID_LEN),
        .asset_id = text_str(download->asset),
        .local_asset_id = text_str(download->local_asset),
        .session_kind = STR("download"),
        .phase = str_from(download->phase),
        .state = states_name(download_states, download->state),
        .bytes_received = download->received,
        .bytes_total = download->total,
        .speed_bytes_per_sec = download->speed,
        .eta_seconds = download->left_s,
        .message = str_from(download->message),
        .reason_code = str_from(download->reason),
        .retryable = download->retryable,
        .created_at = put_time(download->created_ms, &times),
        .updated_at = put_time(download->updated_ms, &times)};
}

struct nimi_local_transfer_progress_event
download_event(const struct nimi_local_transfer_session_summary *summary,
               enum download_state state) {
    return (struct nimi_local_transfer_progress_event){
        .install_session_id = summary->install_session_id,
        .asset_id = summary->asset_id,
        .local_asset_id = summary->local_asset_id,
        .session_kind = summary->session_kind,
        .phase = summary->phase,
        .bytes_received = summary->bytes_received,
        .bytes_total = summary->bytes_total,
        .speed_bytes_per_sec = summary->speed_bytes_per_sec,
        .eta_seconds = summary->eta_seconds,
        .message = summary->message,
        .state = summary->state,
        .reason_code = summary->reason_code,
        .retryable = summary->retryable,
        .done = download_is_done(state),
        .success = state == DOWNLOAD_COMPLETED,
        .created_at = summary->created_at,
        .updated_at = summary->updated_at};
}

/* The lock is held. Its label is its owner, for watchers. */
static void download_publish(struct download *download) {
    char room[DOWNLOAD_TIMES_BYTES];
    uint64_t sequence;
    const struct nimi_local_transfer_session_summary summary = download_summary(download, room);
    const struct nimi_local_transfer_progress_event event =
        download_event(&summary, download->state);
    topic_publish(download->table->topic,
                  &(struct topic_event){.type = &nimi_local_transfer_progress_event_table,
                                        .message = &event,
                                        .sequence = &sequence,
                                        .label = text_str(download->owner)});
}

/* --- the store ---------------------------------------------------------------------------- */

static void download_on_kept(const struct err *failed, void *ctx) {
    (void)ctx;
    if (failed)
        log_often(LOG_WARNING, "the state of a download was not stored: %s", failed->text);
}

/* The lock is held, so that rows are written in the order of their changes. */
static struct download_ask *download_keep(const struct download *download,
                                          const struct nimi_instance *instance,
                                          download_put_fn *done, void *ctx) {
    const struct download_row row = {.id = str_of(download->id, DOWNLOAD_ID_LEN),
                                     .connector = text_str(download->connector),
                                     .model = text_str(download->model),
                                     .owner = text_str(download->owner),
                                     .reason = str_from(download->reason),
                                     .message = str_from(download->message),
                                     .state = download->state,
                                     .received = download->received,
                                     .total = download->total,
                                     .created_ms = download->created_ms,
                                     .updated_ms = download->updated_ms,
                                     .retryable = download->retryable};
    struct store *store = instance->host->engine->store;
    return store ? download_put_start(store, instance->host->loop, &row, done, ctx) : NULL;
}

/* --- moving ------------------------------------------------------------------------------- */

static void download_on_mail(void *ctx);

/* The lock is held. */
static void download_wake(struct download *download) {
    if (download->mailed || !download->home) return;
    download->mailed = true;
    download->refs++;
    loop_post(download->home->host->loop, &download->mail, download_on_mail, download);
}

static void wake_queued(struct downloads *downloads) {
    LIST_EACH(&downloads->all, link) {
        if (download_of(link)->state != DOWNLOAD_QUEUED) continue;
        download_wake(download_of(link));
        return;
    }
}

static void on_wait(void *ctx) {
    struct download_wait *wait = ctx;
    if (!wait->left) wait->ended(&wait->how, wait->ctx);
    free(wait);
}

static void post_waits(struct download *download) {
    LIST_EACH(&download->waits, link) {
        struct download_wait *wait = CONTAINER_OF(link, struct download_wait, link);
        list_remove(link);
        wait->posted = true;
        wait->how = (struct download_ended){download->state, download->reason_code, ""};
        snprintf(wait->how.message, sizeof(wait->how.message), "%s", download->message);
        loop_post(wait->loop, &wait->mail, on_wait, wait);
    }
}

/* The only function that changes the state. The lock is held. */
static void download_move(struct download *download, enum download_state next) {
    struct downloads *downloads = download->table;
    enum download_state before = download->state;
    assert(states_allow(download_states, before, next));
    log_debug("download %s: %s -> %s", download->id, states_name(download_states, before).at,
              states_name(download_states, next).at);
    download->state = next;
    downloads->running += next == DOWNLOAD_RUNNING;
    downloads->running -= before == DOWNLOAD_RUNNING;
    download->speed = download->left_s = 0;
    download->updated_ms = clock_unix_ms();
    download_publish(download);
    if (download_is_done(next)) post_waits(download);
    if (before == DOWNLOAD_RUNNING) wake_queued(downloads);
}

static void set_text(char *ret, size_t room, struct str text) {
    size_t len = utf8_cut(text, room - 1);
    if (len) memcpy(ret, text.at, len);
    ret[len] = '\0';
}

static void set_failure(struct download *download, int reason, const char *name,
                        bool retryable) {
    download->reason_code = reason;
    download->retryable = retryable;
    set_text(download->reason, sizeof(download->reason), str_from(name));
}

static void set_message(struct download *download, struct str message) {
    set_text(download->message, sizeof(download->message), message);
}

/* --- the home ----------------------------------------------------------------------------- */

/* What the state says: run, or stop running. */
static void download_on_mail(void *ctx) {
    struct download *download = ctx;
    struct downloads *downloads = download->table;
    pthread_mutex_lock(&downloads->lock);
    download->mailed = false;
    bool starts = download->home && download->state == DOWNLOAD_QUEUED &&
                  downloads->running < DOWNLOADS_AT_ONCE;
    if (starts) {
        download_move(download, DOWNLOAD_RUNNING);
        download_keep(download, download->home, download_on_kept, NULL);
    }
    bool runs = download->state == DOWNLOAD_RUNNING;
    /* There may be room for another, and this one may have been paused before its turn. */
    if (downloads->running < DOWNLOADS_AT_ONCE) wake_queued(downloads);
    pthread_mutex_unlock(&downloads->lock);
    if (starts || !runs) download_carry_stop(download);
    if (starts) download_carry_start(download);
    pthread_mutex_lock(&downloads->lock);
    download_unref(download);
    pthread_mutex_unlock(&downloads->lock);
}

void download_report(struct download *download, const struct download_news *news) {
    pthread_mutex_lock(&download->table->lock);
    if (download->state == DOWNLOAD_RUNNING) {
        set_text(download->phase, sizeof(download->phase), news->phase);
        set_message(download, news->message);
        download->received = news->received;
        download->total = news->total;
        download->speed = news->speed;
        download->left_s = news->left_s;
        download->updated_ms = clock_unix_ms();
        download_publish(download);
    }
    pthread_mutex_unlock(&download->table->lock);
}

void download_finish(struct download *download, const struct download_end *end) {
    pthread_mutex_lock(&download->table->lock);
    if (download->state == DOWNLOAD_RUNNING) {
        set_message(download, end->message);
        set_failure(download, end->reason, end->reason ? reason_get(end->reason)->name : "",
                    end->retryable);
        download_move(download, end->state);
        if (download->home) download_keep(download, download->home, download_on_kept, NULL);
    }
    pthread_mutex_unlock(&download->table->lock);
}

/* In the store it is still running, or queued: the next process goes on. */
void downloads_leave(struct nimi_instance *instance) {
    struct downloads *downloads = instance->runtime->downloads;
    LIST_EACH(&instance->downloads, link)
    download_carry_stop(CONTAINER_OF(link, struct download, carried));
    pthread_mutex_lock(&downloads->lock);
    LIST_EACH(&downloads->all, link) {
        if (download_of(link)->home == instance) download_of(link)->home = NULL;
    }
    if (downloads->loader == instance) {
        download_forget(downloads->load);
        downloads->loader = NULL;
    }
    pthread_mutex_unlock(&downloads->lock);
}

/* --- making one --------------------------------------------------------------------------- */

static struct text joined(struct str head, struct str tail) {
    struct buf both;
    buf_init(&both, SIZE_MAX);
    buf_append(&both, head);
    buf_append_byte(&both, '/');
    buf_append(&both, tail);
    struct text text = text_copy(buf_str(&both));
    buf_done(&both);
    return text;
}

/* With the table's reference. The lock is held. */
static struct download *download_add(struct downloads *downloads, struct nimi_instance *home,
                                     const struct download_row *row) {
    struct download *download = MEM_NEW(struct download);
    download->refs = 1;
    download->table = downloads;
    download->home = home;
    memcpy(download->id, row->id.at, DOWNLOAD_ID_LEN);
    download->connector = text_copy(row->connector);
    download->model = text_copy(row->model);
    download->owner = text_copy(row->owner);
    download->asset = joined(STR("local"), row->model);
    download->local_asset = joined(row->connector, row->model);
    download->state = (enum download_state)row->state;
    download->received = row->received;
    download->total = row->total;
    download->created_ms = row->created_ms;
    download->updated_ms = row->updated_ms;
    set_text(download->phase, sizeof(download->phase), STR("download"));
    set_message(download, row->message);
    set_text(download->reason, sizeof(download->reason), row->reason);
    download->retryable = row->retryable;
    list_init(&download->waits);
    list_init(&download->carried);
    list_append(&downloads->all, &download->link);
    download_publish(download);
    return download;
}

/* The table ends its reference to the one that was done first, when there are too many. */
static void forget_oldest(struct downloads *downloads, const struct nimi_instance *instance) {
    struct download *oldest = NULL;
    size_t done = 0;
    LIST_EACH(&downloads->all, link) {
        struct download *download = download_of(link);
        if (!download_is_done(download->state)) continue;
        done++;
        if (!oldest || download->updated_ms < oldest->updated_ms) oldest = download;
    }
    if (done <= DOWNLOADS_DONE_MAX) return;
    struct store *store = instance->host->engine->store;
    if (store) download_drop(store, instance->host->loop, str_of(oldest->id, DOWNLOAD_ID_LEN));
    list_remove(&oldest->link);
    download_unref(oldest);
}

/* --- loading ------------------------------------------------------------------------------ */

static bool row_is_right(const struct download_row *row) {
    return row->id.len == DOWNLOAD_ID_LEN && row->state >= 0 &&
           row->state < DOWNLOAD_STATE_COUNT && row->received >= 0 && row->total >= 0;
}

static void on_rows(const struct download_row *rows, size_t count, const struct err *failed,
                    void *ctx) {
    struct downloads *downloads = ctx;
    pthread_mutex_lock(&downloads->lock);
    struct nimi_instance *home = downloads->loader;
    downloads->loader = NULL;
    if (failed) log_warning("downloads of before cannot be read: %s", failed->text);
    for (size_t i = 0; i < count; i++) {
        struct download_row row = rows[i];
        if (!row_is_right(&row)) continue;
        if (row.state == DOWNLOAD_RUNNING) row.state = DOWNLOAD_QUEUED;
        struct download *download = download_add(downloads, home, &row);
        if (download->state == DOWNLOAD_QUEUED) download_wake(download);
    }
    pthread_mutex_unlock(&downloads->lock);
}

void downloads_load(struct downloads *downloads, struct nimi_instance *instance) {
    struct store *store = instance->host->engine->store;
    pthread_mutex_lock(&downloads->lock);
    if (!downloads->loaded && store) {
        downloads->loaded = true;
        downloads->loader = instance;
        downloads->load = download_list_start(store, instance->host->loop, on_rows, downloads);
    }
    pthread_mutex_unlock(&downloads->lock);
}

/* --- beginning ---------------------------------------------------------------------------- */

static struct download *find_active(struct downloads *downloads, struct str local_asset,
                                    size_t *ret_active) {
    struct download *found = NULL;
    *ret_active = 0;
    LIST_EACH(&downloads->all, link) {
        struct download *download = download_of(link);
        if (download_is_done(download->state)) continue;
        ++*ret_active;
        if (str_equal(text_str(download->local_asset), local_asset)) found = download;
    }
    return found;
}

static void make_id(char ret[static DOWNLOAD_ID_LEN + 1]) {
    char ulid[ULID_LEN + 1];
    ulid_new(ulid);
    for (char *at = ulid; *at; at++) {
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at - 'A' + 'a');
    }
    snprintf(ret, DOWNLOAD_ID_LEN + 1, "transfer_%s", ulid);
}

static struct download *download_new(struct nimi_instance *instance,
                                     const struct nimi_connector *connector, struct str model) {
    struct downloads *downloads = instance->runtime->downloads;
    char id[DOWNLOAD_ID_LEN + 1];
    make_id(id);
    forget_oldest(downloads, instance);
    struct download *download =
        download_add(downloads, instance,
                     &(struct download_row){.id = str_of(id, DOWNLOAD_ID_LEN),
                                            .connector = connector->id,
                                            .model = model,
                                            .owner = connector->owner,
                                            .reason = STR_EMPTY,
                                            .message = STR("waits for its turn"),
                                            .state = DOWNLOAD_QUEUED,
                                            .created_ms = clock_unix_ms(),
                                            .updated_ms = clock_unix_ms()});
    download_keep(download, instance, download_on_kept, NULL);
    download_wake(download);
    return download;
}

bool downloads_begin(struct nimi_instance *instance, const struct nimi_connector *connector,
                     struct str model, download_ended_fn *ended, void *ctx,
                     struct download_wait **ret, struct fault *fault) {
    struct downloads *downloads = instance->runtime->downloads;
    struct text local_asset = joined(connector->id, model);
    size_t active;
    pthread_mutex_lock(&downloads->lock);
    struct download *download = find_active(downloads, text_str(local_asset), &active);
    if (!download && active < DOWNLOADS_MAX)
        download = download_new(instance, connector, model);
    if (download) {
        struct download_wait *wait = MEM_NEW(struct download_wait);
        *wait = (struct download_wait){
            .table = downloads, .loop = instance->host->loop, .ended = ended, .ctx = ctx};
        list_append(&download->waits, &wait->link);
        *ret = wait;
    }
    pthread_mutex_unlock(&downloads->lock);
    text_done(&local_asset);
    return download ||
           fault_set(fault, NIMI_AI_PROVIDER_RATE_LIMITED,
                     "%d transfers are not done yet; wait, or cancel one", DOWNLOADS_MAX);
}

void download_wait_leave(struct download_wait *wait) {
    if (!wait) return;
    pthread_mutex_lock(&wait->table->lock);
    bool posted = wait->posted;
    if (!posted) list_remove(&wait->link);
    pthread_mutex_unlock(&wait->table->lock);
    wait->left = true;
    if (!posted) free(wait);
}

/* --- orders ------------------------------------------------------------------------------- */

static bool is_seen(const struct download *download, struct str subject) {
    return !download->owner.len || str_equal(text_str(download->owner), subject);
}

static struct download *find_seen(struct downloads *downloads, struct str id,
                                  struct str subject) {
    LIST_EACH(&downloads->all, link) {
        struct download *download = download_of(link);
        if (str_equal(str_of(download->id, DOWNLOAD_ID_LEN), id) && is_seen(download, subject))
            return download;
    }
    return NULL;
}

static const struct {
    enum download_state next;
    struct str message;
    const char *reason; /* as upstream names it */
} orders[] = {
    [DOWNLOAD_PAUSE] = {DOWNLOAD_PAUSED, STR_INIT("paused"), ""},
    [DOWNLOAD_RESUME] = {DOWNLOAD_QUEUED, STR_INIT("waits for its turn"), ""},
    [DOWNLOAD_CANCEL] = {DOWNLOAD_CANCELLED, STR_INIT("cancelled"), "LOCAL_TRANSFER_CANCELLED"},
};

bool downloads_order(struct nimi_instance *instance, struct str id, struct str subject,
                     enum download_order order, download_shown_fn *shown, download_put_fn *kept,
                     void *ctx, struct download_ask **ret_ask, struct fault *fault) {
    struct downloads *downloads = instance->runtime->downloads;
    *ret_ask = NULL;
    pthread_mutex_lock(&downloads->lock);
    struct download *download = find_seen(downloads, id, subject);
    if (download && states_allow(download_states, download->state, orders[order].next)) {
        if (!download->home)
            download->home = instance; /* its loop left before it was resumed */
        set_message(download, orders[order].message);
        set_failure(download, 0, orders[order].reason, false);
        download_move(download, orders[order].next);
        *ret_ask = download_keep(download, instance, kept, ctx);
        download_wake(download);
    }
    if (download) shown(download, ctx);
    pthread_mutex_unlock(&downloads->lock);
    return download || fault_set_code(fault, NIMI_AI_PROVIDER_INTERNAL, ERR_NOT_FOUND,
                                      "there is no such transfer");
}

/* --- showing ------------------------------------------------------------------------------ */

static int by_change(const void *a, const void *b) {
    const struct download *one = *(struct download *const *)a,
                          *other = *(struct download *const *)b;
    if (one->updated_ms != other->updated_ms)
        return one->updated_ms < other->updated_ms ? 1 : -1;
    return strcmp(other->id, one->id);
}

uint64_t downloads_show(struct downloads *downloads, struct str subject,
                        download_shown_fn *shown, void *ctx) {
    struct download *seen[DOWNLOADS_MAX + DOWNLOADS_DONE_MAX + DOWNLOAD_ROWS_MAX] = {NULL};
    size_t count = 0;
    pthread_mutex_lock(&downloads->lock);
    LIST_EACH(&downloads->all, link) {
        if (is_seen(download_of(link), subject) && count < ARRAY_LEN(seen))
            seen[count++] = download_of(link);
    }
    if (count) qsort(seen, count, sizeof(struct download *), by_change);
    for (size_t i = 0; i < count; i++) shown(seen[i], ctx);
    uint64_t last = topic_last(downloads->topic);
    pthread_mutex_unlock(&downloads->lock);
    return last;
}
