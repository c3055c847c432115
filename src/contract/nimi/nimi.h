/* nimi: the services of nimi.runtime.v1 that are implemented.
 *
 * A process has one runtime: its state, the slots of its scheduler and the replies it keeps. A
 * loop has one instance, which fills the services of that loop's listeners and lists their open
 * calls.
 *
 *     open ─▶ eight interceptors (call.c) ─▶ decode ─▶ the row's handler ─▶ reply | stream
 *
 * Memory   settings, host and runtime are borrowed; they outlive the instance.
 * Threads  the runtime: any. An instance: its loop.
 * Source   contracts/nimi.md 1.1, 3.2, 6; checks.md K2 to K4, K16, K20, K23 to K25.
 */
#ifndef WEIR_CONTRACT_NIMI_NIMI_H
#define WEIR_CONTRACT_NIMI_NIMI_H

#include "contract/nimi/account/share.h"
#include "contract/nimi/identity/issuers.h"
#include "contract/nimi/identity/key_fetch.h"
#include "contract/nimi/lifecycle.h"
#include "contract/nimi/log_topic.h"
#include "contract/nimi/memory/bank_pruner.h"
#include "contract/nimi/memory/embedder.h"
#include "contract/nimi/replies.h"
#include "contract/nimi/scheduler.h"
#include "contract/nimi/upload/pruner.h"
#include "job/model_call.h"
#include "provider/media.h"
#include "route/route.h"
#include "rpc/rpc.h"
#include "topic/topics.h"

#include <pthread.h>

/* A connection to models, as configured by the operator. */
struct nimi_connector {
    struct str id;
    struct str vendor;         /* the dialect of its provider: "openai" */
    struct provider *provider; /* NULL: no text generation */
    struct media *media;       /* NULL: no speech, pictures, transcripts or embeddings */
    struct live_model *live;   /* NULL: no model of it is talked to live (provider/live.h) */
    struct str owner;          /* the subject that may use it; empty: everyone */
    struct str endpoint;       /* its base URL; empty: the vendor's own */
    struct str probe_url;      /* the base URL in either case; empty: nothing to probe */
    bool local;                /* serves the LOCAL route; callers name only the model */
    bool enabled;
    bool has_credential;      /* it has its key, or needs none */
    const struct str *models; /* local: the installed models; none: any name */
    size_t model_count;
    /* The models listed for callers: `models`, or else the ones that agents use of the same
     * provider. */
    const struct str *offered;
    size_t offered_count;
};

struct nimi_settings {
    struct nimi_connector *connectors;
    size_t connector_count;
    struct arena *arena;     /* of what was worked out; NULL: nothing */
    struct issuers *issuers; /* NULL: callers are anonymous, and no token is accepted */
    bool require_token;
    bool allow_loopback; /* plain http to this machine */
    struct str version;  /* x-nimi-runtime-version */
    size_t message_max_bytes;
    uint64_t stall_ms;            /* a peer that reads nothing for this long is cut */
    uint64_t shutdown_ms;         /* from the signal to the end of the process */
    uint64_t probe_ms;            /* between two probes of a provider; 0: none */
    uint64_t transfer_silence_ms; /* a server that downloads may say nothing so long; 0: ever */
    uint64_t realtime_idle_ms;    /* without a turn, a realtime session ends; 0: never */
    uint64_t keys_kept_ms;        /* how long a job's idempotency key leads to it */
    /* First word 60 s, silence 30 s; in all 120 s (text), 45 s (speech), 20 s (embedding). */
    struct model_call_clocks text, speech, embedding;
};

/* --- the runtime -------------------------------------------------------------------------- */

#define NIMI_WHY_BYTES 128
#define NIMI_PROBED_MAX 32
#define NIMI_PROBED_NAME_BYTES 64

enum nimi_probe_state { NIMI_PROBE_UNKNOWN, NIMI_PROBE_HEALTHY, NIMI_PROBE_UNHEALTHY };

/* The probed state of a provider (probe.h). Times are Unix milliseconds, 0: never. */
struct nimi_probed {
    char name[NIMI_PROBED_NAME_BYTES];
    enum nimi_probe_state state;
    char reason[160]; /* of an unhealthy one */
    int32_t failures; /* in a row */
    int64_t changed_ms, checked_ms;
};

/* Where artifacts are fetched: the HTTP listener, as clients reach it. */
struct nimi_files {
    char host[256]; /* empty: it listens on every address; use the host the caller used */
    int port;       /* 0: nothing listens, or not on TCP */
    bool tls;
};

/* What health/watch.h publishes. */
struct health_topics {
    pthread_mutex_t lock;  /* guards published_ms, and orders the events of `runtime` */
    uint64_t published_ms; /* when the last of those was; clock_mono_ms() */
    struct topic *runtime, *providers;
};

/* Messages between apps: app/app.h. */
struct nimi_apps {
    struct topics *topics; /* one for each app that receives */
    struct rates *rates;
};

/* What all loops share. Each part has its own lock, and is never exchanged. */
struct nimi_runtime {
    struct {
        pthread_mutex_t lock; /* guards the rest */
        enum lifecycle state;
        char why[NIMI_WHY_BYTES];
        struct nimi_probed probed[NIMI_PROBED_MAX];
        size_t probed_count;
    } life;                                          /* only nimi.c touches it */
    struct scheduler *scheduler, *slots, *workflows; /* slots: for uploads */
    struct replies *replies;
    struct sessions *sessions;
    struct nimi_files files; /* set before anything is served */
    struct health_topics health;
    struct nimi_apps apps;
    struct nimi_account *account;    /* account/account.h */
    struct grants *grants;           /* grant/grants.h */
    struct facts *facts;             /* what replicas tell each other: facts.h */
    struct realtime_table *realtime; /* realtime/session.h */
    struct downloads *downloads;     /* transfer/download.h */
    struct log_topics *logs;         /* events of memory and agents, for their subscribers */
    struct embed_turn embed_turn;    /* which loop makes the vectors of memory banks */
};

struct nimi_runtime *nimi_runtime_new(const struct scheduler_limits *limits);
void nimi_runtime_free(struct nimi_runtime *runtime); /* NULL is fine */

/* The slots, apps, sessions and access tokens are those of all replicas, where `store` has any. Before the first call; harmless
 * again. Any thread. */
struct store;
void nimi_runtime_share(struct nimi_runtime *runtime, struct store *store);

/* Whether any instance of the app has registered with this process. */
bool nimi_runtime_knows_app(struct nimi_runtime *runtime, struct str app);

/* Change the state. `why` is shown as its reason, cut to NIMI_WHY_BYTES. */
void nimi_runtime_move(struct nimi_runtime *runtime, enum lifecycle next, const char *why);
enum lifecycle nimi_runtime_state(struct nimi_runtime *runtime);
enum lifecycle nimi_runtime_why(struct nimi_runtime *runtime, char ret_why[NIMI_WHY_BYTES]);

struct str nimi_probe_state_name(enum nimi_probe_state state); /* "healthy" */

/* Publish the results of probes. With `all_down` a READY runtime becomes DEGRADED, with the
 * first provider as the reason. Without it a runtime that became DEGRADED this way is READY
 * again. Returns whether the state changed. */
bool nimi_runtime_probed(struct nimi_runtime *runtime, const struct nimi_probed *probed,
                         size_t count, bool all_down);

/* Read the results published last. Returns how many there are. */
size_t nimi_runtime_providers(struct nimi_runtime *runtime,
                              struct nimi_probed ret[NIMI_PROBED_MAX]);

/* --- a loop's share ----------------------------------------------------------------------- */

enum {
    NIMI_AI,
    NIMI_AI_REALTIME,
    NIMI_AUDIT,
    NIMI_AUTH,
    NIMI_CONNECTOR,
    NIMI_LOCAL,
    NIMI_MODEL,
    NIMI_APP,
    NIMI_WORKFLOW,
    NIMI_ACCOUNT,
    NIMI_GRANT,
    NIMI_COGNITION,
    NIMI_AGENT,
    NIMI_SERVICES,
};

struct audit_writer;
struct changes_watcher;
struct learning;
struct nimi_methods;

struct nimi_instance {
    const struct nimi_settings *settings;
    struct run_host *host;
    struct audit_writer *audit; /* NULL: nothing is recorded */
    struct nimi_runtime *runtime;
    struct nimi_methods *methods;
    struct key_fetcher keys; /* without its pool no keys are fetched */
    struct list calls;       /* open ones */
    size_t call_count;
    struct list shared; /* shared calls: once.h */
    struct list jobs;   /* running ones: job_work.h */
    size_t job_count;
    struct list workflows; /* running ones: workflow_work.h */
    size_t workflow_count, workflow_bytes;
    struct account_share account;
    struct list downloads; /* requests that run here: transfer/carry.h */
    struct list realtime;  /* sessions whose home this is: realtime/session.h */
    struct pruner pruner;  /* deletes expired uploads */
    struct bank_pruner bank_pruner;
    struct embedder embedder;              /* makes the vectors of memory banks */
    struct changes_watcher *facts_watcher; /* NULL: another instance does */
    struct learning *learning;             /* what the facts said since; facts.c */
    bool learn_again;
    struct timer facts_again; /* the store was away */
    struct timer grant_uses;  /* while a stream lasts that brought a grant: grant/use.h */
    struct timer beat;        /* while someone watches the runtime's health: watch.h */
};

void nimi_instance_init(struct nimi_instance *instance, const struct nimi_settings *settings,
                        struct run_host *host, struct nimi_runtime *runtime);
void nimi_instance_done(struct nimi_instance *instance);

/* After serving() the store is open. After stopping() the store is used only for what is needed
 * to end. */
void nimi_instance_serving(struct nimi_instance *instance);
void nimi_instance_stopping(struct nimi_instance *instance);

/* The process ends, and all runs end with it. The instance's jobs are left to the next process.
 */
void nimi_instance_leave(struct nimi_instance *instance);

/* Fill one service, or all NIMI_SERVICES; `instance` is borrowed. Call this again when the
 * instance has new settings. */
void nimi_service(struct nimi_instance *instance, size_t service, struct rpc_service *ret);
void nimi_services(struct nimi_instance *instance, struct rpc_service *ret);

/* Add the header that every answer of this listener carries: x-nimi-runtime-version. */
void nimi_site(const struct nimi_instance *instance, struct rpc_site *site);

/* Fill the table of the health endpoints, and of artifacts (fetch.h); `instance` is borrowed.
 */
void nimi_health_table(struct nimi_instance *instance, struct route_table *ret);

#endif
