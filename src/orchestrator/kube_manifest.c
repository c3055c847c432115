#include "orchestrator/kube_manifest.h"

#include "orchestrator/runtimes.h"
#include "wire/json.h"
#include "wire/moment.h"

#define MOMENT_ROOM 40

#define SECRETS "/run/secrets/weir"

static void write_labels(struct json_writer *w, const char *key,
                         const struct kube_runtime *runtime) {
    json_member_object(w, key);
    json_member_str(w, "app.kubernetes.io/name", STR("agent-runtime"));
    json_member_str(w, "app.kubernetes.io/instance", runtime->name);
    json_member_str(w, KUBE_LABEL, STR(KUBE_LABEL_VALUE));
    json_close(w);
}

static void write_selector(struct json_writer *w, const struct kube_runtime *runtime) {
    json_member_str(w, "app.kubernetes.io/instance", runtime->name);
}

static void write_head(struct json_writer *w, const char *version, const char *kind,
                       const struct kube_runtime *runtime) {
    json_open_object(w);
    json_member_str(w, "apiVersion", str_from(version));
    json_member_str(w, "kind", str_from(kind));
    json_member_object(w, "metadata");
    json_member_str(w, "name", runtime->name);
    write_labels(w, "labels", runtime);
    json_member_object(w, "annotations");
    json_member_str(w, KUBE_WORKSPACE, runtime->workspace);
    json_close(w);
    json_close(w);
}

/* --- the container ------------------------------------------------------------------------ */

static void write_arguments(struct json_writer *w, const struct kube_runtime *runtime) {
    const struct runtimes_word words[] = {{STR("{workspace}"), runtime->workspace},
                                          {STR("{user}"), runtime->user}};
    json_member_array(w, "args");
    for (struct str rest = runtime->arguments; rest.len;) {
        struct buf filled;
        struct str word = str_split(rest, ' ', &rest);
        if (!word.len) continue;
        buf_init(&filled, 4 * KIB);
        runtimes_fill(word, words, ARRAY_LEN(words), &filled);
        json_write_str(w, buf_str(&filled));
        buf_done(&filled);
    }
    json_close(w);
}

static void write_probe(struct json_writer *w, const char *key, int first_s, int every_s,
                        int timeout_s, int failures) {
    json_member_object(w, key);
    json_member_object(w, "grpc");
    json_member_i64(w, "port", KUBE_PORT);
    json_close(w);
    json_member_i64(w, "initialDelaySeconds", first_s);
    json_member_i64(w, "periodSeconds", every_s);
    json_member_i64(w, "timeoutSeconds", timeout_s);
    json_member_i64(w, "failureThreshold", failures);
    json_close(w);
}

static void write_amounts(struct json_writer *w, const char *key, const char *cpu,
                          const char *memory) {
    json_member_object(w, key);
    json_member_str(w, "cpu", str_from(cpu));
    json_member_str(w, "memory", str_from(memory));
    json_close(w);
}

static void write_mount(struct json_writer *w, const char *name, const char *path,
                        bool read_only) {
    json_open_object(w);
    json_member_str(w, "name", str_from(name));
    json_member_str(w, "mountPath", str_from(path));
    if (read_only) json_member_bool(w, "readOnly", true);
    json_close(w);
}

static void write_variable(struct json_writer *w, const char *name, const char *value) {
    json_open_object(w);
    json_member_str(w, "name", str_from(name));
    json_member_str(w, "value", str_from(value));
    json_close(w);
}

static void write_container(struct json_writer *w, const struct kube_runtime *runtime) {
    json_open_object(w);
    json_member_str(w, "name", STR("agent-runtime"));
    json_member_str(w, "image", runtime->image);
    write_arguments(w, runtime);
    json_member_array(w, "env");
    write_variable(w, "SECRETS_DIR", SECRETS);
    write_variable(w, "WEIR_DATA", "/cache");
    json_close(w);
    json_member_array(w, "ports");
    json_open_object(w);
    json_member_str(w, "name", STR("grpc"));
    json_member_i64(w, "containerPort", KUBE_PORT);
    json_close(w);
    json_close(w);
    write_probe(w, "startupProbe", 0, 5, 5, 24);
    write_probe(w, "readinessProbe", 5, 10, 5, 3);
    write_probe(w, "livenessProbe", 5, 10, 5, 3);
    json_member_object(w, "resources");
    write_amounts(w, "requests", "50m", "64Mi");
    write_amounts(w, "limits", "250m", "256Mi");
    json_close(w);
    json_member_object(w, "securityContext");
    json_member_bool(w, "readOnlyRootFilesystem", true);
    json_member_bool(w, "allowPrivilegeEscalation", false);
    json_member_object(w, "capabilities");
    json_member_array(w, "drop");
    json_write_str(w, STR("ALL"));
    json_close(w);
    json_close(w);
    json_close(w);
    json_member_array(w, "volumeMounts");
    write_mount(w, "cache", "/cache", false);
    write_mount(w, "tmp", "/tmp", false);
    if (runtime->secret.len) write_mount(w, "secrets", SECRETS, true);
    json_close(w);
    json_close(w);
}

/* --- the pod ------------------------------------------------------------------------------ */

static void write_scratch(struct json_writer *w, const char *name, const char *size,
                          bool in_memory) {
    json_open_object(w);
    json_member_str(w, "name", str_from(name));
    json_member_object(w, "emptyDir");
    json_member_str(w, "sizeLimit", str_from(size));
    if (in_memory) json_member_str(w, "medium", STR("Memory"));
    json_close(w);
    json_close(w);
}

static void write_volumes(struct json_writer *w, const struct kube_runtime *runtime) {
    json_member_array(w, "volumes");
    write_scratch(w, "cache", "512Mi", false);
    write_scratch(w, "tmp", "128Mi", true);
    if (runtime->secret.len) {
        json_open_object(w);
        json_member_str(w, "name", STR("secrets"));
        json_member_object(w, "secret");
        json_member_str(w, "secretName", runtime->secret);
        json_close(w);
        json_close(w);
    }
    json_close(w);
}

static void write_pod(struct json_writer *w, const struct kube_runtime *runtime) {
    json_member_object(w, "template");
    json_member_object(w, "metadata");
    write_labels(w, "labels", runtime);
    json_close(w);
    json_member_object(w, "spec");
    json_member_bool(w, "automountServiceAccountToken", false);
    json_member_bool(w, "enableServiceLinks", false);
    json_member_object(w, "securityContext");
    json_member_bool(w, "runAsNonRoot", true);
    json_member_i64(w, "runAsUser", 65532);
    json_member_i64(w, "runAsGroup", 65532);
    json_member_i64(w, "fsGroup", 65532);
    json_member_object(w, "seccompProfile");
    json_member_str(w, "type", STR("RuntimeDefault"));
    json_close(w);
    json_close(w);
    json_member_array(w, "containers");
    write_container(w, runtime);
    json_close(w);
    write_volumes(w, runtime);
    json_close(w);
    json_close(w);
}

bool kube_deployment(const struct kube_runtime *runtime, struct buf *out) {
    struct json_writer w = json_writer(out);
    write_head(&w, "apps/v1", "Deployment", runtime);
    json_member_object(&w, "spec");
    json_member_i64(&w, "replicas", 1);
    json_member_object(&w, "strategy");
    json_member_str(&w, "type", STR("Recreate"));
    json_close(&w);
    json_member_object(&w, "selector");
    json_member_object(&w, "matchLabels");
    write_selector(&w, runtime);
    json_close(&w);
    json_close(&w);
    write_pod(&w, runtime);
    json_close(&w);
    json_close(&w);
    return buf_ok(out);
}

bool kube_service(const struct kube_runtime *runtime, struct buf *out) {
    struct json_writer w = json_writer(out);
    write_head(&w, "v1", "Service", runtime);
    json_member_object(&w, "spec");
    json_member_object(&w, "selector");
    write_selector(&w, runtime);
    json_close(&w);
    json_member_array(&w, "ports");
    json_open_object(&w);
    json_member_str(&w, "name", STR("grpc"));
    json_member_i64(&w, "port", KUBE_PORT);
    json_member_i64(&w, "targetPort", KUBE_PORT);
    json_close(&w);
    json_close(&w);
    json_close(&w);
    json_close(&w);
    return buf_ok(out);
}

/* --- about an object that is there ---------------------------------------------------------- */

bool kube_adoption(int64_t unix_s, struct buf *out) {
    struct json_writer w = json_writer(out);
    char room[MOMENT_ROOM];
    struct buf now = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    json_open_object(&w);
    json_member_object(&w, "metadata");
    json_member_object(&w, "annotations");
    json_member_str(&w, KUBE_ADOPTED, moment_put(&now, unix_s, 0) ? buf_str(&now) : STR_EMPTY);
    json_close(&w);
    json_close(&w);
    json_close(&w);
    return buf_ok(out);
}

bool kube_deletion(struct str uid, struct str version, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "apiVersion", STR("v1"));
    json_member_str(&w, "kind", STR("DeleteOptions"));
    json_member_str(&w, "propagationPolicy", STR("Background"));
    if (uid.len) {
        json_member_object(&w, "preconditions");
        json_member_str(&w, "uid", uid);
        json_member_str(&w, "resourceVersion", version);
        json_close(&w);
    }
    json_close(&w);
    return buf_ok(out);
}
