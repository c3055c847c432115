/* weir watch: read one stream with libweir-client, and say how it ended. */
#include "cli/ask_daemon.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "contract/agentbreeder/options.h"
#include "contract/crawbl/options.h"
#include "contract/nimi/options.h"
#include "reader/reader.h"
#include "wire/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <weir/client.h>

static const char usage[] =
    "weir watch METHOD [JSON] [--address HOST:PORT] [--token TOKEN] [--app-id ID]\n"
    "           [--header NAME=VALUE] [--deadline-ms N] [--cancel-after N] [--mode-d] "
    "[--json]\n\n"
    "Reads a stream: \"StreamScenario\", \"SubscribeWorkflowEvents\" or another stream of\n"
    "nimi.runtime.v1, \"Converse\", \"/stream\", \"runs/ID/events\", or a gRPC path. JSON is "
    "the\n"
    "request, by default {}; for Converse also an array of requests, one turn each. Without\n"
    "--address the daemon of these settings is asked; the token is then AGENT_AUTH_TOKEN "
    "where\n"
    "the stream is HTTP, and --token elsewhere (weir token new makes one).\n\n"
    "Each frame is one line of JSON on stdout. A message whose type is not known here is "
    "shown\n"
    "as {\"base64\": ...}; only a subscription can be read so (--mode-d). The last line, on "
    "stderr,\n"
    "is the outcome; --json makes it JSON. What the server did against its contract is a "
    "warning\n"
    "there. Ctrl-C, and --cancel-after N frames, cancel the call. Exit code:\n\n"
    "    0 completed   1 not begun, or stdout is closed   2 wrong usage\n"
    "    11 failed       12 work_cancelled  13 refused         14 unknown   15 truncated\n"
    "    16 preempted    17 slow_consumer   18 timed_out       19 broken    20 incomplete\n"
    "    21 disconnected 22 cancelled\n";

#define EXIT_OUTCOME 10 /* and the number of the outcome */
#define LOOK_MS 200     /* how long a signal may wait for us */
#define BASE_MAX_BYTES (1 * KIB)
#define LINE_MAX_BYTES (64 * KIB)

struct watch_arguments {
    const char *address, *token, *app_id, *header, *deadline_ms, *cancel_after;
    bool mode_d;
    /* Read from the texts above. */
    uint64_t deadline, frames_max;
    char *header_name;
    const char *header_value;
};

static volatile sig_atomic_t interrupted;

static void watch_on_signal(int number) {
    (void)number;
    interrupted = 1;
}

/* The second signal ends the process. */
static void catch_signals(void) {
    struct sigaction action = {.sa_handler = watch_on_signal, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

/* --- arguments ---------------------------------------------------------------------------- */

static bool read_number(const char *name, const char *text, uint64_t *ret) {
    if (!text || (str_to_u64(str_from(text), ret) && *ret > 0)) return true;
    fprintf(stderr, "weir: error: --%s must be a number above 0\n", name);
    return false;
}

static bool read_header(struct watch_arguments *arguments) {
    struct str value;
    if (!arguments->header) return true;
    struct str name = str_split(str_from(arguments->header), '=', &value);
    if (!value.at || name.len == 0) {
        fprintf(stderr, "weir: error: --header must be NAME=VALUE\n");
        return false;
    }
    arguments->header_name = str_dup(name);
    arguments->header_value = value.at;
    return true;
}

/* --- where -------------------------------------------------------------------------------- */

/* The listener of the daemon that serves this stream. */
static struct daemon_listener listener_of(const struct config *config, struct str name) {
    const struct reader_method *method = reader_method_find(name);
    struct str path = method ? method->path : name;
    if (method && reader_kind_is_http(method->kind))
        return (struct daemon_listener){agentbreeder_options(config)->listen, "HTTP",
                                        "listen.http", "--http"};
    if (str_starts(path, STR("/nimi.")))
        return (struct daemon_listener){nimi_options(config)->grpc, "gRPC", "listen.nimi_grpc",
                                        "--nimi-grpc"};
    return (struct daemon_listener){crawbl_options(config)->listen, "gRPC", "listen.grpc",
                                    "--grpc"};
}

static bool is_http(struct str name) {
    const struct reader_method *method = reader_method_find(name);
    return method && reader_kind_is_http(method->kind);
}

static struct weir_client *watch_connect_to(const struct config *config,
                                            const struct watch_arguments *arguments,
                                            struct err *e) {
    char why[ERR_TEXT_BYTES] = "";
    struct buf base;
    struct daemon_listener listener = listener_of(config, config->operands[0]);
    char *trust = str_dup(config->tls.trust),
         *own = str_dup(agentbreeder_options(config)->token);
    buf_init(&base, BASE_MAX_BYTES);
    bool ours = !arguments->address;
    bool found = !ours || daemon_write_base(config, &listener, &base, e);
    buf_append_byte(&base, '\0');
    /* The daemon's own token is for the daemon on this machine, and a proxy must not see it. */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a command has one thread so far */
    if (ours) setenv("no_proxy", "*", 1);
    const char *token = arguments->token;
    if (!token && ours && is_http(config->operands[0]) && own[0]) token = own;
    struct weir_client *client =
        found
            ? weir_client_new(
                  &(struct weir_client_options){.size = sizeof(struct weir_client_options),
                                                .address = ours ? base.at : arguments->address,
                                                .token = token,
                                                .authorities = trust,
                                                .app_id = arguments->app_id},
                  why, sizeof(why))
            : NULL;
    if (found && !client) err_set(e, ERR_INVALID_ARGUMENT, "%s", why);
    free(own);
    free(trust);
    buf_done(&base);
    return client;
}

static struct weir_stream *watch_open_stream(struct weir_client *client,
                                             const struct config *config,
                                             const struct watch_arguments *arguments,
                                             struct err *e) {
    char why[ERR_TEXT_BYTES] = "";
    struct str name = config->operands[0];
    const struct reader_method *known = reader_method_find(name);
    bool bodyless = !known || known->kind == READER_RUN;
    char *method = str_dup(name);
    char *json = config->operand_count > 1 ? str_dup(config->operands[1]) : NULL;
    const char *const headers[] = {arguments->header_name, arguments->header_value, NULL};
    struct weir_stream *stream = weir_stream_open(
        client,
        &(struct weir_stream_options){.size = sizeof(struct weir_stream_options),
                                      .method = method,
                                      .json = json       ? json
                                              : bodyless ? NULL
                                                         : "{}",
                                      .mode = arguments->mode_d ? WEIR_MODE_SUBSCRIPTION
                                                                : WEIR_MODE_KNOWN,
                                      .deadline_ms = arguments->deadline,
                                      .headers = headers},
        why, sizeof(why));
    if (!stream) err_set(e, ERR_INVALID_ARGUMENT, "%s", why);
    free(json);
    free(method);
    return stream;
}

/* --- what comes --------------------------------------------------------------------------- */

/* False: no one reads what we print. */
static bool print_frame(struct weir_stream *stream) {
    const char *json = weir_stream_json(stream);
    show_json(stdout, json ? str_from(json)
                           : STR("{\"error\":\"this frame nests too deeply to be shown\"}"));
    return fflush(stdout) == 0;
}

static bool print_frames(struct weir_stream *stream, uint64_t frames_max) {
    struct weir_frame frame = {.size = sizeof(frame)};
    uint64_t count = 0;
    int came;
    while ((came = weir_stream_next(stream, &frame, LOOK_MS)) != WEIR_NEXT_END) {
        if (interrupted) weir_stream_cancel(stream);
        if (came != WEIR_NEXT_FRAME) continue;
        if (!print_frame(stream)) return false;
        if (++count == frames_max) weir_stream_cancel(stream);
    }
    return true;
}

/* --- the outcome -------------------------------------------------------------------------- */

static struct str repeat_of(const struct weir_outcome *outcome) {
    return stream_outcome_repeat_name((enum stream_outcome_repeat)outcome->repeat);
}

static void watch_write_json(const struct weir_outcome *outcome, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "outcome", str_from(outcome->name));
    json_member_str(&json, "repeat", repeat_of(outcome));
    json_member_str(&json, "wait",
                    stream_outcome_wait_name((enum stream_outcome_wait)outcome->wait));
    if (outcome->snapshot) json_member_str(&json, "snapshot", str_from(outcome->snapshot));
    json_member_str(&json, "status", str_from(outcome->status_name));
    if (outcome->reason_code) json_member_i64(&json, "reason_code", outcome->reason_code);
    if (outcome->reason[0]) json_member_str(&json, "reason", str_from(outcome->reason));
    if (outcome->message[0]) json_member_str(&json, "message", str_from(outcome->message));
    if (outcome->event[0]) json_member_str(&json, "event", str_from(outcome->event));
    json_member_array(&json, "faults");
    for (unsigned bit = 1; bit <= outcome->faults; bit <<= 1) {
        if (outcome->faults & bit) json_write_str(&json, str_from(weir_fault_name(bit)));
    }
    json_close(&json);
    json_member_u64(&json, "frames", outcome->frames);
    json_member_u64(&json, "missing", outcome->missing);
    json_close(&json);
}

static void watch_write_text(const struct weir_outcome *outcome, struct buf *out) {
    buf_printf(out, "%s: %s; %llu frame%s", outcome->name, outcome->meaning,
               (unsigned long long)outcome->frames, outcome->frames == 1 ? "" : "s");
    if (outcome->missing)
        buf_printf(out, ", %llu missing", (unsigned long long)outcome->missing);
    if (outcome->status) buf_printf(out, "; status %s", outcome->status_name);
    if (outcome->reason[0]) buf_printf(out, "; reason %s", outcome->reason);
    if (outcome->reason_code) buf_printf(out, "; reason code %d", outcome->reason_code);
    if (outcome->message[0]) buf_printf(out, "; \"%s\"", outcome->message);
    if (outcome->code == WEIR_COMPLETED) return;
    buf_printf(out, "; safe to repeat: " STR_FMT, STR_ARG(repeat_of(outcome)));
    if (outcome->wait == WEIR_WAIT_BACKOFF) buf_printf(out, ", after a back-off");
    if (outcome->wait == WEIR_WAIT_READY) buf_printf(out, ", when the server is ready");
    if (outcome->snapshot && outcome->snapshot[0])
        buf_printf(out, "; first fetch the state: %s", outcome->snapshot);
}

static void print_line(const struct buf *line) {
    show_text(stderr, buf_str(line), TERMINAL_ONE_LINE);
    fputc('\n', stderr);
}

static int print_outcome(struct weir_stream *stream, bool json) {
    struct weir_outcome outcome = {.size = sizeof(outcome)};
    struct buf line;
    if (!weir_stream_outcome(stream, &outcome)) return EXIT_FAILED;
    for (unsigned bit = 1; !json && bit <= outcome.faults; bit <<= 1) {
        if (outcome.faults & bit)
            fprintf(stderr, "weir: warning: %s (%s)\n", weir_fault_meaning(bit),
                    weir_fault_name(bit));
    }
    buf_init(&line, LINE_MAX_BYTES);
    (json ? watch_write_json : watch_write_text)(&outcome, &line);
    print_line(&line);
    buf_done(&line);
    return outcome.code == WEIR_COMPLETED ? EXIT_DONE : EXIT_OUTCOME + outcome.code;
}

/* --- the command -------------------------------------------------------------------------- */

static bool watch_fits(const struct asked *asked, void *ctx) {
    struct watch_arguments *arguments = ctx;
    return cli_operands_fit(asked->config, 1, 2, "METHOD (such as StreamScenario)") &&
           read_number("deadline-ms", arguments->deadline_ms, &arguments->deadline) &&
           read_number("cancel-after", arguments->cancel_after, &arguments->frames_max) &&
           read_header(arguments);
}

static int watch(const struct asked *asked, void *ctx) {
    const struct watch_arguments *arguments = ctx;
    const struct config *config = asked->config;
    struct err e;
    int code = EXIT_FAILED;
    struct weir_client *client = watch_connect_to(config, arguments, &e);
    struct weir_stream *stream =
        client ? watch_open_stream(client, config, arguments, &e) : NULL;
    if (!stream) {
        code = cli_fail(EXIT_FAILED, &e);
    } else {
        catch_signals();
        if (print_frames(stream, arguments->frames_max))
            code = print_outcome(stream, asked->json);
    }
    weir_stream_free(stream);
    weir_client_free(client);
    return code;
}

int command_watch(int arg_count, const char *const *args) {
    struct watch_arguments arguments = {.mode_d = false};
    const struct argument_flag flags[] = {
        {.name = "mode-d", .given = &arguments.mode_d},
        {.name = "address", .value = &arguments.address},
        {.name = "token", .value = &arguments.token},
        {.name = "app-id", .value = &arguments.app_id},
        {.name = "header", .value = &arguments.header},
        {.name = "deadline-ms", .value = &arguments.deadline_ms},
        {.name = "cancel-after", .value = &arguments.cancel_after},
        {.name = NULL}};
    const struct command_form form = {
        .usage = usage, .flags = flags, .takes = TAKES_JSON, .fits = watch_fits, .act = watch};
    int code = cli_command(arg_count, args, &form, &arguments);
    free(arguments.header_name);
    return code;
}
