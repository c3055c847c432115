/* config_build: what the parts of config_load() share. Private to daemon/. */
#ifndef WEIR_DAEMON_CONFIG_BUILD_H
#define WEIR_DAEMON_CONFIG_BUILD_H

#include "daemon/setting.h"

#define CONFIG_ARENA_BYTES (8 * MIB)
#define CONFIG_WARNINGS_MAX 32
#define CONFIG_PROBLEMS_MAX 64

/* The longest secret: far beyond any key, small enough that a wrong file is noticed. */
#define SECRET_MAX_BYTES (4 * KIB)

/* Set one value and remember where it came from. The error does not say where. */
MUST_CHECK bool config_apply(struct config *config, const struct setting *setting,
                             struct str text, enum config_source source, const char *name,
                             struct err *e);

/* A secret as it was given: white space around it is removed, with a warning unless it is the
 * line end of a file. `where` names the variable or the file. */
MUST_CHECK bool config_apply_secret(struct config *config, const struct setting *setting,
                                    struct str text, enum config_source source,
                                    const char *name, bool from_file, struct err *e);

/* The same, from the file at `path`. */
MUST_CHECK bool config_read_secret(struct config *config, const struct setting *setting,
                                   struct str path, enum config_source source, const char *name,
                                   struct err *e);

/* A sentence to log later. Beyond CONFIG_WARNINGS_MAX they are dropped. */
PRINTF_LIKE(2, 3) void config_warn(struct config *config, const char *format, ...);

/* A mistake was made. When all are wanted, note this one and say true: go on. */
MUST_CHECK bool config_goes_on(struct config *config, const struct err *why);

/* Read the settings file at config->file. */
MUST_CHECK bool config_read_file(struct config *config, struct err *e);

/* The value of a variable; at == NULL when it is not set, or empty. */
struct str config_env(const struct config_input *input, const char *name);

#endif
