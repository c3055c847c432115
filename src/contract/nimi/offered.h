/* offered: what a connector offers, and whether it can be asked now.
 *
 * Private to contract/nimi.
 *
 * Memory   texts are constant or the connector's.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_OFFERED_H
#define WEIR_CONTRACT_NIMI_OFFERED_H

#include "contract/nimi/call.h"
#include "contract/nimi/reason.h"

#define OFFERED_MAX 8 /* capabilities of one model */

/* One capability, in the protocol's words. */
struct offered {
    struct str name;   /* "text.generate" */
    struct str engine; /* "llama", "speech", "media" */
    int kind;          /* LocalAssetKind */
};

/* What `model` of this connector can do; returns how many there are, at most OFFERED_MAX. */
size_t offered_by(const struct nimi_connector *connector, struct str model,
                  const struct offered *ret[OFFERED_MAX]);

/* Of the probes, read once for a reply. */
struct offered_health {
    struct nimi_probed probed[NIMI_PROBED_MAX];
    size_t count;
};

void offered_look(const struct nimi_call *call, struct offered_health *ret);

/* 0: it can be asked. Otherwise the reason why not. A connector that is not probed counts as
 * reachable. */
int offered_trouble(const struct nimi_connector *connector,
                    const struct offered_health *health);

/* The connector of this id, whoever may see it; NULL: there is none. */
const struct nimi_connector *offered_find(const struct nimi_settings *settings, struct str id);

/* Whether its operator named this model. */
bool offered_lists(const struct nimi_connector *connector, struct str model);

/* Whether this subject may see the connector. */
static inline bool offered_to(const struct nimi_connector *connector, struct str subject) {
    return connector->owner.len == 0 || str_equal(connector->owner, subject);
}

/* The next model of a local connector that everyone may use, over all connectors. Start with
 * {0, 0}; false: there is none. */
struct offered_walk {
    size_t connector, model;
};

bool offered_next_local(const struct nimi_settings *settings, struct offered_walk *walk,
                        const struct nimi_connector **ret_connector, struct str *ret_model);

#endif
