#include "metrics/metrics.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/striped.h"

#include <assert.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define STRIPES 16
#define LABELS_MAX 5
#define BUCKETS_MAX 16
#define KEY_MAX_BYTES (1 + LABELS_MAX * (1 + METRICS_LABEL_BYTES))
#define LABELS_TEXT_MAX_BYTES (LABELS_MAX * (2 * METRICS_LABEL_BYTES + 64))
#define CACHED 128 /* series of a thread; a power of two */

/* --- the metrics -------------------------------------------------------------------------- */

struct buckets {
    size_t count;
    uint64_t bounds[BUCKETS_MAX]; /* in the metric's unit, rising */
};

#define MS UINT64_C(1000)

/* The bounds that the conventions prescribe: 0.01 s doubling, and powers of 4. */
static const struct buckets durations = {14,
                                         {10 * MS, 20 * MS, 40 * MS, 80 * MS, 160 * MS,
                                          320 * MS, 640 * MS, 1280 * MS, 2560 * MS, 5120 * MS,
                                          10240 * MS, 20480 * MS, 40960 * MS, 81920 * MS}};
static const struct buckets tokens = {14,
                                      {1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144,
                                       1048576, 4194304, 16777216, 67108864}};
static const struct buckets calls = {8, {0, 1, 2, 4, 8, 16, 32, 64}};

static const struct {
    const char *name, *help;
    enum metric_type type;
    unsigned decimals; /* the value is counted in 10^-decimals of the unit that is shown */
    const struct buckets *buckets;
    const char *labels[LABELS_MAX];
} metrics[METRIC_COUNT] = {
    [METRIC_MODEL_DURATION] = {"gen_ai_client_operation_duration_seconds",
                               "Time from the request to a model to the end of its reply.",
                               METRIC_HISTOGRAM,
                               6,
                               &durations,
                               {"gen_ai_operation_name", "gen_ai_provider_name",
                                "gen_ai_request_model", "gen_ai_response_model", "error_type"}},
    [METRIC_MODEL_FIRST_CHUNK] = {"gen_ai_client_operation_time_to_first_chunk_seconds",
                                  "Time from the request to a model to its first output.",
                                  METRIC_HISTOGRAM,
                                  6,
                                  &durations,
                                  {"gen_ai_operation_name", "gen_ai_provider_name",
                                   "gen_ai_request_model"}},
    [METRIC_TOKENS] = {"gen_ai_client_token_usage",
                       "Tokens of a call of a model, as its provider reported them.",
                       METRIC_HISTOGRAM,
                       0,
                       &tokens,
                       {"gen_ai_operation_name", "gen_ai_provider_name", "gen_ai_request_model",
                        "gen_ai_response_model", "gen_ai_token_type"}},
    [METRIC_COST] = {"weir_cost_usd_total",
                     "Cost of calls of models whose usage and price are known.",
                     METRIC_COUNTER,
                     9,
                     NULL,
                     {"gen_ai_provider_name", "gen_ai_response_model"}},
    [METRIC_AGENT_DURATION] = {"gen_ai_invoke_agent_duration_seconds",
                               "Time from the acceptance of a turn to its end.",
                               METRIC_HISTOGRAM,
                               6,
                               &durations,
                               {"gen_ai_agent_name", "error_type"}},
    [METRIC_AGENT_MODEL_CALLS] = {"gen_ai_invoke_agent_inference_calls",
                                  "Calls of models in a turn.",
                                  METRIC_HISTOGRAM,
                                  0,
                                  &calls,
                                  {"gen_ai_agent_name"}},
    [METRIC_AGENT_TOOL_CALLS] = {"gen_ai_invoke_agent_tool_calls",
                                 "Calls of tools in a turn.",
                                 METRIC_HISTOGRAM,
                                 0,
                                 &calls,
                                 {"gen_ai_agent_name"}},
    [METRIC_TOOL_DURATION] = {"gen_ai_execute_tool_duration_seconds",
                              "Time from the start of a tool to its answer.",
                              METRIC_HISTOGRAM,
                              6,
                              &durations,
                              {"gen_ai_tool_name", "error_type"}},
    [METRIC_TURNS_STARTED] = {"weir_turns_started_total",
                              "Turns that were accepted.",
                              METRIC_COUNTER,
                              0,
                              NULL,
                              {"gen_ai_agent_name"}},
    [METRIC_TURNS_ENDED] = {"weir_turns_ended_total",
                            "Turns that ended, by the state they ended in.",
                            METRIC_COUNTER,
                            0,
                            NULL,
                            {"gen_ai_agent_name", "state"}},
    [METRIC_RATE_LIMITED] = {"weir_rate_limited_total",
                             "Requests that were refused because a rate was reached: of an "
                             "address, a token or an agent.",
                             METRIC_COUNTER,
                             0,
                             NULL,
                             {"limit"}},
    [METRIC_STORE_REFUSED] = {"weir_store_refused_total",
                              "Rows that were refused because the share of an app, of a caller "
                              "or of all was full.",
                              METRIC_COUNTER,
                              0,
                              NULL,
                              {"table", "share"}},
    [METRIC_STORE_EVICTED] = {"weir_store_evicted_total",
                              "Rows that made room for newer ones of the same caller before "
                              "their time was over.",
                              METRIC_COUNTER,
                              0,
                              NULL,
                              {"table", "share"}},
};

/* --- the registry ------------------------------------------------------------------------- */

/* A series is made once and stays until metrics_stop(), so its counts need no lock. Its key is the
 * metric in one byte, then each label after a byte with its length. */
struct series {
    _Atomic uint64_t sum;
    _Atomic uint64_t
        in_bucket[BUCKETS_MAX + 1]; /* up to each bound, not added up; then the rest */
    size_t key_len;
    char key[];
};

struct stripe {
    pthread_mutex_t lock;
    struct map *series;
};

atomic_bool metrics_are_on;
static struct striped *stripes;
static atomic_size_t series_count;

/* What a thread reported before is found here without a lock, and without a strong hash. */
static atomic_uint generation; /* changes when series are freed */
static _Thread_local struct {
    unsigned generation;
    struct series *series[CACHED];
} cache;

void metrics_start(void) {
    assert(!stripes);
    stripes = STRIPED_NEW(STRIPES, struct stripe);
    for (size_t i = 0; i < STRIPES; i++)
        ((struct stripe *)striped_at(stripes, i))->series = map_new();
    atomic_store(&series_count, 0);
    atomic_fetch_add(&generation, 1);
    atomic_store(&metrics_are_on, true);
}

void metrics_stop(void) {
    if (!stripes) return;
    atomic_store(&metrics_are_on, false);
    for (size_t i = 0; i < STRIPES; i++) {
        struct map *map = ((struct stripe *)striped_at(stripes, i))->series;
        size_t cursor = 0;
        struct str key;
        void *series;
        while (map_next(map, &cursor, &key, &series)) free(series);
        map_free(map);
    }
    striped_free(stripes);
    stripes = NULL;
}

/* --- reporting ---------------------------------------------------------------------------- */

static size_t labels_of(enum metric metric) {
    size_t count = 0;
    while (count < LABELS_MAX && metrics[metric].labels[count]) count++;
    return count;
}

/* Not in the middle of a character. */
static struct str cut_label(struct str label) {
    struct str cut = str_head(label, METRICS_LABEL_BYTES);
    while (cut.len < label.len && cut.len && ((unsigned char)label.at[cut.len] & 0xC0) == 0x80)
        cut.len--;
    return cut;
}

static struct str make_key(enum metric metric, const struct str *labels,
                           char room[static KEY_MAX_BYTES]) {
    size_t count = labels_of(metric), len = 0;
    room[len++] = (char)metric;
    for (size_t i = 0; i < count; i++) {
        struct str label = cut_label(labels[i]);
        room[len++] = (char)label.len;
        if (label.len) memcpy(room + len, label.at, label.len);
        len += label.len;
    }
    return str_of(room, len);
}

/* The place of a series in the cache, or its neighbour: labels that differ seldom share one. */
static size_t place_of(enum metric metric, const struct str *labels, size_t count) {
    size_t sum = metric;
    for (size_t i = 0; i < count; i++) {
        struct str label = labels[i];
        sum = sum * 31 + label.len;
        if (label.len) sum = sum * 31 + (unsigned char)label.at[label.len - 1];
    }
    return (sum * UINT64_C(0x9E3779B97F4A7C15)) >> 57 & (CACHED - 1);
}

/* Most labels have fewer bytes than a call of memcmp() takes instructions. */
static inline bool same_bytes(const char *a, const char *b, size_t len) {
    uint64_t a_word, b_word;
    for (; len >= sizeof(a_word);
         a += sizeof(a_word), b += sizeof(b_word), len -= sizeof(b_word)) {
        memcpy(&a_word, a, sizeof(a_word));
        memcpy(&b_word, b, sizeof(b_word));
        if (a_word != b_word) return false;
    }
    while (len && a[len - 1] == b[len - 1]) len--;
    return len == 0;
}

/* Whether this is the series: its key, compared without making one. A label that would be cut is
 * longer than any of a key. */
static bool is_series_of(const struct series *series, enum metric metric,
                         const struct str *labels, size_t count) {
    const char *at = series->key;
    if (*at++ != (char)metric) return false;
    for (size_t i = 0; i < count; i++) {
        size_t len = (unsigned char)*at++;
        if (len != labels[i].len || !same_bytes(at, labels[i].at, len)) return false;
        at += len;
    }
    return true;
}

static struct series *series_new(struct str key) {
    struct series *series = mem_zero(1, sizeof(*series) + key.len);
    series->key_len = key.len;
    memcpy(series->key, key.at, key.len);
    return series;
}

/* NULL: the series is not there, and no more may be made. */
static struct series *find_shared(struct str key, bool always) {
    struct stripe *stripe = striped_lock(stripes, key);
    struct series *series = map_find(stripe->series, key);
    if (!series && (always || atomic_load(&series_count) < METRICS_SERIES_MAX)) {
        series = series_new(key);
        map_put(stripe->series, key, series);
        atomic_fetch_add(&series_count, 1);
    }
    pthread_mutex_unlock(&stripe->lock);
    return series;
}

/* NULL: the series is not there, and no more may be made. */
static struct series *find(enum metric metric, const struct str *labels) {
    char room[KEY_MAX_BYTES];
    size_t count = labels_of(metric);
    unsigned now = atomic_load_explicit(&generation, memory_order_relaxed);
    if (cache.generation != now) {
        memset(&cache, 0, sizeof(cache));
        cache.generation = now;
    }
    size_t place = place_of(metric, labels, count);
    struct series **first = &cache.series[place], **second = &cache.series[place ^ 1];
    if (*first && is_series_of(*first, metric, labels, count)) return *first;
    if (*second && is_series_of(*second, metric, labels, count)) return *second;
    struct series *series = find_shared(make_key(metric, labels, room), false);
    if (series) *(*first && !*second ? second : first) = series;
    return series;
}

static void observe(struct series *series, enum metric metric, uint64_t value) {
    const struct buckets *buckets = metrics[metric].buckets;
    atomic_fetch_add_explicit(&series->sum, value, memory_order_relaxed);
    if (!buckets) return;
    size_t i = 0;
    while (i < buckets->count && value > buckets->bounds[i]) i++;
    atomic_fetch_add_explicit(&series->in_bucket[i], 1, memory_order_relaxed);
}

static const struct str others[LABELS_MAX] = {STR_INIT("other"), STR_INIT("other"),
                                              STR_INIT("other"), STR_INIT("other"),
                                              STR_INIT("other")};

static struct series *find_others(enum metric metric) {
    char room[KEY_MAX_BYTES];
    return find_shared(make_key(metric, others, room), true);
}

void metrics_report(enum metric metric, uint64_t value, const struct str *labels) {
    if (!metrics_wanted()) return;
    struct series *series = find(metric, labels);
    if (!series) series = find_others(metric);
    observe(series, metric, value);
}

/* --- text --------------------------------------------------------------------------------- */

static const char *const types[] = {
    [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

static void append_head(struct buf *out, const char *name, enum metric_type type,
                        const char *help) {
    buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, types[type]);
}

static void append_amount(struct buf *out, uint64_t amount, unsigned decimals) {
    uint64_t one = 1;
    for (unsigned i = 0; i < decimals; i++) one *= 10;
    buf_printf(out, "%" PRIu64, amount / one);
    if (amount % one) buf_printf(out, ".%0*" PRIu64, (int)decimals, amount % one);
}

static void append_escaped(struct buf *out, struct str value) {
    for (size_t i = 0; i < value.len; i++) {
        char c = value.at[i];
        if (c == '\\' || c == '"') buf_append_byte(out, '\\');
        if (c == '\n') {
            buf_append(out, STR("\\n"));
        } else {
            buf_append_byte(out, c);
        }
    }
}

/* The labels of a key that are not empty, as they stand in braces. */
static void append_labels(struct buf *out, enum metric metric, struct str key) {
    size_t count = labels_of(metric), at = 1;
    for (size_t i = 0; i < count; i++) {
        struct str label = str_of(key.at + at + 1, (unsigned char)key.at[at]);
        at += 1 + label.len;
        if (!label.len) continue;
        if (out->len) buf_append_byte(out, ',');
        buf_printf(out, "%s=\"", metrics[metric].labels[i]);
        append_escaped(out, label);
        buf_append_byte(out, '"');
    }
}

static void append_name(struct buf *out, enum metric metric, const char *suffix,
                        struct str labels) {
    buf_printf(out, "%s%s", metrics[metric].name, suffix);
    if (labels.len) buf_printf(out, "{" STR_FMT "}", STR_ARG(labels));
    buf_append_byte(out, ' ');
}

static void append_bucket(struct buf *out, enum metric metric, struct str labels,
                          const uint64_t *bound, uint64_t up_to_it) {
    buf_printf(out, "%s_bucket{" STR_FMT "%sle=\"", metrics[metric].name, STR_ARG(labels),
               labels.len ? "," : "");
    if (bound) {
        append_amount(out, *bound, metrics[metric].decimals);
    } else {
        buf_append(out, STR("+Inf"));
    }
    buf_printf(out, "\"} %" PRIu64 "\n", up_to_it);
}

static void append_histogram(struct buf *out, enum metric metric, struct str labels,
                             const struct series *series) {
    const struct buckets *buckets = metrics[metric].buckets;
    uint64_t count = 0;
    for (size_t i = 0; i <= buckets->count; i++) {
        count += atomic_load_explicit(&series->in_bucket[i], memory_order_relaxed);
        append_bucket(out, metric, labels, i < buckets->count ? &buckets->bounds[i] : NULL,
                      count);
    }
    append_name(out, metric, "_sum", labels);
    append_amount(out, atomic_load_explicit(&series->sum, memory_order_relaxed),
                  metrics[metric].decimals);
    buf_append_byte(out, '\n');
    append_name(out, metric, "_count", labels);
    buf_printf(out, "%" PRIu64 "\n", count);
}

static void append_series(struct buf *out, enum metric metric, struct str labels,
                          const struct series *series) {
    if (metrics[metric].type == METRIC_HISTOGRAM) {
        append_histogram(out, metric, labels, series);
        return;
    }
    append_name(out, metric, "", labels);
    append_amount(out, atomic_load_explicit(&series->sum, memory_order_relaxed),
                  metrics[metric].decimals);
    buf_append_byte(out, '\n');
}

static void append_metric(struct buf *out, enum metric metric) {
    append_head(out, metrics[metric].name, metrics[metric].type, metrics[metric].help);
    for (size_t i = 0; i < STRIPES; i++) {
        struct stripe *stripe = striped_at(stripes, i);
        size_t cursor = 0;
        struct str key;
        void *series;
        struct buf labels;
        buf_init(&labels, LABELS_TEXT_MAX_BYTES);
        pthread_mutex_lock(&stripe->lock);
        while (map_next(stripe->series, &cursor, &key, &series)) {
            if (key.at[0] != (char)metric) continue;
            buf_clear(&labels);
            append_labels(&labels, metric, key);
            append_series(out, metric, buf_str(&labels), series);
        }
        pthread_mutex_unlock(&stripe->lock);
        buf_done(&labels);
    }
}

bool metrics_append(struct buf *out) {
    if (!metrics_wanted()) return true;
    for (size_t i = 0; i < METRIC_COUNT; i++) append_metric(out, (enum metric)i);
    return buf_ok(out);
}

void metrics_append_value(struct buf *out, const char *name, enum metric_type type,
                          const char *help, const char *labels, double value) {
    append_head(out, name, type, help);
    buf_printf(out, "%s%s %.17g\n", name, labels, value);
}
