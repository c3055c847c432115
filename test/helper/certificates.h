/* certificates: created by the openssl command in a folder of the test.
 *
 * Certificate NAME is NAME.pem with the key NAME.key. One that signs others has `ca` among its
 * extensions.
 */
#ifndef WEIR_TEST_HELPER_CERTIFICATES_H
#define WEIR_TEST_HELPER_CERTIFICATES_H

#include <stdio.h>
#include <stdlib.h>

#define CERTIFICATES_NEW_KEY "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
#define CERTIFICATES_CA "basicConstraints=critical,CA:TRUE"

static char certificates_folder[] = "/tmp/weir-certificates-XXXXXX";

/* 0: it went well. */
static inline int certificates_run(const char *command) {
    char line[2048];
    snprintf(line, sizeof(line), "cd %s && { %s ; } >>log 2>&1", certificates_folder, command);
    int failed = system(line); /* NOLINT(cert-env33-c): a test */
    if (failed) fprintf(stderr, "failed: %s\n", line);
    return failed;
}

static inline int certificates_open(void) {
    if (!mkdtemp(certificates_folder)) return -1;
    return certificates_run(
        ": >index; echo 1000 >serial; printf '[ca]\\ndefault_ca=c\\n[c]\\ndatabase=index\\n"
        "new_certs_dir=.\\nserial=serial\\ndefault_md=sha256\\npolicy=p\\nunique_subject=no\\n"
        "[p]\\ncommonName=supplied\\n' >config");
}

static inline int certificates_close(void) {
    char line[64];
    snprintf(line, sizeof(line), "rm -r %s", certificates_folder);
    return system(line); /* NOLINT(cert-env33-c): a test */
}

/* Signed by itself. `extension` as in openssl's config files. */
static inline int certificates_self_signed(const char *name, const char *extension) {
    char command[512];
    snprintf(
        command, sizeof(command),
        "openssl req -x509 %s -days 2 -subj /CN=%s -addext '%s' -keyout %s.key -out %s.pem",
        CERTIFICATES_NEW_KEY, name, extension, name, name);
    return certificates_run(command);
}

struct certificates_wish {
    const char *name, *issuer;
    const char *extensions; /* lines */
    const char *key;        /* NULL: CERTIFICATES_NEW_KEY */
    const char *digest;     /* NULL: sha256 */
    const char *from, *to;  /* NULL: now, in two days; else as 20400101000000Z */
};

static inline int certificates_sign(const struct certificates_wish *wish) {
    char command[1536], dates[128] = "-days 2";
    if (wish->from)
        snprintf(dates, sizeof(dates), "-startdate %s -enddate %s", wish->from, wish->to);
    snprintf(command, sizeof(command),
             "openssl req -new %s -subj /CN=%s -keyout %s.key -out %s.csr && "
             "printf '%s\\n' >%s.ext && "
             "openssl ca -batch -notext -config config -cert %s.pem -keyfile %s.key -md %s "
             "-in %s.csr -out %s.pem -extfile %s.ext %s",
             wish->key ? wish->key : CERTIFICATES_NEW_KEY, wish->name, wish->name, wish->name,
             wish->extensions, wish->name, wish->issuer, wish->issuer,
             wish->digest ? wish->digest : "sha256", wish->name, wish->name, wish->name, dates);
    return certificates_run(command);
}

/* "folder/name.suffix"; the latest sixteen stay. */
static inline const char *certificates_path(const char *name, const char *suffix) {
    static char paths[16][128];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof(paths[0]), "%s/%s.%s", certificates_folder, name, suffix);
    return path;
}

#endif
