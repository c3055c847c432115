#include "contract/otlp/contract.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/version.h"
#include "contract/otlp/options.h"
#include "exporter/exporter.h"

#include <stdlib.h>

static bool otlp_wanted(const struct config *config) {
    const struct otlp_options *options = otlp_options(config);
    return options->endpoint.len > 0 && !options->disabled;
}

/* --- settings --------------------------------------------------------------------------------- */

/* Only checked: the exporter reads them once, at the start. */
static bool otlp_read(const struct contract_source *from, void **ret, struct err *e) {
    struct exporter_headers headers = {.count = 0};
    bool good = !otlp_wanted(from->config) ||
                exporter_headers_read(&headers, otlp_options(from->config)->headers, e) ||
                err_add(e, "otlp.headers");
    exporter_headers_done(&headers);
    *ret = NULL;
    return good;
}

static void otlp_drop(void *settings) {
    (void)settings;
}

/* --- the process ------------------------------------------------------------------------------ */

struct otlp_process {
    struct exporter_headers headers;
    struct exporter *exporter; /* NULL: it could not start */
};

/* No mistake of the settings: an environment that many programs share often says grpc. */
static void check_protocol(const struct otlp_options *options) {
    if (str_equal(options->protocol, STR("http/protobuf"))) return;
    log_warning(
        "otlp.protocol (OTEL_EXPORTER_OTLP_PROTOCOL) says '" STR_FMT
        "', and spans are sent as http/protobuf: collectors take that on port 4318, and "
        "grpc on 4317",
        STR_ARG(options->protocol));
}

static void *otlp_open(const struct contract_process *process) {
    struct otlp_process *otlp = MEM_NEW(struct otlp_process);
    const struct otlp_options *options = otlp_options(process->config);
    struct err e;
    check_protocol(options);
    bool good = exporter_headers_read(&otlp->headers, options->headers, &e) &&
                exporter_start(&(struct exporter_options){.endpoint = options->endpoint,
                                                          .headers = &otlp->headers,
                                                          .service = options->service,
                                                          .version = STR(WEIR_VERSION),
                                                          .trust = process->config->tls.trust},
                               &otlp->exporter, &e);
    if (!good) log_warning("no spans are sent: %s", e.text);
    return otlp;
}

/* All loops have ended, so the last turns are among the spans that it sends. */
static void otlp_close(void *state) {
    struct otlp_process *otlp = state;
    exporter_stop(otlp->exporter);
    exporter_headers_done(&otlp->headers);
    free(otlp);
}

/* --- an instance: there is nothing in it ------------------------------------------------------ */

static void *otlp_init(const struct contract_loop *loop, const void *settings, void *state) {
    (void)loop, (void)settings;
    return state;
}

const struct contract otlp_contract = {
    .name = STR_INIT("otlp"),
    .rows = &otlp_rows,
    .wanted = otlp_wanted,
    .settings = {.read = otlp_read, .drop = otlp_drop},
    .process = {.open = otlp_open, .close = otlp_close},
    .instance = {.init = otlp_init},
};
