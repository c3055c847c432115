#include "wire/token.h"
#include "base/clock.h"
#include "base/nearest.h"
#include "cli/cli.h"
#include "contract/crawbl/options.h"
#include "wire/json.h"

#include <stdio.h>

static const char usage[] =
    "weir token new [--user USER] [--workspace WORKSPACE] [--demo] [--json]\n"
    "weir token check TOKEN [--demo] [--json]\n\n"
    "Make a caller's token, or say whose one is. The key is CRAWBL_MCP_SIGNING_KEY or\n"
    "tokens.key_file; without either, or with --demo, the demo's own in the data folder.\n";

struct token_arguments {
    const char *user, *workspace;
    bool demo;
};

/* A missing key is made for a new token; a check writes nothing. */
static bool find_demo_key(const struct config *config, bool make, struct buf *out,
                          struct err *e) {
    if (make) return demo_key_get(config->data, out, e);
    if (demo_key_find(config->data, out, e)) return true;
    return err_add(e, "there is no key to check with: set CRAWBL_MCP_SIGNING_KEY, or have "
                      "`weir token new` make the demo's");
}

static bool load_keys(const struct config *config, bool demo, bool make,
                      struct token_keys **ret, struct err *e) {
    const struct crawbl_options *options = crawbl_options(config);
    struct token_keys *keys = crawbl_keys_new(options);
    struct buf key;
    bool trimmed;
    buf_init(&key, 4 * KIB);
    demo = demo || !options->key.len;
    bool got = demo ? find_demo_key(config, make, &key, e) : buf_append(&key, options->key);
    got = got && token_keys_add(keys, buf_str(&key), &trimmed, e);
    if (got && !demo && options->key_previous.len) {
        got = token_keys_add(keys, options->key_previous, &trimmed, e);
    }
    buf_done(&key);
    if (!got) {
        token_keys_free(keys);
        return false;
    }
    *ret = keys;
    return true;
}

/* `text` stands in it unless it is empty. */
static void put_claims(const struct token *token, struct str text, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    if (text.len) json_member_str(&writer, "token", text);
    json_member_str(&writer, "user", token->user);
    json_member_str(&writer, "workspace", token->workspace);
    if (token->dated) json_member_i64(&writer, "unix_s", token->unix_s);
    json_close(&writer);
}

static int mint(const struct token_keys *keys, const struct token_arguments *arguments,
                bool json) {
    const struct token claims = {.user = str_from(arguments->user),
                                 .workspace = str_from(arguments->workspace),
                                 .dated = true,
                                 .unix_s = clock_unix_ms() / 1000};
    struct buf token, out;
    struct err e;
    buf_init(&token, 4 * KIB);
    buf_init(&out, 16 * KIB);
    bool minted = token_mint(keys, claims.user, claims.workspace, claims.unix_s, &token, &e);
    if (minted && json) put_claims(&claims, buf_str(&token), &out);
    if (minted) printf(STR_FMT "\n", STR_ARG(json ? buf_str(&out) : buf_str(&token)));
    buf_done(&out);
    buf_done(&token);
    return minted ? EXIT_DONE : cli_fail(EXIT_USAGE, &e);
}

static void print_claims(const struct token *token, bool json) {
    struct buf out;
    buf_init(&out, 16 * KIB);
    if (json) {
        put_claims(token, STR_EMPTY, &out);
    } else {
        buf_printf(&out, "valid: user " STR_FMT ", workspace " STR_FMT "%s",
                   STR_ARG(token->user), STR_ARG(token->workspace),
                   token->dated ? "" : ", undated: it never expires");
    }
    printf(STR_FMT "\n", STR_ARG(buf_str(&out)));
    buf_done(&out);
}

static int cli_token_check(const struct token_keys *keys, struct str text, bool json) {
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
    enum token_verdict verdict = token_verify(keys, text, clock_unix_ms() / 1000, room, &token);
    if (verdict != TOKEN_VALID) {
        fprintf(stderr, "weir: error: the token is %s\n", token_verdict_name(verdict));
        return EXIT_FAILED;
    }
    print_claims(&token, json);
    return EXIT_DONE;
}

static void token_explain(const struct config *config, const char *const *acts) {
    struct str act =
        config->operands && config->operand_count ? config->operands[0] : STR_EMPTY;
    bool checks = str_equal(act, STR("check")), makes = str_equal(act, STR("new"));
    if (checks)
        (void)cli_operands_fit(config, 2, 2, "the token");
    else if (makes)
        (void)cli_operands_fit(config, 1, 1, NULL);
    else if (act.len)
        fprintf(stderr, "weir: error: '" STR_FMT "' is unknown\n", STR_ARG(act));
    else
        cli_say_acts(acts);
    fprintf(stderr, "%s", usage);
}

static int token_act(const struct asked *asked, void *ctx) {
    const struct token_arguments *arguments = ctx;
    const struct config *config = asked->config;
    const struct str *operands = config->operands;
    bool is_new = config->operand_count == 1 && str_equal(operands[0], STR("new"));
    bool is_check = config->operand_count == 2 && str_equal(operands[0], STR("check"));
    if (!is_new && !is_check) {
        static const char *const known[] = {"new", "check", NULL};
        struct str meant =
            operands && config->operand_count ? nearest_name(operands[0], known) : STR_EMPTY;
        if (meant.len && !str_equal(meant, operands[0])) {
            fprintf(stderr,
                    "weir: error: weir token " STR_FMT " is not right; did you mean "
                    "'weir token " STR_FMT "'? See weir token --help\n",
                    STR_ARG(operands[0]), STR_ARG(meant));
        } else {
            token_explain(config, known);
        }
        return EXIT_USAGE;
    }
    struct token_keys *keys;
    struct err e;
    if (!load_keys(config, arguments->demo, is_new, &keys, &e))
        return cli_fail(EXIT_FAILED, &e);
    int code = is_new ? mint(keys, arguments, asked->json)
                      : cli_token_check(keys, operands[1], asked->json);
    token_keys_free(keys);
    return code;
}

int command_token(int arg_count, const char *const *args) {
    struct token_arguments arguments = {.user = "demo", .workspace = "demo"};
    const struct argument_flag flags[] = {{.name = "user", .value = &arguments.user},
                                          {.name = "workspace", .value = &arguments.workspace},
                                          {.name = "demo", .given = &arguments.demo},
                                          {.name = NULL}};
    const struct command_form form = {.usage = usage,
                                      .flags = flags,
                                      .takes = TAKES_JSON,
                                      .fits = cli_fits_all,
                                      .act = token_act};
    return cli_command(arg_count, args, &form, &arguments);
}
