/* auth: apps introduce themselves, and open sessions.
 *
 * Memory   borrows the instance.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.14, 5.1 "x-nimi-session-id".
 */
#ifndef WEIR_CONTRACT_NIMI_AUTH_AUTH_H
#define WEIR_CONTRACT_NIMI_AUTH_AUTH_H

#include "contract/nimi/call.h"

nimi_begin_fn auth_register_app, auth_open_session, auth_refresh_session, auth_revoke_session;

#endif
