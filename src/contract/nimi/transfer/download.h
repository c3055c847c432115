/* download: downloads of models by local model servers, and what is known of each on every loop.
 *
 * A download belongs to the loop that began it, its home, where the request to the server runs
 * (carry.h). Other loops pause, resume and cancel it under the one lock of all downloads; the
 * home is woken by mail and does what the state says. A server keeps what it has, so a download
 * that is resumed goes on where it was. Changes of state are stored, and a new process queues
 * again what was queued or running.
 *
 *     install ─▶ queued ─▶ (DOWNLOADS_AT_ONCE) running ─▶ completed | failed | cancelled
 *                                  every change, and the numbers 4 times a second ─▶ topic
 *
 * Private to contract/nimi/transfer.
 *
 * Memory   counted; the table, the home and mail under way have one reference each. The table
 *          keeps DOWNLOADS_MAX that are not done, and the newest DOWNLOADS_DONE_MAX that are.
 * Threads  said at each member. The lock is taken before the topic's.
 * Source   contracts/nimi.md 1.13, 6.7.
 */
#ifndef WEIR_CONTRACT_NIMI_TRANSFER_DOWNLOAD_H
#define WEIR_CONTRACT_NIMI_TRANSFER_DOWNLOAD_H

#include "base/text.h"
#include "contract/nimi/fault.h"
#include "contract/nimi/nimi.h"
#include "contract/nimi/transfer/state.h"
#include "contract/nimi/ulid.h"
#include "store/download.h"

#define DOWNLOAD_ID_LEN (9 + ULID_LEN) /* "transfer_" and a ULID */
#define DOWNLOADS_AT_ONCE 2
#define DOWNLOADS_MAX 64
#define DOWNLOADS_DONE_MAX 64
#define DOWNLOAD_TEXT_BYTES 256

struct download_carry;

struct download {
    unsigned refs; /* under the lock, as all members up to `mail` */

    /* Constant. */
    struct downloads *table;
    struct nimi_instance *home; /* NULL: its loop has left; under the lock */
    char id[DOWNLOAD_ID_LEN + 1];
    struct text connector, model, owner;
    struct text asset, local_asset;
    int64_t created_ms; /* Unix time */

    struct list link; /* in the table, the oldest first */
    enum download_state state;
    char phase[16], message[DOWNLOAD_TEXT_BYTES], reason[48];
    int64_t received, total, speed, left_s;
    int64_t updated_ms;
    int reason_code; /* of a failure in this process */
    bool retryable;
    struct list waits; /* struct download_wait */
    bool mailed;
    struct mail mail;

    /* The home's. */
    struct list carried;          /* in the home's list while `carry` is set */
    struct download_carry *carry; /* NULL: no request runs */
};

/* --- the table ---------------------------------------------------------------------------- */

struct downloads;

struct downloads *downloads_new(void);
void downloads_free(struct downloads *downloads); /* no home may be left; NULL is fine */

struct topic *downloads_topic(struct downloads *downloads);

/* The store is open: read what an earlier process left. Only the first call does. */
void downloads_load(struct downloads *downloads, struct nimi_instance *instance);

/* The loop stops. What runs here is left to the next process. */
void downloads_leave(struct nimi_instance *instance);

/* --- any loop ----------------------------------------------------------------------------- */

/* Waits on a loop for the end of a download. */
struct download_wait;
struct download_ended {
    enum download_state state;
    int reason; /* of a failure */
    char message[DOWNLOAD_TEXT_BYTES];
};
typedef void download_ended_fn(const struct download_ended *ended, void *ctx);

/* Begin to download a model, or join the download of it that is not done, and wait for the end.
 * `ended` is called once, never before this returns. The wait is freed after that, or by
 * download_wait_leave().
 * errors  AI_PROVIDER_RATE_LIMITED too many are not done */
MUST_CHECK bool downloads_begin(struct nimi_instance *instance,
                                const struct nimi_connector *connector, struct str model,
                                download_ended_fn *ended, void *ctx, struct download_wait **ret,
                                struct fault *fault);
void download_wait_leave(struct download_wait *wait); /* NULL is fine */

enum download_order { DOWNLOAD_PAUSE, DOWNLOAD_RESUME, DOWNLOAD_CANCEL };

/* Let a download that `subject` may see become what was ordered. An order that does not fit its
 * state changes nothing. `shown` is called once, before this returns; then the change is being
 * stored, and *ret_ask (NULL: nothing was to be stored) calls `kept`.
 * errors  AI_PROVIDER_INTERNAL with NOT_FOUND: there is no such download */
typedef void download_shown_fn(const struct download *download, void *ctx);
MUST_CHECK bool downloads_order(struct nimi_instance *instance, struct str id,
                                struct str subject, enum download_order order,
                                download_shown_fn *shown, download_put_fn *kept, void *ctx,
                                struct download_ask **ret_ask, struct fault *fault);

/* Show all that `subject` may see, the one that changed last first. Returns the sequence of the
 * newest event that they include. */
uint64_t downloads_show(struct downloads *downloads, struct str subject,
                        download_shown_fn *shown, void *ctx);

/* As the protocol tells it; borrows the download's texts, and `room` for the times. */
#define DOWNLOAD_TIMES_BYTES 80
struct nimi_local_transfer_session_summary download_summary(const struct download *download,
                                                            char room[DOWNLOAD_TIMES_BYTES]);
struct nimi_local_transfer_progress_event
download_event(const struct nimi_local_transfer_session_summary *summary,
               enum download_state state);

/* --- for the home (carry.h) --------------------------------------------------------------- */

struct download_news {
    struct str phase, message;
    int64_t received, total, speed, left_s;
};

/* Note and publish how far it is. Nothing unless it runs. */
void download_report(struct download *download, const struct download_news *news);

struct download_end {
    enum download_state state; /* COMPLETED or FAILED */
    struct str message;
    int reason; /* of a failure */
    bool retryable;
};

/* The request is over. Nothing unless the download runs. */
void download_finish(struct download *download, const struct download_end *end);

#endif
