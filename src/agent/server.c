/* Agents on other servers, of the Runtime Contract or of Chat Completions. Both are remote
 * providers (provider/remote.h) with a dialect of their own. They differ from models in how
 * failures are reported, and in that no request is repeated, because an agent acts. */
#include "agent/kind.h"
#include "agent/runtime.h"
#include "provider/remote.h"

#define EVENT_MAX_BYTES (4 * MIB)

#define UNREACHABLE "cannot be reached; try again in a moment"
#define UNWILLING "accepts no turns at the moment; try again in a moment"
#define NONSENSE "gave an answer that cannot be read"

/* clang-format off */
static const struct remote_reason reasons[] = {
    {REMOTE_CUT,            AGENT_ENDED,       "ended in the middle of the turn"},
    {PROVIDER_UNREACHABLE,  AGENT_UNREACHABLE, UNREACHABLE},
    {PROVIDER_FORBIDDEN,    AGENT_UNREACHABLE, UNREACHABLE},
    {PROVIDER_TIMEOUT,      AGENT_STALLED,     "said nothing for too long"},
    {PROVIDER_AUTH,         AGENT_UNREACHABLE, "refused the server's credentials"},
    {PROVIDER_RATE_LIMITED, AGENT_UNREACHABLE, UNWILLING},
    {PROVIDER_QUOTA,        AGENT_UNREACHABLE, UNWILLING},
    {PROVIDER_OVERLOADED,   AGENT_UNREACHABLE, UNWILLING},
    {PROVIDER_ERROR,        AGENT_FAILED,      NULL},
    {PROVIDER_REJECTED,     AGENT_FAILED,      NULL},
    {PROVIDER_BROKEN,       AGENT_PROTOCOL,    NONSENSE},
    {MODEL_ANSWER_TOO_LONG, AGENT_PROTOCOL,    NONSENSE},
    {AGENT_PROTOCOL,        AGENT_PROTOCOL,    NONSENSE},
    {AGENT_FAILED,          AGENT_FAILED,      NULL},
};
/* clang-format on */

static const struct remote_party party = {"agent", reasons, ARRAY_LEN(reasons)};

static bool server_make(const struct agent_options *options, const struct dialect *dialect,
                        struct provider **ret, struct err *e) {
    struct remote_options remote = remote_defaults;
    if (!http_pool_need(options->http, e)) return false;
    remote.name = options->name;
    remote.party = &party;
    remote.dialect = dialect;
    remote.settings = (struct dialect_settings){.base_url = options->url,
                                                .model = options->name,
                                                .key = options->key,
                                                .whole = !options->streams,
                                                .own = options->own};
    remote.headers = options->headers;
    remote.header_count = options->header_count;
    remote.pool = options->http;
    remote.first_byte_ms = remote.stall_ms = options->silence_ms;
    remote.total_ms = 0; /* the turn's own limit */
    remote.retries_max = 0;
    remote.event_max_bytes = EVENT_MAX_BYTES;
    *ret = remote_provider_new(&remote);
    return true;
}

static bool make_http(const struct agent_options *options, struct provider **ret,
                      struct err *e) {
    return server_make(options, &runtime_dialect, ret, e);
}

static bool make_openai(const struct agent_options *options, struct provider **ret,
                        struct err *e) {
    return server_make(options, &openai_dialect, ret, e);
}

const struct agent_kind http_agent = {"http", "url", make_http};
const struct agent_kind openai_agent = {"openai", "url", make_openai};
