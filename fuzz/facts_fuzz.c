/* Whatever stands in a fact of the store: it is applied or refused, twice with the same outcome, and
 * what it made can be found and is within the limits. */
#include "contract/nimi/auth/sessions.h"
#include "contract/nimi/facts.h"
#include "contract/nimi/grant/grants.h"

#include <assert.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str bytes = str_of((const char *)data, size);
    struct sessions *sessions = sessions_new(4);
    struct grants *grants = grants_new(4, 64 * KIB);
    struct facts *facts = facts_new(sessions, grants);
    struct err e;
    bool first = facts_apply(facts, bytes, &e), again = facts_apply(facts, bytes, &e);
    assert(first == again);
    grants_lock(grants);
    const struct grant *newest = grants_newest(grants);
    if (newest) {
        assert(first && !newest->revoked && !newest->parent);
        assert(grants_get(grants, str_of(newest->id, ULID_LEN)) == newest);
        assert(!grants_before(grants, newest));
    }
    grants_unlock(grants);
    facts_free(facts);
    grants_free(grants);
    sessions_free(sessions);
    return 0;
}
