#include "daemon/audit_snapshot.h"

#include "store/audit_writer.h"

void audit_snapshot(struct audit_writer *writer, struct str domain, const char *operation,
                    const struct config_snapshot *snapshot) {
    const struct config *config = snapshot->config;
    struct buf text;
    buf_init(&text, AUDIT_DETAIL_MAX_BYTES);
    buf_append(&text, STR("providers:"));
    for (size_t i = 0; i < config->provider_count; i++)
        buf_printf(&text, " " STR_FMT, STR_ARG(config->providers[i].name));
    buf_append(&text, STR("; connectors:"));
    for (size_t i = 0; i < config->connector_count; i++)
        buf_printf(&text, " " STR_FMT, STR_ARG(config->connectors[i].id));
    audit_writer_tell(writer, domain, str_from(operation), ERR_NONE, buf_str(&text));
    buf_done(&text);
}
