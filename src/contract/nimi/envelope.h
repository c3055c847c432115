/* envelope: the metadata that every request of this protocol carries.
 *
 * Four headers are always required, the others only where a call needs them. Each is at most
 * 4 KiB.
 *
 * Memory   the call keeps the texts.
 * Threads  the call's loop, inside open().
 * Source   contracts/nimi.md 5.1; section 9 numbers 14 to 17.
 */
#ifndef WEIR_CONTRACT_NIMI_ENVELOPE_H
#define WEIR_CONTRACT_NIMI_ENVELOPE_H

#include "contract/nimi/fault.h"

#define ENVELOPE_VALUE_MAX_BYTES 4096

struct envelope {
    struct str protocol_version, participant_version, participant_id, domain;
    struct str idempotency_key, caller_kind, caller_id, app_id, trace_id, surface_id;
    struct str key_source, provider_type, provider_endpoint, provider_api_key;
};

/* Whether the caller brought a credential of its own for this request. */
static inline bool envelope_has_inline(const struct envelope *envelope) {
    return envelope->provider_type.len || envelope->provider_endpoint.len ||
           envelope->provider_api_key.len;
}

enum envelope_form {
    ENVELOPE_WHOLE, /* the four basic headers are required */
    ENVELOPE_BARE,  /* UploadArtifact: the real SDK sends none */
};

/* Read the headers and check them.
 * errors  PROTOCOL_ENVELOPE_INVALID, with the header's name */
MUST_CHECK bool envelope_read(struct rpc_call *call, enum envelope_form form,
                              struct envelope *ret, struct fault *fault);

#endif
