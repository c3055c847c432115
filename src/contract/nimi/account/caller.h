/* caller: which callers may have to do with the account, and calls that wait for it.
 *
 * Private to contract/nimi/account.
 *
 * Memory   of the call.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_CALLER_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_CALLER_H

#include "contract/nimi/account/account.h"
#include "contract/nimi/call.h"

#define ACCOUNT_DONE NIMI_ACCOUNT_REASON_CODE_ACTION_EXECUTED

enum account_wish { ACCOUNT_WISH_ANY, ACCOUNT_WISH_TOKEN };

/* Why this caller is refused, or ACCOUNT_DONE. False: the call has ended, because its headers
 * name another app. */
MUST_CHECK bool account_admit(struct nimi_call *call, const struct nimi_account_caller *caller,
                              enum account_wish wish, int *ret_reason);

struct nimi_account *account_of(const struct nimi_call *call);
struct account_now account_now_of(const struct nimi_call *call);

/* After a change: start the timer for what is due next. */
void account_arm(struct nimi_instance *instance);

/* Read the store; account_restore() follows. Without a store it has followed already, and NULL
 * is returned. `done` frees what waits. */
struct kept_ask *account_read(struct nimi_instance *instance, kept_done_fn *done, void *ctx);

/* What a kept_done_fn of account_read() does first. */
void account_take_records(struct nimi_instance *instance, const struct kept_record *records,
                          size_t count, const struct err *failed);

#endif
