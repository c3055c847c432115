/* sessions: the apps that registered with this process, and their sessions.
 *
 * A session is an id and a secret token; only the token's digest is kept. Both live in memory
 * only, as the protocol has it: after a restart an app registers again. Replicas tell each other of
 * them (facts.h). At a limit the least recently used entry makes room.
 *
 *     register ─▶ open ─▶ check ... refresh ... ─▶ revoke | expiry
 *
 * Memory   owns copies.
 * Threads  any; one lock.
 * Source   contracts/nimi.md 1.14, 3.2 K-DAEMON-003 "in-memory sessions are lost", 5.1.
 */
#ifndef WEIR_CONTRACT_NIMI_AUTH_SESSIONS_H
#define WEIR_CONTRACT_NIMI_AUTH_SESSIONS_H

#include "base/buf.h"
#include "contract/nimi/random_token.h"
#include "contract/nimi/ulid.h"

#define SESSIONS_MAX 10000
#define SESSIONS_TTL_S 3600 /* unless the request says how long */
#define SESSIONS_TTL_MAX_S 86400
#define SESSIONS_TOKEN_BYTES RANDOM_TOKEN_BYTES

struct sessions;

struct sessions *sessions_new(size_t max);
void sessions_free(struct sessions *sessions); /* NULL is fine */

/* An app of one installation. */
void sessions_register(struct sessions *sessions, struct str app, struct str app_instance);
bool sessions_registered(struct sessions *sessions, struct str app, struct str app_instance);
bool sessions_knows_app(struct sessions *sessions, struct str app); /* any instance of it */

struct session_opened {
    char id[ULID_LEN + 1];
    char token[SESSIONS_TOKEN_BYTES + 1];
    int64_t issued_ms, expires_ms; /* Unix */
};

/* A session that is not there yet: sessions_put() adds it.
 * ttl_s  0 or less: SESSIONS_TTL_S; at most SESSIONS_TTL_MAX_S */
void session_make(int32_t ttl_s, int64_t now_ms, struct session_opened *ret);

/* Add a session, or give the one of this id another token and time.
 * id       ULID_LEN
 * subject  of the token that came with the call; empty: none came, as the real SDK sends none
 *          here, and then any caller of the app may refresh and revoke the session */
void sessions_put(struct sessions *sessions, struct str id, struct str app, struct str subject,
                  const uint8_t digest[static RANDOM_TOKEN_DIGEST_BYTES], int64_t expires_ms);

enum session_verdict {
    SESSION_VALID,
    SESSION_UNKNOWN, /* also: of another app, or opened by another subject's token */
    SESSION_OVER,    /* it has expired */
};

/* The token of an app's session, as in the headers x-nimi-session-id and -token. */
enum session_verdict sessions_check(struct sessions *sessions, struct str id, struct str token,
                                    struct str app, int64_t now_ms);

/* Make a new token and more time for an app's session: once they are put, the old token ends. The
 * subject that it was opened for is appended to `of`. */
enum session_verdict sessions_renew(struct sessions *sessions, struct str id, struct str app,
                                    struct str subject, int32_t ttl_s, int64_t now_ms,
                                    struct session_opened *ret, struct buf *of);

/* Whether the app has this session, and this subject may end it. */
bool sessions_may_end(struct sessions *sessions, struct str id, struct str app,
                      struct str subject);
void sessions_end(struct sessions *sessions, struct str id); /* harmless if there is none */

/* From now on there is room for so many of each. */
void sessions_limit(struct sessions *sessions, size_t max);

#endif
