/* build: declarations shared by the parts of config_load(). Private to config/, and to the
 * settings that contracts bring (rows.h). */
#ifndef WEIR_CONFIG_BUILD_H
#define WEIR_CONFIG_BUILD_H

#include "config/setting.h"
#include "wire/yaml.h"

#define CONFIG_ARENA_BYTES (8 * MIB)
#define CONFIG_WARNINGS_MAX 32
#define CONFIG_PROBLEMS_MAX 64

/* Limit for all providers, listed ones and those only named. */
#define CONFIG_PROVIDERS_MAX 64

/* The longest secret. Larger than any key, but small enough to notice a wrong file. */
#define SECRET_MAX_BYTES (4 * KIB)

/* Our own rows. A config also has the rows of its input. */
extern const struct setting settings[];
extern const size_t setting_count;

/* Set one value and note its source. The error does not name the source. */
MUST_CHECK bool config_apply(struct config *config, const struct setting *setting,
                             struct str text, enum config_source source, const char *name,
                             struct err *e);

/* Set a secret. White space around it is removed, with a warning unless it is the line end of a
 * file. `name` names the variable or the file. */
MUST_CHECK bool config_apply_secret(struct config *config, const struct setting *setting,
                                    struct str text, enum config_source source,
                                    const char *name, bool from_file, struct err *e);

/* Find the file of a mounted secret: $SECRETS_DIR/NAME, by default /mnt/secrets/NAME. `room`
 * receives the path. False: there is none. */
bool config_mounted_secret(const struct config_input *input, const char *name,
                           struct buf *room);

/* Set a secret from the file at `path`. */
MUST_CHECK bool config_read_secret(struct config *config, const struct setting *setting,
                                   struct str path, enum config_source source, const char *name,
                                   struct err *e);

/* Add a warning to log later. Warnings beyond CONFIG_WARNINGS_MAX are dropped. */
PRINTF_LIKE(2, 3) void config_warn(struct config *config, const char *format, ...);

/* Warn if a limit can never be reached, because it is more than a wider one. Both are keys. */
void config_warn_of_limit(struct config *config, const char *narrow, const char *wide,
                          const char *why);

/* Whether a contract takes this flag, and ignores it (struct setting_rows). */
bool config_flag_is_unused(const struct config *config, struct str flag);

/* Whether a source has set the value at `member`. */
bool config_is_set(const struct config *config, const void *member);

/* Whether only this machine reaches a listener at this address. Off counts, too. */
bool config_is_loopback(struct str address);

/* Whether to continue: the step succeeded, or its mistake was noted. */
MUST_CHECK bool config_step(struct config *config, bool well, const struct err *why);

/* Read the settings file at config->file. */
MUST_CHECK bool config_read_file(struct config *config, const struct config_input *input,
                                 struct err *e);

/* The value of a variable; at == NULL when it is unset or empty. */
struct str config_env(const struct config_input *input, const char *name);

/* Resolve a path of the file relative to the file's folder. `room` may hold the result. */
struct str config_from_folder(const struct config *config, struct str path, struct buf *room);

/* --- the command line and the environment (sources.c) ------------------------------------- */

/* The command line is read before the file, because it may name the file. */
struct config_flags {
    struct config_flag {
        const struct setting *setting;
        const char *flag;   /* as given */
        const char *before; /* prepended to the value */
        struct str value;
    } * given; /* room for one of each argument */
    size_t count;
    struct str file;
    const struct config *config; /* whose settings it may name */
};

MUST_CHECK bool config_scan_flags(struct config *config, const struct config_input *input,
                                  struct config_flags *flags, struct err *e);
MUST_CHECK bool config_apply_environment(struct config *config,
                                         const struct config_input *input, struct err *e);
MUST_CHECK bool config_apply_flags(struct config *config, const struct config_flags *flags,
                                   struct err *e);

/* A variable with our prefix that is not a setting is probably a typing mistake. */
void config_warn_of_slips(struct config *config, const struct config_input *input);

/* --- the sections of the file, one source file each --------------------------------------- */

typedef bool config_section_fn(struct config *config, const struct config_input *input,
                               const struct yaml *node, struct err *e);

extern const struct config_list config_provider_list, config_agent_list, config_tool_map,
    config_price_list, config_budget_list, config_connector_list, config_issuer_list,
    config_guardrail_list, config_mcp_list;

/* All lists; ends with NULL. */
extern const struct config_list *const config_lists[];

/* The section `tools`: a map with free names, not a list. */
config_section_fn config_read_tools;

/* A tool of the operator's own, under its name in that section (own_tools.c). *ret_policy is the
 * node of its policy, or NULL. */
extern const struct entry_schema config_own_tool_schema;
bool config_is_own_tool(const struct yaml *node);
MUST_CHECK bool config_read_own_tool(const struct reading *reading, const struct yaml *node,
                                     const struct yaml **ret_policy, uint64_t *ret_timeout_ms,
                                     struct err *e);

/* Append one that was made elsewhere, such as from an agent.yaml. */
MUST_CHECK bool config_add_own_tool(struct config *config, const struct config_own_tool *tool,
                                    const struct yaml *at, struct err *e);

/* One with nothing but defaults. */
extern const struct config_own_tool config_own_tool_blank;

/* AgentBreeder's agent.yaml in place of a settings file. */
bool config_is_breeder(const struct config *config, const struct yaml *root);
config_section_fn config_read_breeder;

/* Find what each agent.yaml names, after everything has been read: its subagents, which become
 * agents, its tools, MCP servers, knowledge bases and prompt. */
MUST_CHECK bool config_resolve_breeders(struct config *config, const struct config_input *input,
                                        struct err *e);

/* Find the model and provider of each agent, after everything has been read. */
MUST_CHECK bool config_resolve_models(struct config *config, const struct config_input *input,
                                      struct err *e);

/* Check the names of the guardrails that agents have, after everything has been read. */
MUST_CHECK bool config_resolve_guardrails(struct config *config, struct err *e);

/* An agent's list of them, and that of an agent.yaml. There ret_names->asks says that a human
 * decides about the agent's tools. */
setting_read_fn config_read_agent_guardrails;
struct config_breeder;
MUST_CHECK bool config_read_breeder_guardrails(const struct reading *reading,
                                               const struct yaml *node,
                                               struct config_agent *ret,
                                               struct config_breeder *ret_names, struct err *e);

/* Add a server over HTTP for one agent, or give the agent one of that name and address.
 * errors  there is another of that name, or there are too many */
MUST_CHECK bool config_add_mcp(struct config *config, struct str name, struct str url,
                               struct str agent, const struct yaml *at,
                               const struct config_mcp **ret, struct err *e);

/* The command of an agent that is a program, and its environment: what every program gets, and
 * the variables in `named` (may be NULL). */
MUST_CHECK bool config_read_command(const struct reading *reading, const struct yaml *node,
                                    struct config_agent *ret, struct err *e);
MUST_CHECK bool config_read_environment(const struct reading *reading, const struct yaml *named,
                                        const struct yaml *at, struct config_agent *ret,
                                        struct err *e);

/* How many processes an agent has at most, for each thread, and how long it may be silent. */
#define CONFIG_PROCESSES 4
#define CONFIG_SILENCE_MS (5 * 60 * 1000)

/* Find the provider of each connector. */
MUST_CHECK bool config_resolve_connectors(struct config *config,
                                          const struct config_input *input, struct err *e);

/* --- providers ---------------------------------------------------------------------------- */

/* Find the provider of this name: a listed one, else a known one, which is added to the list.
 * *ret is NULL when there is none.
 * errors  its key cannot be read, or there are too many */
MUST_CHECK bool config_provider_get(struct config *config, const struct config_input *input,
                                    struct str name, struct config_provider **ret,
                                    struct err *e);

/* Offer every name that config_provider_get() finds. */
struct nearest;
void config_offer_providers(const struct config *config, struct nearest *nearest);

/* The vendor of a model, by the model's first letters ("gpt-4o": openai), or empty. */
struct str config_vendor_of(struct str model);

/* Keep an address without the slash at its end. The error does not repeat it. */
MUST_CHECK bool config_keep_url(struct config *config, struct str url, struct str *ret,
                                struct err *e);

/* Whether this is a name of a header that a request may carry; the error is about the key. */
MUST_CHECK bool config_header_name(const struct yaml *node, struct err *e);

/* A map of headers. */
MUST_CHECK bool config_read_headers(const struct reading *reading, const struct yaml *map,
                                    const struct config_header **ret, size_t *ret_count,
                                    struct err *e);

/* A key written in the settings file itself. Returns false. */
bool config_refuse_key(const struct yaml *api_key, struct err *e);

/* A key sent unencrypted can be read by anyone on the way. what: "provider", "agent" */
void config_warn_of_clear_key(struct config *config, const char *what, struct str name,
                              struct str url, struct str key);

struct config_key_names {
    struct str names[3]; /* variables; the first one that is set counts */
    size_t count;
    struct str file; /* a file that holds it, relative to the current folder; empty: none */
};

/* Find a key: in a variable, in the file that NAME_FILE names, in `file`, or in a systemd
 * credential of that name. A missing key is not an error. The key lies in the arena; its owner
 * must wipe it. */
MUST_CHECK bool config_find_key(struct config *config, const struct config_input *input,
                                const struct config_key_names *names, struct str *ret_key,
                                struct str *ret_source, struct err *e);

/* The same for an entry with the members key_env and key_file; either may be empty, and the file
 * is relative to the configuration's folder. `at` is blamed. */
MUST_CHECK bool config_read_key(struct config *config, const struct config_input *input,
                                struct str key_env, struct str key_file, const struct yaml *at,
                                struct str *ret_key, struct str *ret_source, struct err *e);

/* --- entries of lists (entry.c) ---------------------------------------------------------- */

/* Fill reading->entry from `map`. Absent members keep their values. */
MUST_CHECK bool entry_read(const struct entry_schema *schema, const struct reading *reading,
                           const struct yaml *map, struct err *e);

/* Set an entry to its state before it is read. */
void entry_blank(const struct entry_schema *schema, void *entry);

MUST_CHECK bool config_read_list(struct config *config, const struct config_input *input,
                                 const struct config_list *list, const struct yaml *node,
                                 struct err *e);

/* Read a list of names into the arena. `what` names it in errors; NULL is no list, and changes
 * nothing. */
MUST_CHECK bool config_read_names(struct config *config, const struct yaml *list,
                                  const char *what, const struct str **ret, size_t *ret_count,
                                  struct err *e);

/* Check that a node is a map or a list. The error names `what`. */
MUST_CHECK bool config_want(const struct yaml *node, enum yaml_kind kind, const char *what,
                            struct err *e);

/* Returns false. */
bool config_too_large(const struct yaml *node, struct err *e);

/* --- values (kind.c) ---------------------------------------------------------------------- */

/* Read dollars, "$1.50" or 1.50, as billionths of a dollar. */
MUST_CHECK bool config_dollars(const struct yaml *node, int64_t *ret, struct err *e);

/* Read one of `choices` (ends with NULL), as its index. */
MUST_CHECK bool config_choice(const struct yaml *node, const char *const *choices,
                              unsigned *ret, struct err *e);

/* The names of enum config_policy: "allow", "ask", "hidden". */
extern const char *const config_policies[];

/* The names of enum guardrail_action: "redact", "block", "warn". */
extern const char *const config_guardrail_actions[];

/* Check that the key of `node` is a valid tool name. */
MUST_CHECK bool config_tool_name(const struct yaml *node, struct err *e);

/* Warn of budgets for agents that do not exist. Such a budget never has an effect. */
void config_warn_of_budgets(struct config *config);

/* Append the lists that were read, as lines of config_print(). */
void config_print_lists(const struct config *config, struct buf *out);

#endif
