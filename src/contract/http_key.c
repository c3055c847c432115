#include "contract/http_key.h"

#include "session/idempotency_claims.h"

static bool http_key_check(struct str key, struct err *e) {
    bool good = key.len > 0 && key.len <= CLAIM_KEY_MAX_BYTES;
    for (size_t i = 0; good && i < key.len; i++) good = key.at[i] >= ' ' && key.at[i] <= '~';
    return good ||
           err_set(e, ERR_MALFORMED, "an idempotency key is 1 to %d printable ASCII characters",
                   CLAIM_KEY_MAX_BYTES);
}

bool http_key_take(struct route_call *call, struct arena *arena, struct str *ret,
                   struct err *e) {
    struct str ours = lent_read(route_header(call, STR("x-idempotency-key")));
    struct str plain = lent_read(route_header(call, STR("idempotency-key")));
    if (ours.at && plain.at && !str_equal(ours, plain)) {
        return err_set(e, ERR_MALFORMED,
                       "X-Idempotency-Key and Idempotency-Key differ; send one of them");
    }
    struct str key = ours.at ? ours : plain;
    if (key.at && !http_key_check(key, e)) return false;
    *ret = STR_EMPTY;
    return !key.at || arena_str(arena, key, ret) ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "the request is larger than a call may hold");
}
