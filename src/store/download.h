/* download: the downloads of models that a local model server makes for us, across restarts.
 *
 * A row says what is downloaded and how it stands. The bytes are the server's, which goes on
 * where it was. Only changes of state are written, so a row's numbers may be old.
 *
 * Memory   requests are copied. An answer is borrowed during the callback.
 * Threads  requests and answers are on the caller's loop; the work is on the store's thread.
 */
#ifndef WEIR_STORE_DOWNLOAD_H
#define WEIR_STORE_DOWNLOAD_H

#include "store/store.h"

#define DOWNLOAD_ROWS_MAX 256 /* the most that are read */

struct download_row {
    struct str id, connector, model, owner;
    struct str reason, message; /* of a failure; may be empty */
    int64_t state;              /* the caller's numbers */
    int64_t received, total;
    int64_t created_ms, updated_ms; /* Unix time */
    bool retryable;
};

typedef void download_put_fn(const struct err *failed, void *ctx);
typedef void download_rows_fn(const struct download_row *rows, size_t count,
                              const struct err *failed, void *ctx);

/* A request on its way; freed after its callback was called. */
struct download_ask;

/* Write a row, over an earlier one with its id. The callback is called once, on `loop`, never
 * before this returns. Rows are written in the order of these calls. */
struct download_ask *download_put_start(struct store *store, struct loop *loop,
                                        const struct download_row *row, download_put_fn *done,
                                        void *ctx);

/* Forget a row. There is no answer. */
void download_drop(struct store *store, struct loop *loop, struct str id);

/* Read all rows, the oldest first. */
struct download_ask *download_list_start(struct store *store, struct loop *loop,
                                         download_rows_fn *done, void *ctx);

/* Stop waiting: the callback will not be called. The request is still carried out. NULL is
 * fine. */
void download_forget(struct download_ask *ask);

#endif
