/* live_tls.c - certificates made by openssl. */
#include "live_tls.h"

#include <stdio.h>

void live_tls_make(struct live_process *process, const char *name, const char *alt_name)
{
    char certificate[64], key[64], subject[64], alternative[128];
    snprintf(certificate, sizeof certificate, "%s.pem", name);
    snprintf(key, sizeof key, "%s.key", name);
    snprintf(subject, sizeof subject, "/CN=%s", name);
    snprintf(alternative, sizeof alternative, "subjectAltName=%s", alt_name);
    live_process_run(process,
                     (const char *const[]){"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                                           "ec_paramgen_curve:prime256v1", "-nodes", "-days", "1", "-subj", subject,
                                           "-addext", alternative, "-keyout", key, "-out", certificate, NULL});
}

void live_tls_expire(struct live_process *process, const char *name)
{
    char certificate[64], key[64];
    snprintf(certificate, sizeof certificate, "%s.pem", name);
    snprintf(key, sizeof key, "%s.key", name);
    live_process_run(process, (const char *const[]){"openssl", "x509", "-in", certificate, "-signkey", key, "-days",
                                                    "-1", "-out", certificate, NULL});
}

const char *live_tls_path(const struct live_process *process, const char *name)
{
    static char path[192];
    snprintf(path, sizeof path, "%s/%s.pem", process->dir, name);
    return path;
}
