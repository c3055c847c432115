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

#define TEXT_OF(number) TEXT_OF_(number)
#define TEXT_OF_(number) #number
#define PORT TEXT_OF(KUBE_PORT)
#define PROBE(first_s, every_s, timeout_s, failures)                                           \
    STR_INIT("{\"grpc\":{\"port\":" PORT "},\"initialDelaySeconds\":" #first_s                 \
             ",\"periodSeconds\":" #every_s ",\"timeoutSeconds\":" #timeout_s                  \
             ",\"failureThreshold\":" #failures "}")

/* What every container has. */
static const struct {
    const char *key;
    struct str value;
} container_members[] = {
    {"env", STR_INIT("[{\"name\":\"SECRETS_DIR\",\"value\":\"" SECRETS "\"},"
                     "{\"name\":\"WEIR_DATA\",\"value\":\"/cache\"}]")},
    {"ports", STR_INIT("[{\"name\":\"grpc\",\"containerPort\":" PORT "}]")},
    {"startupProbe", PROBE(0, 5, 5, 24)},
    {"readinessProbe", PROBE(5, 10, 5, 3)},
    {"livenessProbe", PROBE(5, 10, 5, 3)},
    {"resources", STR_INIT("{\"requests\":{\"cpu\":\"50m\",\"memory\":\"64Mi\"},"
                           "\"limits\":{\"cpu\":\"250m\",\"memory\":\"256Mi\"}}")},
    {"securityContext",
     STR_INIT("{\"readOnlyRootFilesystem\":true,\"allowPrivilegeEscalation\":false,"
              "\"capabilities\":{\"drop\":[\"ALL\"]}}")},
};

#define MOUNTS                                                                                 \
    "{\"name\":\"cache\",\"mountPath\":\"/cache\"},{\"name\":\"tmp\",\"mountPath\":\"/tmp\"}"
#define SECRETS_MOUNT "{\"name\":\"secrets\",\"mountPath\":\"" SECRETS "\",\"readOnly\":true}"

static void write_container(struct json_writer *w, const struct kube_runtime *runtime) {
    json_open_object(w);
    json_member_str(w, "name", STR("agent-runtime"));
    json_member_str(w, "image", runtime->image);
    write_arguments(w, runtime);
    for (size_t i = 0; i < ARRAY_LEN(container_members); i++)
        json_member_raw(w, container_members[i].key, container_members[i].value);
    json_member_raw(w, "volumeMounts",
                    runtime->secret.len ? STR("[" MOUNTS "," SECRETS_MOUNT "]")
                                        : STR("[" MOUNTS "]"));
    json_close(w);
}

/* --- the pod ------------------------------------------------------------------------------ */

static void write_volumes(struct json_writer *w, const struct kube_runtime *runtime) {
    json_member_array(w, "volumes");
    json_write_raw(w, STR("{\"name\":\"cache\",\"emptyDir\":{\"sizeLimit\":\"512Mi\"}}"));
    json_write_raw(w, STR("{\"name\":\"tmp\",\"emptyDir\":{\"sizeLimit\":\"128Mi\","
                          "\"medium\":\"Memory\"}}"));
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
    json_member_raw(w, "securityContext",
                    STR("{\"runAsNonRoot\":true,\"runAsUser\":65532,\"runAsGroup\":65532,"
                        "\"fsGroup\":65532,\"seccompProfile\":{\"type\":\"RuntimeDefault\"}}"));
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
    json_member_raw(&w, "strategy", STR("{\"type\":\"Recreate\"}"));
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
    json_member_raw(&w, "ports",
                    STR("[{\"name\":\"grpc\",\"port\":" PORT ",\"targetPort\":" PORT "}]"));
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
