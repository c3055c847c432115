/* probe: check whether the providers of the connectors can be reached.
 *
 * Every few seconds each provider is asked for /healthz and, if that is not found, for
 * /v1/models. No key is sent: a provider that answers 401 is reachable.
 *
 *     unknown ─▶ healthy ⇄ unhealthy          unknown ─▶ unhealthy
 *
 * When all of them are unhealthy the runtime is DEGRADED. When one is back it is READY again.
 *
 * Memory   a prober owns copies; the runtime and the pool are borrowed.
 * Threads  a prober belongs to its loop. Its results are published in the runtime for any
 *          thread.
 * Source   contracts/nimi.md 3.2, 3.8. */
#ifndef WEIR_CONTRACT_NIMI_HEALTH_PROBE_H
#define WEIR_CONTRACT_NIMI_HEALTH_PROBE_H

#include "client/http.h"
#include "contract/nimi/nimi.h"

#define PROBE_TOTAL_MS 30000

/* --- judging a response ------------------------------------------------------------------- */

enum probe_verdict { PROBE_REACHED, PROBE_NEXT, PROBE_MISSED };

/* Judge an HTTP status: reachable, not found here (ask the next path), or unhealthy. */
enum probe_verdict probe_judge(unsigned status);

/* Append the URL of the probe path with this index, under a provider's base URL without its
 * version ("/v1"). False: there is no such path. */
bool probe_url(struct str base_url, size_t index, struct buf *out);

/* Record a probe's outcome at Unix time `now_ms`; `reason` is empty for a healthy one. Returns
 * whether the state changed. */
bool probed_note(struct nimi_probed *probed, bool healthy, const char *reason, int64_t now_ms);

/* --- the prober --------------------------------------------------------------------------- */

struct prober;

struct prober_options {
    struct loop *loop;
    struct http_pool *pool;
    struct nimi_runtime *runtime;
    const struct nimi_settings *settings;
    /* A provider became healthy or unhealthy; may be NULL. */
    void (*verdict)(const struct nimi_probed *probed, void *ctx);
    /* The runtime became DEGRADED, or READY again. */
    void (*changed)(void *ctx);
    void *ctx;
};

/* The first probes are sent at once. */
struct prober *prober_start(const struct prober_options *options);

/* Use other connectors from now on. The state of connectors that stay is kept. */
void prober_use(struct prober *prober, const struct nimi_settings *settings);

/* Cancels open probes. NULL is fine. */
void prober_free(struct prober *prober);

#endif
