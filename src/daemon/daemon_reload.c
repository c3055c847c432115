/* daemon_reload: the daemon takes new settings, or makes everything of the same ones again. */
#include "daemon/daemon_inner.h"

#include "base/log.h"
#include "daemon/notify.h"

static void daemon_remake(struct daemon *daemon);

static void take_config_snapshot(struct daemon *daemon, struct config_snapshot *snapshot) {
    struct buf fixed;
    buf_init(&fixed, 64 * KIB);
    config_snapshot_needs_restart(daemon->config, snapshot->config, &fixed);
    if (fixed.len)
        log_warning("these settings differ and wait for a restart: " STR_FMT,
                    STR_ARG(buf_str(&fixed)));
    buf_done(&fixed);
    config_snapshot_unref(daemon->snapshot);
    daemon->snapshot = snapshot;
    if (daemon->reload.options.same) {
        daemon_order(daemon, NULL);
        daemon_audit_config(daemon, "tools");
        log_debug("the tools of the MCP servers are others now");
        return;
    }
    config_log(snapshot->config);
    store_keep_keys(daemon->store, snapshot->config->limits.idempotency_ms);
    rate_limits_use(daemon->rates, snapshot->config->limits.rates);
    daemon_order(daemon, NULL);
    presences_use(&daemon->presences, daemon->snapshot);
    store_keep_audit(daemon->store, snapshot->config->audit.keep_ms,
                     snapshot->config->audit.keep_bytes);
    daemon_audit_config(daemon, "reload");
    log_info("the configuration was read again; new turns follow it");
}

void daemon_catch_up(struct daemon *daemon) {
    if (daemon->reload_again) {
        daemon->reload_again = false;
        daemon_reload(daemon);
    }
    if (daemon->remake_again) {
        daemon->remake_again = false;
        daemon_remake(daemon);
    }
}

static void on_reloaded(struct config_snapshot *snapshot, const struct err *failed, void *ctx) {
    struct daemon *daemon = ctx;
    if (daemon->phase == DAEMON_STOPPING) {
        config_snapshot_unref(snapshot);
        return;
    }
    if (failed) {
        log_error("the configuration was not taken: %s; the one before stays", failed->text);
        daemon_audit(daemon, DAEMON_CONFIG, "reload", failed->code, failed->text);
    } else {
        take_config_snapshot(daemon, snapshot);
    }
    if (!daemon->reload.options.same) notify_ready(daemon->snapshot->engine.agent_count);
    daemon_catch_up(daemon);
}

static void read_again(struct daemon *daemon, struct config_snapshot *same) {
    struct err e;
    struct reload_options options = {.input = daemon->options->input,
                                     .same = same,
                                     .running = daemon->snapshot->config,
                                     .made = daemon_snapshot_options(daemon),
                                     .server = daemon->server,
                                     .loop = daemon_home(daemon),
                                     .on_done = on_reloaded,
                                     .ctx = daemon};
    options.made.first = daemon->config;
    if (!reload_start(&daemon->reload, &options, &e)) on_reloaded(NULL, &e, daemon);
}

void daemon_reload(struct daemon *daemon) {
    if (daemon->phase != DAEMON_SERVING || daemon->reload.busy) {
        daemon->reload_again = true;
        return;
    }
    notify_reloading();
    read_again(daemon, NULL);
}

/* A server lists other tools: everything is made again of the settings as they were read. */
static void daemon_remake(struct daemon *daemon) {
    if (daemon->phase == DAEMON_SERVING && !daemon->reload.busy) {
        read_again(daemon, daemon->snapshot);
    } else {
        daemon->remake_again = true;
    }
}

void daemon_on_tools_changed(void *ctx) {
    daemon_remake(ctx);
}
