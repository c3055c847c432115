/* build: what the parts of config_load() share. Private to config/. */
#ifndef WEIR_CONFIG_BUILD_H
#define WEIR_CONFIG_BUILD_H

#include "config/setting.h"
#include "wire/yaml.h"

#define CONFIG_ARENA_BYTES (8 * MIB)
#define CONFIG_WARNINGS_MAX 32
#define CONFIG_PROBLEMS_MAX 64

/* Providers that are listed, and those that are only named. */
#define CONFIG_PROVIDERS_MAX 64

/* The longest secret: far beyond any key, small enough that a wrong file is noticed. */
#define SECRET_MAX_BYTES (4 * KIB)

/* Our own rows; a config also has those of its input. */
extern const struct setting settings[];
extern const size_t setting_count;

/* Set one value and remember where it came from. The error does not say where. */
MUST_CHECK bool config_apply(struct config *config, const struct setting *setting,
                             struct str text, enum config_source source, const char *name,
                             struct err *e);

/* A secret as it was given: white space around it is removed, with a warning unless it is the
 * line end of a file. `where` names the variable or the file. */
MUST_CHECK bool config_apply_secret(struct config *config, const struct setting *setting,
                                    struct str text, enum config_source source,
                                    const char *name, bool from_file, struct err *e);

/* The file of a secret that was mounted: $SECRETS_DIR/NAME, by default /mnt/secrets/NAME.
 * False: there is none. `room` holds the path. */
bool config_mounted_secret(const struct config_input *input, const char *name,
                           struct buf *room);

/* The same, from the file at `path`. */
MUST_CHECK bool config_read_secret(struct config *config, const struct setting *setting,
                                   struct str path, enum config_source source, const char *name,
                                   struct err *e);

/* A sentence to log later. Beyond CONFIG_WARNINGS_MAX they are dropped. */
PRINTF_LIKE(2, 3) void config_warn(struct config *config, const char *format, ...);

/* A step that went well, or whose mistake is noted: go on. */
MUST_CHECK bool config_step(struct config *config, bool well, const struct err *why);

/* Read the settings file at config->file. */
MUST_CHECK bool config_read_file(struct config *config, const struct config_input *input,
                                 struct err *e);

/* The value of a variable; at == NULL when it is not set, or empty. */
struct str config_env(const struct config_input *input, const char *name);

/* A path in the file is meant from where the file stands. `room` may hold the result. */
struct str config_from_folder(const struct config *config, struct str path, struct buf *room);

/* --- the sections of the file, each in a file of its own ---------------------------------- */

typedef bool config_section_fn(struct config *config, const struct config_input *input,
                               const struct yaml *node, struct err *e);

extern const struct config_list config_provider_list, config_agent_list, config_tool_map,
    config_price_list, config_budget_list, config_connector_list;

/* All of them; ends with NULL. */
extern const struct config_list *const config_lists[];

/* A map of any names, not a list. */
config_section_fn config_read_tools;

/* A file that is no settings file but AgentBreeder's agent.yaml. */
bool config_is_breeder(const struct config *config, const struct yaml *root);
config_section_fn config_read_breeder;

/* When everything has been read: who answers for each agent. */
MUST_CHECK bool config_resolve_models(struct config *config, const struct config_input *input,
                                      struct err *e);

/* And who answers for each connector. */
MUST_CHECK bool config_resolve_connectors(struct config *config,
                                          const struct config_input *input, struct err *e);

/* --- the pod of a Crawbl workspace (pod.c) ------------------------------------------------ */

/* A flag of the runtime that the pod was made for, taken and unused. */
bool config_pod_flag(struct str flag);

/* One warning that names all that was given and is not used. */
void config_pod_warn(struct config *config, const struct config_input *input);

/* Another folder than config->data where that cannot be written.
 * errors  ERR_UNAVAILABLE there is none */
MUST_CHECK bool config_pod_data(struct config *config, struct err *e);

/* The model of a pod that names none, and the search that its endpoint switches on. */
void config_pod_model(struct config *config);
void config_pod_search(struct config *config);

/* --- providers ---------------------------------------------------------------------------- */

/* The provider of this name: one that is listed, else one that is known and now joins them.
 * ret is NULL when there is none.
 * errors  its key cannot be read, or there are too many */
MUST_CHECK bool config_provider_get(struct config *config, const struct config_input *input,
                                    struct str name, struct config_provider **ret,
                                    struct err *e);

/* Offer the names of all that config_provider_get() finds. */
struct nearest;
void config_offer_providers(const struct config *config, struct nearest *nearest);

/* Whose model this is by its first letters ("gpt-4o": openai), or empty. */
struct str config_vendor_of(struct str model);

struct config_key_names {
    struct str names[3]; /* variables, the first one set counts */
    size_t count;
    struct str file; /* that holds it, from where the program stands; empty: none */
};

/* A key: from a variable, from the file that NAME_FILE names, from `file`, or from a systemd
 * credential of that name; none is no error. It goes to the arena; who keeps it forgets it. */
MUST_CHECK bool config_find_key(struct config *config, const struct config_input *input,
                                const struct config_key_names *names, struct str *ret_key,
                                struct str *ret_source, struct err *e);

/* --- entries of lists (entry.c) ---------------------------------------------------------- */

/* Fill reading->entry from `map`; what is absent stays as it was. */
MUST_CHECK bool entry_read(const struct entry_schema *schema, const struct reading *reading,
                           const struct yaml *map, struct err *e);

/* As an entry is before it is read. */
void entry_blank(const struct entry_schema *schema, void *entry);

MUST_CHECK bool config_read_list(struct config *config, const struct config_input *input,
                                 const struct config_list *list, const struct yaml *node,
                                 struct err *e);

/* A map or a list, with `what` in the error. */
MUST_CHECK bool config_want(const struct yaml *node, enum yaml_kind kind, const char *what,
                            struct err *e);

/* Returns false. */
bool config_too_large(const struct yaml *node, struct err *e);

/* --- values (kind.c) ---------------------------------------------------------------------- */

/* Dollars, "$1.50" or 1.50, as billionths of one. */
MUST_CHECK bool config_dollars(const struct yaml *node, int64_t *ret, struct err *e);

/* One of `choices` (ends with NULL). */
MUST_CHECK bool config_choice(const struct yaml *node, const char *const *choices,
                              unsigned *ret, struct err *e);

/* Of enum config_policy: "allow", "ask", "hidden". */
extern const char *const config_policies[];

/* The key of `node` as the name of a tool. */
MUST_CHECK bool config_tool_name(const struct yaml *node, struct err *e);

/* Budgets of agents that there are not: nobody ever uses them up. */
void config_warn_of_budgets(struct config *config);

/* The lists that were read, as lines of config_print(). */
void config_print_lists(const struct config *config, struct buf *out);

#endif
