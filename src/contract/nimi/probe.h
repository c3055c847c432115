/* probe: whether the providers behind the connectors can be reached at all.
 *
 * Every few seconds each is asked for /healthz, and where that is not found for /v1/models,
 * without a key: who answers, be it with "who are you", is reachable.
 *
 *     unknown ─▶ healthy ⇄ unhealthy          unknown ─▶ unhealthy
 *
 * When all of them are unhealthy the runtime is DEGRADED; when one is back it is READY.
 *
 * Memory   a prober owns copies; the runtime and the pool are borrowed.
 * Threads  a prober: its loop. What it found is published in the runtime, for any.
 * Source   contracts/nimi.md 3.2, 3.8.
 */
#ifndef WEIR_CONTRACT_NIMI_PROBE_H
#define WEIR_CONTRACT_NIMI_PROBE_H

#include "client/http.h"
#include "contract/nimi/nimi.h"

#define PROBE_TOTAL_MS 30000

/* --- what an answer means ----------------------------------------------------------------- */

enum probe_verdict { PROBE_REACHED, PROBE_NEXT, PROBE_MISSED };

/* An HTTP status: reached, not here (ask the next path), or not well. */
enum probe_verdict probe_judge(unsigned status);

/* Append the URL of the probe's path number `index` under a provider's base URL, whose version
 * ("/v1") is left out. False: there is no such path. */
bool probe_url(struct str base_url, size_t index, struct buf *out);

/* Take up a probe's outcome at Unix time `now_ms`; `reason` is empty for a good one. Whether
 * the state is another one now. */
bool probed_note(struct nimi_probed *probed, bool healthy, const char *reason, int64_t now_ms);

/* --- asking again and again --------------------------------------------------------------- */

struct prober;

struct prober_options {
    struct loop *loop;
    struct http_pool *pool;
    struct nimi_runtime *runtime;
    const struct nimi_settings *settings;
    /* The runtime became DEGRADED, or READY again. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* The first probes go out at once. */
struct prober *prober_start(const struct prober_options *options);

/* Other connectors from now on; what is known of those that stay is kept. */
void prober_use(struct prober *prober, const struct nimi_settings *settings);

/* No probe is out afterwards. NULL is fine. */
void prober_free(struct prober *prober);

#endif
