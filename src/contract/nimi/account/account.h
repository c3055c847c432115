/* account: who is logged in on this machine, and what has happened to that.
 *
 * A runtime has one account. It is the subject of a token that one of the configured issuers
 * signed; a login presents such a token, and the account is logged in until the token expires.
 * The token is kept in memory only, for the session that brought it. On disk stand the subject,
 * the issuer and the expiry, the newest events, and which bindings there are (custody.c).
 *
 *     account_begin_login ─▶ account_take_proof ─▶ account_begin ─▶ disk ─▶ account_end
 *                     refresh, logout, switch ─────────▲
 *
 * Each change is an event with the next number. All subscribers share one topic; the label of
 * an event says whose it is. Numbers begin again above all earlier ones with each process,
 * because their upper half is the store's epoch.
 *
 * A change that could not be written makes the account UNAVAILABLE until the store was read
 * again.
 *
 * Memory   owns everything; texts are copied. What is returned is a copy, or needs the lock.
 * Threads  any; one lock. Functions take it themselves unless they say otherwise.
 * Source   contracts/nimi.md 1.10, 6.7; section 9 numbers 11, 12, 35; checks.md K35, M3, M4.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_ACCOUNT_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_ACCOUNT_H

#include "base/id.h"
#include "contract/nimi/account/bindings.h"
#include "contract/nimi/random_token.h"
#include "contract/nimi/ulid.h"
#include "loop/loop.h"
#include "proto/nimi.pb.h"
#include "store/kept.h"
#include "topic/topic.h"

#define ACCOUNT_EVENTS_KEPT 128
#define ACCOUNT_EVENTS_MAX_BYTES (2 * MIB) /* 128 of the largest fit */
#define ACCOUNT_ATTEMPTS_MAX 64
#define ACCOUNT_LOGIN_S 600 /* unless the request says how long */
#define ACCOUNT_LOGIN_MAX_S 3600
#define ACCOUNT_RETRY_MS 1000 /* until the store is read again */

struct nimi_account;

struct nimi_account *nimi_account_new(void);
void nimi_account_free(struct nimi_account *account); /* NULL is fine */

/* When, on which loop, and for whom. Deadlines count in the loop's time; the other is shown to
 * callers. */
struct account_now {
    struct loop *loop;
    uint64_t ms;
    int64_t unix_ms;
    struct str by; /* the subject of the caller's token; empty: none */
};

struct account_now account_now(struct loop *loop, struct str by);

/* An enum nimi_account_reason_code, as this protocol's own reason code. */
int account_common_reason(int reason);

/* --- what is on disk ---------------------------------------------------------------------- */

/* The account stores with this; NULL: nothing survives. Before account_restore(). */
void account_use_store(struct nimi_account *account, struct store *store);

/* Whether the store must be read. */
bool account_wants_read(struct nimi_account *account);

/* Whether an issuer of stored accounts is still trusted. */
typedef bool account_trusts_fn(struct str issuer, const void *ctx);

/* Take what was read: all records of the account. Harmless if it was done meanwhile.
 * trusts  NULL: there are no issuers, and no one is logged in
 * failed  NULL: it was read */
void account_restore(struct nimi_account *account, const struct kept_record *records,
                     size_t count, const struct err *failed, account_trusts_fn *trusts,
                     const void *ctx, const struct account_now *now);

/* --- time --------------------------------------------------------------------------------- */

/* Let everything expire that has. */
void account_tick(struct nimi_account *account, const struct account_now *now);

/* When to call it next, in the loop's time; UINT64_MAX: never. */
uint64_t account_due_ms(struct nimi_account *account);

/* --- state -------------------------------------------------------------------------------- */

struct account_status {
    enum account_state state;
    int reason;
    char subject[ID_MAX_BYTES + 1]; /* empty: no one is logged in */
};

void account_status(struct nimi_account *account, struct account_status *ret);

/* --- login -------------------------------------------------------------------------------- */

struct account_attempt {
    char id[ULID_LEN + 1];
    char state[RANDOM_TOKEN_BYTES + 1], nonce[RANDOM_TOKEN_BYTES + 1];
    int64_t expires_unix_ms;
};

#define ACCOUNT_FULL (-1) /* too many of them */

/* Begin a login for an app's instance, or repeat its pending one. The functions below return
 * ACTION_EXECUTED or why not; this one and account_bind() also ACCOUNT_FULL. */
int account_begin_login(struct nimi_account *account, struct str app, struct str app_instance,
                        int32_t ttl_s, const struct account_now *now,
                        struct account_attempt *ret);

/* Use an attempt. It is used once, unless account_return_proof() gives it back. */
struct account_proof {
    struct str attempt, app, app_instance, state, nonce;
};

int account_take_proof(struct nimi_account *account, const struct account_proof *proof,
                       const struct account_now *now);
void account_return_proof(struct nimi_account *account, struct str attempt);

/* The attempt that was taken has failed. */
void account_fail_proof(struct nimi_account *account, struct str attempt, int reason,
                        const struct account_now *now);

/* --- changes that wait for the disk ------------------------------------------------------- */

enum account_act { ACCOUNT_LOGIN, ACCOUNT_REFRESH, ACCOUNT_LOGOUT, ACCOUNT_SWITCH };

/* What a token proved. */
struct account_material {
    struct str subject, issuer, scope, token;
    struct str session; /* that brought it; empty: none, and nobody gets the token back */
    int64_t expires_unix_ms;
};

int account_begin(struct nimi_account *account, enum account_act act,
                  const struct account_material *material, const struct account_now *now);

/* Write it. Without a store: returns NULL, and account_end() may follow at once. */
struct kept_ask *account_write(struct nimi_account *account, enum account_act act,
                               const struct account_material *material,
                               const struct account_now *now, kept_done_fn *done, void *ctx);

/* It is on disk, or failed. */
int account_end(struct nimi_account *account, enum account_act act,
                const struct account_material *material, const struct err *failed,
                const struct account_now *now);

/* Give the session that brought the token the token back. *ret is a copy: end it with
 * text_wipe(). */
int account_token(struct nimi_account *account, struct str session, const struct str *scopes,
                  size_t scope_count, const struct account_now *now, struct text *ret,
                  int64_t *ret_expires_unix_ms);

/* --- bindings ----------------------------------------------------------------------------- */

/* Bind a relation for the app and instance that it names. *ret is a copy of the relation as it
 * is now, encoded; end it with buf_done(). */
int account_bind(struct nimi_account *account,
                 const struct nimi_scoped_app_binding_relation *relation, int32_t ttl_s,
                 const struct account_now *now, struct buf *ret);

/* Another app's binding is as unknown as one that never was. */
int account_unbind(struct nimi_account *account, struct str id, struct str app,
                   struct str app_instance, int reason, const struct account_now *now,
                   struct buf *ret);

/* Whether a binding that was attached to a request holds. One that another app, or another part
 * of the app, shows is revoked. */
int account_check_binding(struct nimi_account *account,
                          const struct nimi_scoped_runtime_binding_attachment *attached,
                          const struct account_now *now);

/* --- subscribers -------------------------------------------------------------------------- */

/* Hold everything still: between the snapshot and the first event nothing is published. */
void account_lock(struct nimi_account *account);
void account_unlock(struct nimi_account *account);

/* The rest needs the lock. The topic exists once the store was read. */
struct topic *account_topic(struct nimi_account *account);

/* Whether someone other than the caller of this token is logged in. */
bool account_is_foreign(const struct nimi_account *account, struct str by);

/* The state as an event, whose texts are the account's. */
struct nimi_account_session_event account_snapshot(const struct nimi_account *account,
                                                   struct nimi_account_projection *projection);

/* A number of its own, above all others. */
uint64_t account_take_number(struct nimi_account *account);

/* Who reads: events of other apps' bindings, and with a token of other subjects, are not for
 * it. */
struct account_filter {
    struct str app, app_instance;
    struct str subject; /* of the token; empty: none */
};

bool account_wants(struct str label, const void *filter);

#endif
