/* calls: RuntimeAccountService.
 *
 * A caller is an app's instance in a mode that may have an account. A refused one is answered
 * OK with a reason, also by the subscription: one event, then OK (K35).
 *
 * Memory   of the call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.10, 6.7; section 9 numbers 12, 35.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_CALLS_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_CALLS_H

#include "contract/nimi/call.h"

nimi_begin_fn account_get_status, account_subscribe, account_login, account_complete_login,
    account_get_token, account_refresh, account_logout, account_switch, account_issue_binding,
    account_revoke_binding;

#endif
