/* attached_binding: a scoped app binding that a request of another service shows.
 *
 * Memory   none.
 * Threads  the call's loop.
 * Source   contracts/nimi.md 1.2 ScopedRuntimeBindingAttachment.
 */
#ifndef WEIR_CONTRACT_NIMI_ATTACHED_BINDING_H
#define WEIR_CONTRACT_NIMI_ATTACHED_BINDING_H

#include "contract/nimi/call.h"

/* Whether the binding is in force for this app; none is fine. One that is shown for another
 * part of the app than it was made for is revoked.
 * errors  APP_GRANT_INVALID */
MUST_CHECK bool
attached_binding_ok(const struct nimi_call *call, struct str app,
                    const struct nimi_scoped_runtime_binding_attachment *attached,
                    struct fault *fault);

#endif
