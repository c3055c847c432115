#include "cli/cli.h"
#include "mcp/pins.h"
#include "tool/catalogue.h"
#include "wire/json.h"

#include <stdio.h>
#include <string.h>

static const char usage[] =
    "weir tool list [--json]\n"
    "weir tool accept NAME [SETTINGS]\n\n"
    "list: the tools that weir brings. An agent has those that it names under\n"
    "`tools`, those of its script, and those of the section `mcp`.\n"
    "accept: a tool of an MCP server that is not what it was asks before each\n"
    "call. Accept what it is now; the daemon sees it when it lists the tools\n"
    "again, at the latest at its next start.\n";

#define LIST_MAX_BYTES (256 * KIB)

static void list_json(const struct catalogue_row *rows, size_t count, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_array(&writer, "tools");
    for (size_t i = 0; i < count; i++) {
        json_open_object(&writer);
        json_member_str(&writer, "name", rows[i].name);
        json_member_str(&writer, "category", rows[i].category);
        json_member_str(&writer, "summary", rows[i].summary);
        json_close(&writer);
    }
    json_close(&writer);
    json_close(&writer);
    buf_append_byte(out, '\n');
}

static void list_text(const struct catalogue_row *rows, size_t count, struct buf *out) {
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%-20.*s %-10.*s " STR_FMT "\n", STR_ARG(rows[i].name),
                   STR_ARG(rows[i].category), STR_ARG(rows[i].summary));
}

static int accept_tool(int arg_count, const char *const *args) {
    struct config *config;
    struct err e;
    struct buf path;
    int code;
    if (!cli_config(arg_count, args, false, usage, NULL, &config, &code)) return code;
    if (config->operand_count != 1) {
        config_free(config);
        fprintf(stderr, "%s", usage);
        return EXIT_USAGE;
    }
    buf_init(&path, 8 * KIB);
    pins_path(config->data, &path);
    bool accepted = pins_accept(buf_str(&path), STR_EMPTY, config->operands[0], &e);
    buf_done(&path);
    config_free(config);
    return accepted ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

int command_tool(int arg_count, const char *const *args) {
    bool lists = arg_count > 0 && strcmp(args[0], "list") == 0;
    if (arg_count > 1 && strcmp(args[0], "accept") == 0)
        return accept_tool(arg_count - 1, args + 1);
    bool json = lists && arg_count == 2 && strcmp(args[1], "--json") == 0;
    if (!lists || arg_count > 1 + json) {
        bool help = arg_count == 1 && (!strcmp(args[0], "--help") || !strcmp(args[0], "-h"));
        fprintf(help ? stdout : stderr, "%s", usage);
        return help ? EXIT_DONE : EXIT_USAGE;
    }
    struct buf out;
    size_t count;
    const struct catalogue_row *rows = catalogue_rows(&count);
    buf_init(&out, LIST_MAX_BYTES);
    (json ? list_json : list_text)(rows, count, &out);
    printf(STR_FMT, STR_ARG(buf_str(&out)));
    buf_done(&out);
    return EXIT_DONE;
}
