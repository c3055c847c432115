#include "mcp/generation.h"

struct str mcp_offered_version(void) {
    return mcp_version_at(0);
}

const char *mcp_known_version(struct json version) {
    for (size_t i = 0; i < MCP_VERSIONS; i++) {
        if (json_is(version, mcp_version_at(i))) return mcp_version_at(i).at;
    }
    return NULL;
}

/* Choose from the versions that the server lists, preferring the stateless one. */
static enum mcp_generation listed(struct json supported) {
    enum mcp_generation found = MCP_UNKNOWN;
    struct json version;
    struct json_reader all = json_enter(supported);
    while (json_next_item(&all, &version)) {
        if (json_is(version, STR(MCP_STATELESS_VERSION))) return MCP_STATELESS;
        if (mcp_known_version(version)) found = MCP_HANDSHAKE;
    }
    return found;
}

enum mcp_generation mcp_generation_of_error(int64_t code, struct json data) {
    if (code == MCP_UNSUPPORTED_VERSION) return listed(json_find(data, STR("supported")));
    bool stateless = code == MCP_HEADER_MISMATCH || code == MCP_MISSING_CAPABILITY;
    return stateless ? MCP_STATELESS : MCP_UNKNOWN;
}

static void write_identity(struct json_writer *w, enum mcp_elicitation elicitation) {
    json_member_str(w, "io.modelcontextprotocol/protocolVersion", STR(MCP_STATELESS_VERSION));
    json_member_object(w, "io.modelcontextprotocol/clientInfo");
    json_member_str(w, "name", STR("weir"));
    json_member_str(w, "version", STR("0.1.0"));
    json_close(w);
    json_member_object(w, "io.modelcontextprotocol/clientCapabilities");
    mcp_write_capabilities(w, elicitation);
    json_close(w);
}

static void copy_member(struct json key, struct json value, struct buf *out) {
    buf_append(out, key.raw);
    buf_append_byte(out, ':');
    buf_append(out, value.raw);
}

/* What the call itself says there, such as its trace. */
static void copy_meta(struct json meta, struct buf *out) {
    struct json key, value;
    struct json_reader members = json_enter(meta);
    while (meta.kind == JSON_OBJECT && json_next_member(&members, &key, &value)) {
        buf_append_byte(out, ',');
        copy_member(key, value, out);
    }
}

/* The members are copied unchanged after `_meta`. */
void mcp_write_params(enum mcp_generation generation, enum mcp_elicitation elicitation,
                      struct str params, uint64_t token, struct buf *out) {
    bool stateless = generation == MCP_STATELESS;
    struct json key, value;
    struct json_reader members = json_enter(json_of(params));
    if (!stateless && !token) {
        buf_append(out, params);
        return;
    }
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_object(&w, "_meta");
    if (stateless) write_identity(&w, elicitation);
    if (token) json_member_u64(&w, "progressToken", token);
    copy_meta(json_find(json_of(params), STR("_meta")), out);
    json_close(&w);
    while (json_next_member(&members, &key, &value)) {
        if (json_is(key, STR("_meta"))) continue;
        buf_append_byte(out, ',');
        copy_member(key, value, out);
    }
    buf_append_byte(out, '}');
}
