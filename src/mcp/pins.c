#include "mcp/pins.h"

#include "base/file.h"
#include "base/log.h"
#include "wire/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_MAX_BYTES (4 * MIB)

struct pin {
    struct str hash, state, server, tool;
};

static bool read_pin(struct str line, struct pin *ret) {
    struct str rest;
    ret->hash = str_split(line, ' ', &rest);
    ret->state = str_split(rest, ' ', &rest);
    ret->server = str_split(rest, ' ', &rest);
    ret->tool = rest;
    return ret->hash.len == DIGEST_DIGITS && ret->tool.len > 0;
}

static void write_pin(struct buf *out, const struct pin *pin) {
    buf_printf(out, STR_FMT " " STR_FMT " " STR_FMT " " STR_FMT "\n", STR_ARG(pin->hash),
               STR_ARG(pin->state), STR_ARG(pin->server), STR_ARG(pin->tool));
}

static void hash_parts(const struct str *parts, size_t count, char hex[DIGEST_DIGITS + 1]) {
    uint8_t digest[DIGEST_BYTES];
    digest_parts(parts, count, digest);
    digest_digits(digest, DIGEST_DIGITS, hex);
    hex[DIGEST_DIGITS] = '\0';
}

/* A tool that says of itself that it may be repeated is made again after a lost answer. */
static void hash_tool(const struct mcp_tool_info *tool, char hex[DIGEST_DIGITS + 1]) {
    const struct str parts[] = {tool->name, tool->description, tool->schema,
                                tool->idempotent ? STR("idempotent") : STR_EMPTY};
    hash_parts(parts, ARRAY_LEN(parts), hex);
}

/* Whether the pin is of this tool, in the form that was once written: without what it says of
 * repeats. The file then gets the new form. */
static bool is_old_pin(const struct pin *pin, const struct mcp_tool_info *tool) {
    const struct str parts[] = {tool->name, tool->description, tool->schema};
    char hex[DIGEST_DIGITS + 1];
    hash_parts(parts, ARRAY_LEN(parts), hex);
    return str_equal(pin->hash, str_from(hex));
}

void pins_path(struct str data, struct buf *out) {
    buf_printf(out, STR_FMT "/mcp-tools", STR_ARG(data));
}

/* --- the file ----------------------------------------------------------------------------- */

static bool write_file(struct str path, struct str text, struct err *e) {
    char name[4096], beside[4104];
    snprintf(name, sizeof(name), STR_FMT, STR_ARG(path));
    snprintf(beside, sizeof(beside), "%s.new", name);
    int fd = open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool written = fd >= 0 && write(fd, text.at, text.len) == (ssize_t)text.len;
    written = written && fsync(fd) == 0;
    if (fd >= 0) close(fd);
    return (written && rename(beside, name) == 0) ||
           err_set(e, ERR_UNAVAILABLE, "cannot write '%s': %s", name, strerror(errno));
}

/* A missing file counts as empty. */
static bool read_pins(struct str path, struct buf *out, struct err *e) {
    return file_read(path, out, e) || e->code == ERR_NOT_FOUND;
}

static bool find_pin(struct str text, struct str server, struct str tool, struct pin *ret) {
    while (text.len) {
        struct str line = str_split(text, '\n', &text);
        if (read_pin(line, ret) && str_equal(ret->server, server) && str_equal(ret->tool, tool))
            return true;
    }
    return false;
}

/* --- checking ----------------------------------------------------------------------------- */

static bool is_among(const struct mcp_tool_info *tools, size_t count, struct str name) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(tools[i].name, name)) return true;
    }
    return false;
}

/* Keep the pins of other servers, and those of this server's tools that it no longer lists. */
static void keep_others(struct str text, struct str server, const struct mcp_tool_info *tools,
                        size_t count, struct buf *out) {
    while (text.len) {
        struct pin pin;
        struct str line = str_split(text, '\n', &text);
        if (!read_pin(line, &pin)) continue;
        if (!str_equal(pin.server, server) || !is_among(tools, count, pin.tool))
            write_pin(out, &pin);
    }
}

static void check_tool(struct str text, struct str server, struct mcp_tool_info *tool,
                       struct buf *out) {
    char hex[DIGEST_DIGITS + 1];
    struct pin before;
    hash_tool(tool, hex);
    struct pin now = {str_from(hex), STR("known"), server, tool->name};
    if (find_pin(text, server, tool->name, &before)) {
        bool same = str_equal(before.hash, now.hash) || is_old_pin(&before, tool);
        if (!same)
            log_warning("the tool '" STR_FMT "' of the MCP server '" STR_FMT
                        "' is not what it was: each call asks, until `weir tool accept " STR_FMT
                        "`",
                        STR_ARG(tool->name), STR_ARG(server), STR_ARG(tool->name));
        now.state = same ? before.state : STR("changed");
    }
    tool->changed = str_equal(now.state, STR("changed"));
    write_pin(out, &now);
}

void pins_check(struct str path, struct str server, struct mcp_tool_info *tools, size_t count) {
    struct buf before, after;
    struct err e;
    if (!path.len) return;
    buf_init(&before, FILE_MAX_BYTES);
    buf_init(&after, FILE_MAX_BYTES);
    bool done = read_pins(path, &before, &e);
    if (done) {
        keep_others(buf_str(&before), server, tools, count, &after);
        for (size_t i = 0; i < count; i++)
            check_tool(buf_str(&before), server, &tools[i], &after);
        done = str_equal(buf_str(&before), buf_str(&after)) ||
               (buf_ok(&after) ? write_file(path, buf_str(&after), &e)
                               : err_set(&e, ERR_TOO_LARGE, "there are too many tools"));
    }
    if (!done) log_warning("what the tools of MCP servers are is not kept: %s", e.text);
    buf_done(&before);
    buf_done(&after);
}

bool pins_accept(struct str path, struct str server, struct str tool, struct err *e) {
    struct buf before, after;
    size_t found = 0;
    buf_init(&before, FILE_MAX_BYTES);
    buf_init(&after, FILE_MAX_BYTES);
    bool done = read_pins(path, &before, e);
    struct str text = buf_str(&before);
    while (done && text.len) {
        struct pin pin;
        if (!read_pin(str_split(text, '\n', &text), &pin)) continue;
        bool meant = str_equal(pin.tool, tool) && str_equal(pin.state, STR("changed")) &&
                     (!server.len || str_equal(pin.server, server));
        if (meant) pin.state = STR("known");
        found += meant;
        write_pin(&after, &pin);
    }
    if (done && !found)
        done = err_set(e, ERR_NOT_FOUND, "no tool '" STR_FMT "' has changed", STR_ARG(tool));
    done = done && write_file(path, buf_str(&after), e);
    buf_done(&before);
    buf_done(&after);
    return done;
}
