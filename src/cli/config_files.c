#include "cli/config_files.h"

#include "cli/contracts.h"
#include "server/server.h"
#include "tls/trust.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void problem(struct config *config, const char *setting, struct err *e) {
    err_add(e, "%s", setting);
    config_problem(config, e);
}

/* --- certificates ------------------------------------------------------------------------- */

static void check_certificates(struct config *config) {
    const struct tls_options tls = {config->tls.cert, config->tls.key, config->tls.ca};
    struct err e;
    if ((tls.cert.len || tls.key.len || tls.ca.len) && !server_check_tls(&tls, &e))
        config_problem(config, &e);
}

static void check_trust(struct config *config) {
    const struct trust_options options = {.file = config->tls.trust};
    struct trust *trust = NULL;
    struct err e;
    if (options.file.len && !trust_load(&options, &trust, &e)) problem(config, "tls.trust", &e);
    trust_unref(trust);
}

/* --- folders ------------------------------------------------------------------------------ */

static bool path_text(struct str path, char ret[static PATH_MAX]) {
    if (path.len == 0 || path.len >= PATH_MAX) return false;
    memcpy(ret, path.at, path.len);
    ret[path.len] = '\0';
    return true;
}

/* A start makes the folder if there is none. */
static void check_folder(struct config *config, const char *setting, struct str path) {
    char text[PATH_MAX];
    struct stat info;
    struct err e;
    if (!path_text(path, text) || stat(text, &info) != 0 || S_ISDIR(info.st_mode)) return;
    err_set(&e, ERR_INVALID_ARGUMENT, "'%s' is no folder; name one, or a new path", text);
    problem(config, setting, &e);
}

/* The folder of a path, which is cut there. */
static const char *folder_of(char *path) {
    char *slash = strrchr(path, '/');
    if (!slash) return ".";
    slash[slash == path] = '\0'; /* "/" itself stays */
    return path;
}

/* A start makes the file, but not its folder. */
static void check_parent(struct config *config, const char *setting, struct str path) {
    char text[PATH_MAX];
    struct stat info;
    struct err e;
    if (!path_text(path, text)) return;
    const char *folder = folder_of(text);
    if (stat(folder, &info) != 0) {
        err_set(&e, ERR_INVALID_ARGUMENT, "the folder '%s': %s", folder,
                strerrordesc_np(errno));
    } else if (!S_ISDIR(info.st_mode)) {
        err_set(&e, ERR_INVALID_ARGUMENT, "'%s' is no folder", folder);
    } else {
        return;
    }
    problem(config, setting, &e);
}

static void check_sockets(struct config *config) {
    char setting[64];
    for (size_t i = 0; i < contracts.count; i++) {
        const struct contract *contract = contracts.rows[i];
        if (!contract_is_wanted(contract, config)) continue;
        for (size_t n = 0; n < contract->listener_count; n++) {
            struct str address = contract->listeners[n].address(config);
            if (!str_starts(address, STR("unix:"))) continue;
            snprintf(setting, sizeof(setting), "listener '%s'", contract->listeners[n].name);
            check_parent(config, setting, str_skip(address, sizeof("unix:") - 1));
        }
    }
}

void config_files_check(struct config *config) {
    check_certificates(config);
    check_trust(config);
    check_folder(config, "data", config->data);
    check_folder(config, "record", config->tape.record);
    check_parent(config, "ports_file", config->ports_file);
    check_sockets(config);
}
