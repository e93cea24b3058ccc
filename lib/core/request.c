/* request.c - the safety of an HTTP method, and a hash for names and retry keys. */
#include <bide/request.h>

#include "random.h"
#include "text.h"

/* RFC 9110 9.2.1 (safe) and 9.2.2 (idempotent); QUERY is safe by draft-ietf-httpbis-safe-method-w-body. All other
 * methods, including POST, PATCH and CONNECT, are unsafe. */
static const struct {
    const char *name;
    enum bide_safety safety;
} methods[] = {
    {"GET", BIDE_SAFE},   {"HEAD", BIDE_SAFE},    {"PUT", BIDE_IDEMPOTENT}, {"DELETE", BIDE_IDEMPOTENT},
    {"TRACE", BIDE_SAFE}, {"OPTIONS", BIDE_SAFE}, {"QUERY", BIDE_SAFE},
};

enum bide_safety bide_method_safety(const char *method, size_t length)
{
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++)
        if (core_text_equals((struct bide_text){method, length}, methods[i].name))
            return methods[i].safety;
    return BIDE_UNSAFE;
}

/* FNV-1a over the bytes, so that the result does not depend on byte order or word size, then the finaliser of
 * SplitMix64: FNV alone mixes the high bits of short names poorly, and tables take their bits from anywhere. */
uint64_t bide_hash(const void *bytes, size_t length)
{
    const unsigned char *byte = bytes;
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    hash = core_mix(hash);
    return hash + (hash == 0); /* 0 means "no key" */
}
