#include "daemon/team_agent.h"

#include "agent/kind.h"
#include "base/mem.h"
#include "wire/json.h"
#include "wire/yaml.h"

#include <stdlib.h>

const char **team_texts(const struct str *texts, size_t count) {
    const char **list = mem_zero(count + 1, sizeof(char *));
    for (size_t i = 0; i < count; i++) list[i] = texts[i].at;
    return list;
}

/* The members sent with each turn, as one JSON object. */
static void append_own(const struct config_agent *from, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    if (from->sent_config.len) json_member_raw(&w, "config", from->sent_config);
    if (from->sent_metadata.len) json_member_raw(&w, "metadata", from->sent_metadata);
    json_member_str(&w, "history", str_from(config_histories[from->history]));
    json_close(&w);
}

bool team_agent_new(const struct config_agent *from, const struct team_resources *resources,
                    struct provider **ret, struct err *e) {
    const char **command = team_texts(from->command, from->command_count);
    const char **environment = team_texts(from->environment, from->environment_count);
    struct http_header *headers = mem_zero(from->header_count + 1, sizeof(*headers));
    struct buf own;
    for (size_t i = 0; i < from->header_count; i++)
        headers[i] = (struct http_header){from->headers[i].name, from->headers[i].value};
    buf_init(&own, from->sent_config.len + from->sent_metadata.len + KIB);
    append_own(from, &own);
    const struct agent_options options = {.name = from->slug,
                                          .model = from->model.name,
                                          .silence_ms = from->silence_ms,
                                          .command = command,
                                          .environment = environment,
                                          .processes_max = from->processes,
                                          .url = from->url,
                                          .key = from->key,
                                          .headers = headers,
                                          .header_count = from->header_count,
                                          .streams = from->streams,
                                          .address = from->address,
                                          .tls = from->tls,
                                          .remote_agent = from->remote_agent,
                                          .stream_per_turn = from->stream_per_turn,
                                          .own = buf_str(&own),
                                          .library = from->library,
                                          .config = from->sent_config,
                                          .processes = resources->processes,
                                          .http = resources->pool};
    struct err why;
    bool made = from->kind->make(&options, ret, &why);
    buf_done(&own);
    free(headers);
    free(command);
    free(environment);
    return made ||
           yaml_err(e, yaml_find(from->at, str_from(from->kind->needs)), "%s", why.text);
}
