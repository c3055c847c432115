#include "contract/agent_card.h"

#include "config/config.h"

#define BASE_MAX_BYTES 1024

struct agent_card_settings agent_card_settings(const struct config *config) {
    return (struct agent_card_settings){.a2a = config->agent.a2a,
                                        .url = config->agent.url,
                                        .webhooks =
                                            config->agent.webhooks != CONFIG_WEBHOOKS_OFF,
                                        .tls = config->tls.cert.len > 0,
                                        .name = config->agent.name,
                                        .version = config->agent.version};
}

/* --- addresses ---------------------------------------------------------------------------- */

static void append_base(struct route_call *call, const struct agent_card_settings *settings,
                        struct buf *out) {
    struct str host = exchange_authority(route_exchange(call));
    struct str url = settings->url;
    while (str_ends(url, STR("/"))) url = str_head(url, url.len - 1);
    if (url.len) {
        buf_append(out, url);
        return;
    }
    bool plain = host.len > 0 && host.len < 300 && str_is_plain(host, ".:[]-_");
    buf_append(out, settings->tls ? STR("https://") : STR("http://"));
    buf_append(out, plain ? host : STR("localhost"));
}

static void write_interface(struct json_writer *w, struct str url, const char *binding,
                            const char *version) {
    json_open_object(w);
    json_member_str(w, "url", url);
    json_member_str(w, "protocolBinding", str_from(binding));
    json_member_str(w, "protocolVersion", str_from(version));
    json_close(w);
}

/* rpc: of JSON-RPC; rest: what the paths of HTTP+JSON follow. */
static void write_addresses(struct json_writer *w, struct str rpc, struct str rest) {
    json_member_str(w, "url", rpc);
    json_member_str(w, "preferredTransport", STR("JSONRPC"));
    json_member_str(w, "protocolVersion", STR("0.3.0"));
    json_member_array(w, "supportedInterfaces");
    write_interface(w, rpc, "JSONRPC", "1.0");
    write_interface(w, rest, "HTTP+JSON", "1.0");
    write_interface(w, rpc, "JSONRPC", "0.3");
    json_close(w);
}

/* --- what it can do ----------------------------------------------------------------------- */

static void write_modes(struct json_writer *w, const char *key, bool images) {
    json_member_array(w, key);
    json_write_str(w, STR("text/plain"));
    json_write_str(w, STR("application/json"));
    if (images) json_write_str(w, STR("image/*"));
    json_close(w);
}

static struct str described(const struct agent *agent, struct buf *room) {
    if (agent->description.len) return agent->description;
    buf_clear(room);
    buf_append(room, STR("The agent "));
    buf_append(room, agent->slug);
    return buf_str(room);
}

static void write_skill(struct json_writer *w, const struct agent *agent) {
    struct buf room;
    buf_init(&room, BASE_MAX_BYTES);
    json_open_object(w);
    json_member_str(w, "id", agent->slug);
    json_member_str(w, "name", agent->slug);
    json_member_str(w, "description", described(agent, &room));
    json_member_array(w, "tags");
    json_write_str(w, STR("agent"));
    json_close(w);
    json_close(w);
    buf_done(&room);
}

static void write_skills(struct json_writer *w, const struct engine *engine,
                         const struct agent *agent) {
    bool first = agent == &engine->agents[0];
    json_member_array(w, "skills");
    for (size_t i = 0; i < engine->agent_count; i++) {
        if (first || &engine->agents[i] == agent) write_skill(w, &engine->agents[i]);
    }
    json_close(w);
}

static void write_capabilities(struct json_writer *w, bool webhooks) {
    json_member_object(w, "capabilities");
    json_member_bool(w, "streaming", true);
    json_member_bool(w, "pushNotifications", webhooks);
    json_member_bool(w, "extendedAgentCard", true);
    json_close(w);
    json_member_bool(w, "supportsAuthenticatedExtendedCard", true);
}

/* --- what a caller must bring --------------------------------------------------------------- */

/* 0.3 has the members type and scheme, and `security`; 1.0 has the others. */
static void write_security(struct json_writer *w) {
    json_member_raw(w, "securitySchemes",
                    STR("{\"bearer\":{\"type\":\"http\",\"scheme\":\"bearer\","
                        "\"httpAuthSecurityScheme\":{\"scheme\":\"bearer\"}}}"));
    json_member_raw(w, "security", STR("[{\"bearer\":[]}]"));
    json_member_raw(w, "securityRequirements",
                    STR("[{\"schemes\":{\"bearer\":{\"list\":[]}}}]"));
}

/* --- the card ----------------------------------------------------------------------------- */

void agent_card_write(struct route_call *call, const struct agent_card_settings *settings,
                      const struct engine *engine, const struct agent *agent, bool secured,
                      struct json_writer *w) {
    struct buf rpc, rest, room;
    buf_init(&rpc, 2 * BASE_MAX_BYTES);
    buf_init(&rest, 2 * BASE_MAX_BYTES);
    buf_init(&room, BASE_MAX_BYTES);
    append_base(call, settings, &rest);
    buf_append(&rpc, buf_str(&rest));
    buf_append(&rpc, STR("/a2a"));
    if (agent != &engine->agents[0]) {
        buf_append_byte(&rpc, '/');
        buf_append_percent(&rpc, agent->slug, "-_.~");
        buf_clear(&rest);
        buf_append(&rest, buf_str(&rpc));
    }
    json_member_str(w, "description", described(agent, &room));
    write_addresses(w, buf_str(&rpc), buf_str(&rest));
    write_capabilities(w, settings->webhooks);
    write_modes(w, "defaultInputModes", true);
    write_modes(w, "defaultOutputModes", false);
    write_skills(w, engine, agent);
    if (secured) write_security(w);
    buf_done(&room);
    buf_done(&rest);
    buf_done(&rpc);
}
