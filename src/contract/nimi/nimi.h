/* nimi: the services of nimi.runtime.v1, as far as they are served.
 *
 * One runtime a process: its state, the slots of its scheduler, the replies it remembers. One
 * desk a loop: it fills the services of that loop's listeners and knows their open calls.
 *
 *     open ─▶ eight interceptors (chain.c) ─▶ decode ─▶ the row's handler ─▶ reply | stream
 *
 * Memory   settings, host and runtime are borrowed; they outlive the desk.
 * Threads  the runtime: any. A desk: its loop.
 * Source   contracts/nimi.md 1.1, 3.2, 6; checks.md K2 to K4, K16, K20, K23 to K25.
 */
#ifndef WEIR_CONTRACT_NIMI_NIMI_H
#define WEIR_CONTRACT_NIMI_NIMI_H

#include "contract/nimi/lifecycle.h"
#include "contract/nimi/pruner.h"
#include "contract/nimi/replies.h"
#include "contract/nimi/scheduler.h"
#include "provider/media.h"
#include "route/route.h"
#include "rpc/rpc.h"
#include "run/model_call.h"

/* A way to a model, as the operator set it up. */
struct nimi_connector {
    struct str id;
    struct provider *provider; /* NULL: no text */
    struct media *media;       /* NULL: neither speech nor pictures, transcripts, vectors */
    struct str owner;          /* subject that may use it; empty: everybody */
    struct str endpoint;       /* its base URL, or empty: the vendor's own */
    struct str probe_url;      /* the same with the vendor's own; empty: nobody to probe */
    bool local;                /* serves the LOCAL route, by the names of its models */
    bool enabled;
    bool has_credential;      /* it needs none, or has it */
    const struct str *models; /* local: those that are installed; none: any name */
    size_t model_count;
};

struct nimi_settings {
    struct nimi_connector *connectors;
    size_t connector_count;
    bool allow_loopback; /* plain http to this machine */
    struct str version;  /* x-nimi-runtime-version */
    size_t message_max_bytes;
    uint64_t stall_ms; /* a peer that reads nothing is cut after this */
    uint64_t probe_ms; /* between two probes of a provider; 0: none */
    /* First word, silence, whole: 60 s and 30 s, and 120 s, 45 s, 20 s. */
    uint64_t keys_kept_ms; /* how long the key of a job stands for it */
    struct model_call_clocks text, speech, embedding;
};

/* --- the runtime -------------------------------------------------------------------------- */

struct nimi_runtime;

struct nimi_runtime *nimi_runtime_new(const struct scheduler_limits *limits);
void nimi_runtime_free(struct nimi_runtime *runtime); /* NULL is fine */

#define NIMI_WHY_BYTES 128

/* `why` is shown as the reason of this state, up to NIMI_WHY_BYTES. */
void nimi_runtime_move(struct nimi_runtime *runtime, enum lifecycle next, const char *why);
enum lifecycle nimi_runtime_state(struct nimi_runtime *runtime);
enum lifecycle nimi_runtime_why(struct nimi_runtime *runtime, char ret_why[NIMI_WHY_BYTES]);

#define NIMI_PROBED_MAX 32
#define NIMI_PROBED_NAME_BYTES 64

enum nimi_probe_state { NIMI_PROBE_UNKNOWN, NIMI_PROBE_HEALTHY, NIMI_PROBE_UNHEALTHY };

/* What is known of a provider (probe.h). Times are Unix milliseconds, 0: never. */
struct nimi_probed {
    char name[NIMI_PROBED_NAME_BYTES];
    enum nimi_probe_state state;
    char reason[160]; /* of an unhealthy one */
    int32_t failures; /* in a row */
    int64_t changed_ms, checked_ms;
};

struct str nimi_probe_state_name(enum nimi_probe_state state); /* "healthy" */

/* Publish what was found. With `all_down` a READY runtime becomes DEGRADED because of the first
 * of them, without it one that is so READY again. Whether it did. */
bool nimi_runtime_probed(struct nimi_runtime *runtime, const struct nimi_probed *probed,
                         size_t count, bool all_down);

/* What was published last. Returns how many. */
size_t nimi_runtime_providers(struct nimi_runtime *runtime,
                              struct nimi_probed ret[NIMI_PROBED_MAX]);

/* Where artifacts are fetched: the HTTP listener, as clients reach it. */
struct nimi_files {
    char host[256]; /* empty: it listens everywhere, so by the host that a caller came by */
    int port;       /* 0: nothing listens, or not on TCP */
    bool tls;
};

/* Before anything is served. */
void nimi_runtime_set_files(struct nimi_runtime *runtime, const struct nimi_files *files);
const struct nimi_files *nimi_runtime_files(const struct nimi_runtime *runtime);

struct scheduler *nimi_runtime_scheduler(struct nimi_runtime *runtime);
struct scheduler *nimi_runtime_slots(struct nimi_runtime *runtime); /* of uploads */
struct replies *nimi_runtime_replies(struct nimi_runtime *runtime);

/* --- a loop's share ----------------------------------------------------------------------- */

enum { NIMI_AI, NIMI_AUDIT, NIMI_SERVICES };

struct nimi_methods;

struct nimi_desk {
    const struct nimi_settings *settings;
    struct run_host *host;
    struct nimi_runtime *runtime;
    struct nimi_methods *methods;
    struct list calls; /* open ones */
    size_t call_count;
    struct list shared; /* calls that are made for all who wait for them: once.h */
    struct list jobs;   /* at work: job_work.h */
    size_t job_count;
    struct pruner pruner; /* of what was uploaded */
};

void nimi_desk_init(struct nimi_desk *desk, const struct nimi_settings *settings,
                    struct run_host *host, struct nimi_runtime *runtime);
void nimi_desk_done(struct nimi_desk *desk);

/* From the first on the store is open; after the second nothing but what is needed to end is
 * asked of it. */
void nimi_desk_serving(struct nimi_desk *desk);
void nimi_desk_stopping(struct nimi_desk *desk);

/* The process ends, and so do all runs: its jobs are left for the next one. */
void nimi_desk_leave(struct nimi_desk *desk);

/* Fill a service, or all NIMI_SERVICES; `desk` is borrowed. Again when the desk has other
 * settings. */
void nimi_service(struct nimi_desk *desk, size_t service, struct rpc_service *ret);
void nimi_services(struct nimi_desk *desk, struct rpc_service *ret);

/* What every answer of their listener carries: x-nimi-runtime-version. */
void nimi_site(const struct nimi_desk *desk, struct rpc_site *site);

/* Fill the table of the health endpoints, and of artifacts (fetch.h); `desk` is borrowed. */
void nimi_health_table(struct nimi_desk *desk, struct route_table *ret);

#endif
