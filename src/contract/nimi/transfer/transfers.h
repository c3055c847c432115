/* transfers: the downloads of models, as RuntimeLocalService shows them.
 *
 *     InstallVerifiedAsset ─▶ a download of a model that a local connector lists; answers at its
 *                             end
 *     ListLocalTransfers, WatchLocalTransfers, Pause-, Resume-, CancelLocalTransfer
 *
 * The verified assets of this runtime are the models that its operator listed for local
 * connectors (connectors.models): no caller can make a server download something else.
 *
 * Memory   of the call.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.1, 1.13, 6.7.
 */
#ifndef WEIR_CONTRACT_NIMI_TRANSFER_TRANSFERS_H
#define WEIR_CONTRACT_NIMI_TRANSFER_TRANSFERS_H

#include "contract/nimi/call.h"

nimi_begin_fn transfers_install, transfers_list, transfers_watch;
nimi_begin_fn transfers_pause, transfers_resume, transfers_cancel;

#endif
