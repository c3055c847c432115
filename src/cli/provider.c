#include "base/clock.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "daemon/team.h"
#include "wire/json.h"

#include <stdio.h>

static const char usage[] =
    "weir provider list [--json] [-c weir.yaml]\n"
    "weir provider test NAME | NAME/MODEL [--json] [-c weir.yaml]\n\n"
    "list: whom weir can ask for models: those of the settings file, and those it knows by\n"
    "name. A key shows only where it comes from.\n"
    "test: ask one small question, as a turn would, and say who answered and how fast. Exit\n"
    "code 0: it answered; 1: it did not, and stderr says what to do; 2: wrong usage.\n";

/* Some models count thoughts as output, and some APIs refuse a lower limit. */
#define TEST_TOKENS 16
#define LIST_MAX_BYTES (1 * MIB)

/* --- list --------------------------------------------------------------------------------- */

static const char *key_state(const struct config_provider *provider) {
    if (provider->key.len) return "set";
    return provider->key_name.len ? "missing" : "none needed";
}

static void list_json(const struct config *config, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_array(&writer, "providers");
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct config_provider *provider = &config->providers[i];
        json_open_object(&writer);
        json_member_str(&writer, "name", provider->name);
        json_member_str(&writer, "kind", provider->kind);
        json_member_str(&writer, "base_url", provider->base_url);
        json_member_str(&writer, "model", provider->model);
        json_member_str(&writer, "key", str_from(key_state(provider)));
        json_member_str(&writer, "key_source", provider->key_source);
        json_member_str(&writer, "key_variable", provider->key_name);
        json_member_bool(&writer, "listed", provider->listed);
        json_member_bool(&writer, "used", provider->used);
        json_close(&writer);
    }
    json_close(&writer);
    json_close(&writer);
    buf_append_byte(out, '\n');
}

static void provider_list_text(const struct config *config, struct buf *out) {
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct config_provider *provider = &config->providers[i];
        buf_printf(out, "%-12.*s %-17.*s key %s", STR_ARG(provider->name),
                   STR_ARG(provider->kind), key_state(provider));
        if (provider->key.len) {
            buf_printf(out, " (" STR_FMT ")", STR_ARG(provider->key_source));
        } else if (provider->key_name.len) {
            buf_printf(out, " (" STR_FMT ")", STR_ARG(provider->key_name));
        }
        if (provider->base_url.len) buf_printf(out, "  " STR_FMT, STR_ARG(provider->base_url));
        buf_append(out, provider->used ? STR("  used\n") : STR("\n"));
    }
}

static int provider_list(const struct config *config, bool json) {
    struct buf out;
    buf_init(&out, LIST_MAX_BYTES);
    (json ? list_json : provider_list_text)(config, &out);
    printf(STR_FMT, STR_ARG(buf_str(&out)));
    buf_done(&out);
    return EXIT_DONE;
}

/* --- test --------------------------------------------------------------------------------- */

struct test {
    struct loop *loop;
    const struct config_provider *from;
    struct str asked; /* the model */
    bool json;
    uint64_t start_us, first_us; /* first_us 0: no answer yet */
    struct event_usage usage;
    int code;
};

static void on_words(const struct reply_event *event, void *ctx) {
    struct test *test = ctx;
    (void)event;
    if (!test->first_us) test->first_us = clock_mono_us();
}

static void provider_on_usage(const struct reply_event *event, void *ctx) {
    struct test *test = ctx;
    test->usage.prompt = event->usage->prompt;
    test->usage.completion = event->usage->completion;
}

static void provider_on_note(const struct reply_event *event, void *ctx) {
    (void)ctx;
    show_text(stderr, event->text, TERMINAL_LINES);
    fputc('\n', stderr);
}

static void answer_json(const struct test *test, struct str model, uint64_t first_ms,
                        uint64_t total_ms) {
    struct buf out;
    buf_init(&out, 16 * KIB);
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_member_str(&writer, "provider", test->from->name);
    json_member_str(&writer, "model", model);
    json_member_u64(&writer, "first_token_ms", first_ms);
    json_member_u64(&writer, "total_ms", total_ms);
    json_member_i64(&writer, "prompt_tokens", test->usage.prompt);
    json_member_i64(&writer, "completion_tokens", test->usage.completion);
    json_close(&writer);
    show_json(stdout, buf_str(&out));
    buf_done(&out);
}

static void answer_text(const struct test *test, struct str model, uint64_t first_ms,
                        uint64_t total_ms) {
    printf(STR_FMT ": good; ", STR_ARG(test->from->name));
    show_text(stdout, model, TERMINAL_ONE_LINE);
    printf(" said its first word after %llu ms and was done after %llu ms",
           (unsigned long long)first_ms, (unsigned long long)total_ms);
    if (test->usage.prompt >= 0 && test->usage.completion >= 0)
        printf(" (%lld tokens in, %lld out)", (long long)test->usage.prompt,
               (long long)test->usage.completion);
    printf("\n");
}

static void provider_on_done(const struct reply_event *event, void *ctx) {
    struct test *test = ctx;
    uint64_t now_us = clock_mono_us();
    on_words(event, test);
    (test->json ? answer_json : answer_text)(
        test, event->model.len ? event->model : test->asked,
        (test->first_us - test->start_us) / 1000, (now_us - test->start_us) / 1000);
    test->code = EXIT_DONE;
    loop_stop(test->loop);
}

static void provider_on_failed(const struct reply_event *event, void *ctx) {
    struct test *test = ctx;
    fprintf(stderr, "weir: error: ");
    show_text(stderr, event->text, TERMINAL_LINES);
    fprintf(stderr, " (" STR_FMT ")\n", STR_ARG(event->reason));
    if (!test->from->key.len && test->from->key_name.len)
        fprintf(stderr, "it has no key: export " STR_FMT "=...\n",
                STR_ARG(test->from->key_name));
    test->code = EXIT_FAILED;
    loop_stop(test->loop);
}

static void provider_on_reply(const struct reply_event *event, void *ctx) {
    static reply_event_fn *const handlers[REPLY_KIND_COUNT] = {
        [REPLY_TEXT] = on_words,
        [REPLY_THINKING] = on_words,
        [REPLY_TOOL_CALL] = on_words,
        [REPLY_USAGE] = provider_on_usage,
        [REPLY_NOTE] = provider_on_note,
        [REPLY_DONE] = provider_on_done,
        [REPLY_FAILED] = provider_on_failed,
    };
    reply_event_handle(handlers, event, ctx);
}

static int provider_ask(struct test *test, struct http_pool *pool) {
    struct provider *provider;
    struct err e;
    if (!http_pool_need(pool, &e) || !team_provider_new(test->from, pool, &provider, &e))
        return cli_fail(EXIT_FAILED, &e);
    struct model_options options = MODEL_OPTIONS_NONE;
    struct message message = {.role = MESSAGE_USER, .text = STR("Say: ok")};
    struct provider_request request = {.agent = STR("test"),
                                       .model = test->asked,
                                       .system = STR_EMPTY,
                                       .messages = &message,
                                       .message_count = 1,
                                       .options = &options,
                                       .schema = STR_EMPTY,
                                       .by_operator = true};
    options.output_tokens_max = TEST_TOKENS;
    test->start_us = clock_mono_us();
    provider_call_start(provider, test->loop, &request, provider_on_reply, test);
    loop_run(test->loop);
    provider_free(provider);
    return test->code;
}

/* The model to test: the one named, or the provider's own, or the first one an agent uses, or a
 * small well-known one. */
static struct str model_to_test(const struct config *config,
                                const struct config_provider *provider, struct str named) {
    if (named.len) return named;
    if (provider->model.len) return provider->model;
    for (size_t i = 0; i < config->agent_count; i++) {
        if (config->agents[i].model.provider == provider) return config->agents[i].model.name;
    }
    if (config->model_default.provider == provider) return config->model_default.name;
    return config_usual_model(provider->name);
}

static const struct config_provider *find_provider(const struct config *config,
                                                   struct str name) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < config->provider_count; i++) {
        if (str_equal(config->providers[i].name, name)) return &config->providers[i];
        nearest_offer(&nearest, config->providers[i].name);
    }
    fprintf(stderr,
            "weir: error: no provider is called '" STR_FMT "'%s\n"
            "weir provider list shows the ones that can be asked.\n",
            STR_ARG(str_head(name, 40)), nearest_hint(&nearest));
    return NULL;
}

static int test_provider(const struct config *config, struct str name, bool json) {
    struct str named;
    const struct config_provider *from = find_provider(config, str_split(name, '/', &named));
    if (!from) return EXIT_USAGE;
    struct test test = {.from = from,
                        .asked = model_to_test(config, from, named),
                        .json = json,
                        .usage = {.prompt = TOKENS_UNKNOWN, .completion = TOKENS_UNKNOWN}};
    if (!test.asked.len) {
        fprintf(stderr, "weir: error: which model? weir provider test " STR_FMT "/MODEL\n",
                STR_ARG(from->name));
        return EXIT_USAGE;
    }
    struct http_pool *pool = http_pool_new();
    http_pool_trust(pool, config->tls.trust);
    test.loop = loop_new();
    http_pool_add(pool, test.loop);
    int code = provider_ask(&test, pool);
    http_pool_leave(pool, test.loop);
    loop_free(test.loop);
    http_pool_free(pool);
    return code;
}

/* --- the command -------------------------------------------------------------------------- */

enum act { ACT_NONE, ACT_LIST, ACT_TEST };

static bool provider_fits(const struct asked *asked, void *ctx) {
    size_t wanted = asked->act == ACT_TEST;
    (void)ctx;
    return cli_operands_fit(asked->config, wanted, wanted, "the name of a provider");
}

static int provider_act(const struct asked *asked, void *ctx) {
    struct config *config = asked->config;
    struct config_input input = cli_input(asked->all->rest_count, asked->all->rest, false);
    struct err e;
    (void)ctx;
    if (!config_know_providers(config, &input, &e)) return cli_fail(EXIT_USAGE, &e);
    cli_log_file(config);
    return asked->act == ACT_LIST ? provider_list(config, asked->json)
                                  : test_provider(config, config->operands[0], asked->json);
}

int command_provider(int arg_count, const char *const *args) {
    static const char *const acts[] = {
        [ACT_NONE] = "", [ACT_LIST] = "list", [ACT_TEST] = "test", NULL};
    static const struct command_form form = {.usage = usage,
                                             .acts = acts,
                                             .takes = TAKES_JSON,
                                             .fits = provider_fits,
                                             .act = provider_act};
    return cli_command(arg_count, args, &form, NULL);
}
