/* webhook: an address, named by a client, that is notified of what becomes of a task.
 *
 *     1.0  {"taskId":"7","id":"mine","url":"https://...","token":"...",
 *           "authentication":{"scheme":"Bearer","credentials":"..."}}
 *     0.3  {"taskId":"7","pushNotificationConfig":{... "authentication":{"schemes":["Bearer"], ...}}}
 *
 * What a client reads back has no credentials: they are for the webhook alone.
 *
 * Memory   read: texts lie in the caller's arena.
 * Threads  none; values only.
 * Source   A2A 1.0 4.3; A2A 0.3 6.8 to 6.10.
 */
#ifndef WEIR_CONTRACT_A2A_WEBHOOK_H
#define WEIR_CONTRACT_A2A_WEBHOOK_H

#include "base/arena.h"
#include "base/id.h"
#include "contract/a2a/dialect.h"
#include "wire/json.h"

#define WEBHOOK_URL_MAX_BYTES 2048
#define WEBHOOK_SECRET_MAX_BYTES 4096 /* of the token, and of the credentials */

struct webhook {
    struct str id;  /* unique in its task; the task's own id unless the client names one */
    struct str url; /* http: or https: */
    struct str token;
    struct str scheme, credentials; /* of Authorization; or empty */
};

/* Read a configuration, in 0.3 without what is around it.
 * errors  ERR_INVALID_ARGUMENT with the place; ERR_RESOURCE_EXHAUSTED the arena's limit */
MUST_CHECK bool webhook_read(enum a2a_dialect dialect, struct json object, struct arena *arena,
                             struct webhook *ret, struct err *e);

/* One object, as the dialect has it. */
void webhook_write(const struct webhook *webhook, uint64_t run, enum a2a_dialect dialect,
                   struct json_writer *w);

/* --- as it is kept ------------------------------------------------------------------------ */

struct webhook_record {
    struct webhook webhook;
    struct str workspace;
    enum a2a_dialect dialect; /* A2A_0_3 or A2A_1_0 */
};

void webhook_record_write(const struct webhook_record *record, struct buf *out);

/* How the records of a workspace begin, and no others. */
void webhook_record_write_workspace(struct str workspace, struct buf *out);

/* False: it is not one of ours. */
MUST_CHECK bool webhook_record_read(struct str bytes, struct arena *arena,
                                    struct webhook_record *ret);

/* Its key, "7-mine". The keys of a task are those from "7-" and below "7.". */
#define WEBHOOK_KEY_MAX_BYTES (ID_MAX_BYTES + 24)
void webhook_key_begin(uint64_t run, struct str id, struct buf *ret); /* ends with buf_done() */
MUST_CHECK bool webhook_key_read(struct str key, uint64_t *ret_run);

/* What it was sent, "12", and whether that is all, "12 over". Anything else was never written: 0. */
uint64_t webhook_sent_read(struct str bytes, bool *ret_over);

#endif
