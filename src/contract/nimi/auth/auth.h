/* auth: apps introduce themselves, and open sessions.
 *
 * Memory   borrows the instance.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.14, 5.1 "x-nimi-session-id".
 */
#ifndef WEIR_CONTRACT_NIMI_AUTH_AUTH_H
#define WEIR_CONTRACT_NIMI_AUTH_AUTH_H

#include "contract/nimi/call.h"

/* Keep what the metadata says of a session, for rows that take one: x-nimi-session-id and -token. */
void auth_take_session(struct nimi_call *call);

/* Check the session that the caller names, if it names one.
 * errors  APP_NOT_REGISTERED there is no such session of the app; SESSION_EXPIRED */
MUST_CHECK bool auth_check_session(struct nimi_call *call, struct fault *fault);

nimi_begin_fn auth_register_app, auth_open_session, auth_refresh_session, auth_revoke_session;

#endif
