/* fuzz_canary.c - a planted defect: the fuzzer must find it, or fuzzing finds nothing.
 *
 * A Retry-After of more than 400 seconds after the word "bide" aborts. To get there the fuzzer must follow coverage
 * through comparisons, byte by byte, and through a parser of the library, as for a real defect. */
#include <bide/hint.h>

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 5 || data[0] != 'b' || data[1] != 'i' || data[2] != 'd' || data[3] != 'e')
        return 0;
    struct bide_text value = {(const char *)data + 4, size - 4};
    struct bide_hint hint = bide_hint_retry_after(value, (struct bide_text){NULL, 0}, 0);
    if (hint.kind == BIDE_HINT_WAIT && hint.wait_ns > 400 * BIDE_S) {
        fputs("the planted defect was found\n", stderr); /* the test requires this line, not any crash */
        abort();
    }
    return 0;
}
