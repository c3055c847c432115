#include "tls/trust.h"

#include "base/buf.h"
#include "base/mem.h"
#include "tls/openssl.h"
#include "tls/visit_hooks.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Debian's default level; other builds of OpenSSL have a lower one. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20:@SECLEVEL=2"

/* The usual files of the system; the first one that exists is used. */
static const struct str system_files[] = {
    STR_INIT("/etc/ssl/certs/ca-certificates.crt"), /* Debian, Ubuntu, Alpine */
    STR_INIT("/etc/pki/tls/certs/ca-bundle.crt"),   /* Fedora, RHEL */
    STR_INIT("/etc/ssl/ca-bundle.pem"),             /* openSUSE */
    STR_INIT("/etc/ssl/cert.pem"),
};

struct trust {
    const struct openssl *ssl;
    SSL_CTX *context;
    atomic_uint refs;
};

/* --- authorities -------------------------------------------------------------------------- */

static bool trust_read(struct trust *trust, const char *path) {
    trust->ssl->ERR_clear_error();
    bool good = trust->ssl->SSL_CTX_load_verify_file(trust->context, path) == 1;
    return good;
}

static bool trust_refuse(const struct trust *trust, const char *path, struct err *e) {
    const char *reason = trust->ssl->ERR_reason_error_string(trust->ssl->ERR_peek_error());
    if (access(path, R_OK) != 0) reason = strerrordesc_np(errno);
    return err_set(e, ERR_UNAVAILABLE,
                   "the certificate authorities cannot be read from '%s' (%s): tls.trust or "
                   "SSL_CERT_FILE names a file of certificates in PEM form, SSL_CERT_DIR "
                   "folders of such files",
                   path, reason ? reason : "no certificate in it");
}

static bool read_file(struct trust *trust, struct str file, struct err *e) {
    char *path = str_dup(file);
    bool good = trust_read(trust, path) || trust_refuse(trust, path, e);
    free(path);
    return good;
}

/* Files of a folder that were read, because system folders have two more links to each file. */
struct seen {
    struct stat *files;
    size_t count;
};

static bool seen_before(struct seen *seen, const struct stat *file) {
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->files[i].st_ino == file->st_ino && seen->files[i].st_dev == file->st_dev)
            return true;
    }
    seen->files = mem_resize(seen->files, (seen->count + 1) * sizeof(*file));
    seen->files[seen->count++] = *file;
    return false;
}

/* Files that are not certificates are skipped. */
static void trust_read_entry(struct trust *trust, const char *folder, const char *name,
                             struct seen *seen) {
    struct buf path;
    struct stat file;
    buf_init(&path, 8 * KIB);
    buf_printf(&path, "%s/%s", folder, name);
    bool good = buf_append_byte(&path, '\0') && stat(path.at, &file) == 0 &&
                S_ISREG(file.st_mode) && !seen_before(seen, &file);
    if (good) (void)trust_read(trust, path.at);
    buf_done(&path);
}

/* Read all files now. OpenSSL itself would look them up by hash, on disk, during a
 * handshake. */
static bool read_folder(struct trust *trust, struct str folder, struct err *e) {
    char *path = str_dup(folder);
    DIR *entries = opendir(path);
    struct seen seen = {NULL, 0};
    bool good = entries || trust_refuse(trust, path, e);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one stream has one reader */
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        trust_read_entry(trust, path, entry->d_name, &seen);
    if (entries) closedir(entries);
    free(seen.files);
    free(path);
    return good;
}

static bool read_folders(struct trust *trust, struct str folders, struct err *e) {
    while (folders.len) {
        struct str folder = str_split(folders, ':', &folders);
        if (folder.len && !read_folder(trust, folder, e)) return false;
    }
    return true;
}

static bool read_system(struct trust *trust, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(system_files); i++) {
        if (access(system_files[i].at, R_OK) == 0) return read_file(trust, system_files[i], e);
    }
    return err_set(
        e, ERR_UNAVAILABLE,
        "this machine has no certificate authorities, so no server can be trusted: "
        "install the package ca-certificates, or name a file in tls.trust or SSL_CERT_FILE");
}

static bool read_authorities(struct trust *trust, const struct trust_options *options,
                             struct err *e) {
    const struct openssl *ssl = trust->ssl;
    if (!options->file.len && !options->folders.len) return read_system(trust, e);
    if (options->file.len && !read_file(trust, options->file, e)) return false;
    if (!read_folders(trust, options->folders, e)) return false;
    const void *all = ssl->X509_STORE_get0_objects(ssl->SSL_CTX_get_cert_store(trust->context));
    if (ssl->OPENSSL_sk_num(all) > 0) return true;
    return err_set(e, ERR_UNAVAILABLE,
                   "there is no certificate in '" STR_FMT "': tls.trust and SSL_CERT_DIR take "
                   "folders of files in PEM form",
                   STR_ARG(options->folders));
}

/* --- rules -------------------------------------------------------------------------------- */

static bool trust_make_context(struct trust *trust, struct err *e) {
    const struct openssl *ssl = trust->ssl;
    SSL_CTX *context = trust->context = ssl->SSL_CTX_new(ssl->TLS_client_method());
    if (!context) return err_set(e, ERR_UNAVAILABLE, "OpenSSL does not start");
    ssl->SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    bool good =
        ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) == 1 &&
        ssl->SSL_CTX_set_cipher_list(context, CIPHERS) == 1;
    if (!good) return err_set(e, ERR_UNAVAILABLE, "this OpenSSL lacks what TLS 1.2 needs");
    ssl->SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    ssl->SSL_CTX_set_verify(context, SSL_VERIFY_PEER, visit_on_verified);
    /* The name must match a name of the certificate, fully or through a leading "*.". */
    ssl->X509_VERIFY_PARAM_set_hostflags(ssl->SSL_CTX_get0_param(context),
                                         X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS |
                                             X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
    ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE,
                      SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL, NULL);
    ssl->SSL_CTX_sess_set_new_cb(context, visit_on_ticket);
    return true;
}

bool trust_load(const struct trust_options *options, struct trust **ret, struct err *e) {
    const struct openssl *ssl;
    if (!openssl_load(&ssl, e)) return false;
    struct trust *trust = MEM_NEW(struct trust);
    trust->ssl = ssl;
    atomic_init(&trust->refs, 1);
    bool good = trust_make_context(trust, e) && read_authorities(trust, options, e);
    ssl->ERR_clear_error();
    if (!good) {
        trust_unref(trust);
        return false;
    }
    *ret = trust;
    return true;
}

struct trust *trust_ref(struct trust *trust) {
    atomic_fetch_add(&trust->refs, 1);
    return trust;
}

void trust_unref(struct trust *trust) {
    if (!trust || atomic_fetch_sub(&trust->refs, 1) != 1) return;
    trust->ssl->SSL_CTX_free(trust->context);
    free(trust);
}

void trust_leave_thread(void) {
    const struct openssl *ssl;
    struct err e;
    if (openssl_load(&ssl, &e)) ssl->OPENSSL_thread_stop();
}

SSL_CTX *trust_context(const struct trust *trust) {
    return trust->context;
}
