/* call_options.c - checks the options of a call.
 *
 * The check runs before a socket is opened. It includes the caller's header lines: a line break inside a value would
 * start another header field or another request (header injection), and other control bytes are read differently by
 * different servers. The policy is left out of the check of each call, where it would cost more than all the rest. */
#include "attempt.h"
#include "core/clamp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define HEADER_LINE_MAX 8192u /* longest header line accepted from the caller */
#define EACH_BYTE       0x0101010101010101u

const struct bide_curl_options *bide_curl_plain_options(void)
{
    static const struct bide_curl_options plain = {0};
    return &plain;
}

enum bide_err http_problem_set(struct bide_problem *problem, const char *field, int64_t value, const char *want)
{
    if (!problem)
        return BIDE_ERR_INVALID;
    *problem = (struct bide_problem){.field = field, .want = want, .value = value};
    snprintf(problem->text, sizeof problem->text, "%s is %" PRId64 "; must be %s", field, value, want);
    return BIDE_ERR_INVALID;
}

enum bide_err http_problem_set_text(struct bide_problem *problem, enum bide_err err, const char *text)
{
    if (!problem)
        return err;
    *problem = (struct bide_problem){.system_errno = err == BIDE_ERR_SYSTEM ? errno : 0};
    snprintf(problem->text, sizeof problem->text, "%s", text);
    return err;
}

/* ---- header lines ---- */

/* Returns true if no byte of the word is below 0x20 or equals 0x7f; for 8 bytes at once, because each call checks each
 * line. (x - n) & ~x has the high bit of some byte set exactly if x has a byte below n, for n up to 0x80. */
static bool word_is_printable(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    uint64_t other = word ^ 0x7f * EACH_BYTE;
    uint64_t found = ((word - 0x20 * EACH_BYTE) & ~word) | ((other - EACH_BYTE) & ~other);
    return (found & 0x80 * EACH_BYTE) == 0;
}

static bool byte_is_control(unsigned char byte)
{
    return (byte < 0x20 && byte != '\t') || byte == 0x7f;
}

/* Returns the place of the first control byte other than HTAB, or the length of the line. */
static size_t line_find_control(const char *line, size_t length)
{
    size_t at = 0;
    while (length - at >= sizeof(uint64_t) && word_is_printable(line + at))
        at += sizeof(uint64_t);
    while (at < length && !byte_is_control((unsigned char)line[at]))
        at++;
    return at;
}

/* The strings of a problem are static, so that the line is named by a table. */
static const char *line_field(size_t line)
{
    static const char *const fields[] = {"headers[0]", "headers[1]", "headers[2]", "headers[3]", "headers[4]",
                                         "headers[5]", "headers[6]", "headers[7]", "headers[8]", "headers[9]"};
    return line < sizeof fields / sizeof *fields ? fields[line] : "headers[10 or later]";
}

static enum bide_err line_check(const char *text, const char *field, struct bide_problem *problem)
{
    size_t length = strlen(text);
    if (length > HEADER_LINE_MAX)
        return http_problem_set(problem, field, (int64_t)length, "a header line of up to 8192 bytes");
    size_t place = line_find_control(text, length);
    if (place == length)
        return BIDE_OK;
    return http_problem_set(problem, field, (unsigned char)text[place],
                            memchr(text, ':', place)
                                ? "a header line without this byte in its value (of control bytes, HTAB is valid)"
                                : "a header line without this byte in its name (of control bytes, HTAB is valid)");
}

enum bide_err http_headers_check(const struct curl_slist *list, struct bide_problem *problem)
{
    enum bide_err err = BIDE_OK;
    for (size_t line = 0; list && err == BIDE_OK; list = list->next, line++)
        err = line_check(list->data, line_field(line), problem);
    return err;
}

#define WITHOUT_LIST " unless headers or no_headers is set: bide would replace the list on the handle (HTTPHEADER)"

static enum bide_err options_check_headers(const struct bide_curl_options *o, struct bide_problem *problem)
{
    if (o->headers || o->no_headers)
        return http_headers_check(o->headers, problem);
    if (o->inject != 0)
        return http_problem_set(problem, "inject", o->inject, "0" WITHOUT_LIST);
    if (o->resume)
        return http_problem_set(problem, "resume", 1, "false" WITHOUT_LIST);
    return o->before ? http_problem_set(problem, "before", 1, "NULL" WITHOUT_LIST) : BIDE_OK;
}

static enum bide_err options_check_trace_state(const struct bide_curl_options *o, struct bide_problem *problem)
{
    size_t length = strlen(o->trace_state), place = line_find_control(o->trace_state, length);
    if (!o->traceparent)
        return http_problem_set(problem, "trace_state", 1, "NULL without traceparent");
    if (length > HEADER_LINE_MAX)
        return http_problem_set(problem, "trace_state", (int64_t)length, "a value of up to 8192 bytes");
    if (place == length)
        return BIDE_OK;
    return http_problem_set(problem, "trace_state", (unsigned char)o->trace_state[place],
                            "a value without this byte (of control bytes, HTAB is valid)");
}

static enum bide_err options_check_inject(const struct bide_curl_options *o, struct bide_problem *problem)
{
    const uint32_t known_bits = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
    if (o->inject & ~known_bits)
        return http_problem_set(problem, "inject", o->inject, "bits of enum bide_curl_inject");
    if (o->key && !(o->inject & BIDE_CURL_INJECT_KEY))
        return http_problem_set(problem, "inject", o->inject, "BIDE_CURL_INJECT_KEY when key is set");
    if (o->traceparent && !(o->inject & BIDE_CURL_INJECT_TRACE))
        return http_problem_set(problem, "inject", o->inject, "BIDE_CURL_INJECT_TRACE when traceparent is set");
    if (o->trace_state && options_check_trace_state(o, problem) != BIDE_OK)
        return BIDE_ERR_INVALID;
    if ((unsigned)o->key_form > BIDE_KEY_RAW)
        return http_problem_set(problem, "key_form", o->key_form, "a value of enum bide_key_form");
    return o->key ? bide_key_check(o->key, o->key_form, problem) : BIDE_OK;
}

static enum bide_err options_check_keyed_body(const struct bide_curl_options *o, struct bide_problem *problem)
{
    bool keyed = o->safety == BIDE_CURL_KEYED || o->inject & BIDE_CURL_INJECT_KEY;
    if (keyed && o->body.kind == BIDE_CURL_BODY_UNKNOWN)
        return http_problem_set(problem, "body.kind", BIDE_CURL_BODY_UNKNOWN,
                                "the source of the body of a keyed request, or it is never retried: "
                                "BIDE_CURL_BODY_REPEATABLE for POSTFIELDS, mime or no body, MEMORY, FILE or STREAM");
    if (o->body.put && o->body.kind != BIDE_CURL_BODY_MEMORY)
        return http_problem_set(problem, "body.put", 1, "false unless body.kind is BIDE_CURL_BODY_MEMORY");
    return BIDE_OK;
}

static enum bide_err options_check_body(const struct bide_curl_body *b, struct bide_problem *problem)
{
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
    case BIDE_CURL_BODY_REPEATABLE: return BIDE_OK;
    case BIDE_CURL_BODY_MEMORY:
        if (b->length < 0 || (!b->at && b->length > 0))
            return http_problem_set(problem, "body.length", b->length, "the number of bytes at body.at, 0 or more");
        return BIDE_OK;
    case BIDE_CURL_BODY_FILE:
        if (b->fd < 0)
            return http_problem_set(problem, "body.fd", b->fd, "an open file descriptor");
        if (b->offset < 0)
            return http_problem_set(problem, "body.offset", b->offset, "0 or more");
        return b->length < -1
                   ? http_problem_set(problem, "body.length", b->length, "0 or more, or -1 (to the end of the file)")
                   : BIDE_OK;
    case BIDE_CURL_BODY_STREAM:
        if (!b->read)
            return http_problem_set(problem, "body.read", 0, "a read function");
        return b->length < -1 ? http_problem_set(problem, "body.length", b->length, "0 or more, or -1 (unknown)")
                              : BIDE_OK;
    }
    return http_problem_set(problem, "body.kind", b->kind, "a value of enum bide_curl_body_kind");
}

static enum bide_err options_check_resume_from(const struct bide_curl_options *o, struct bide_problem *problem)
{
    const struct bide_curl_resume_from *from = o->resume_from;
    if (!from)
        return BIDE_OK;
    if (!o->resume)
        return http_problem_set(problem, "resume_from", 1, "NULL unless resume is set");
    if (from->delivered_bytes == 0)
        return http_problem_set(problem, "resume_from.delivered_bytes", 0, "1 or more (an empty sink has no part)");
    if (from->total != 0 && from->total <= from->delivered_bytes)
        return http_problem_set(problem, "resume_from.total", (int64_t)from->total,
                                "0 (unknown), or more than resume_from.delivered_bytes");
    if (!from->validator || !http_resume_validator_is_strong(from->validator))
        return http_problem_set(problem, "resume_from.validator", 0,
                                "a strong entity tag with its quotes, or a date (see bide_curl_validator)");
    return line_check(from->validator, "resume_from.validator", problem);
}

/* Options that concern the response body need a sink. */
static enum bide_err options_check_sink(const struct bide_curl_options *o, struct bide_problem *problem)
{
    bool has_sink = o->write || o->write_data;
    if (o->header_data && !o->header)
        return http_problem_set(problem, "header_data", 1, "NULL unless header is set");
    if (o->resume && !has_sink)
        return http_problem_set(problem, "resume", 1, "false unless a sink is set (write or write_data)");
    if (o->rewind && !has_sink)
        return http_problem_set(problem, "rewind", 1, "NULL unless a sink is set (write or write_data)");
    if (o->type_rule_count > 0 && !has_sink)
        return http_problem_set(problem, "type_rule_count", (int64_t)o->type_rule_count,
                                "0 unless a sink is set (write or write_data)");
    if (o->hold_max > 0 && (!has_sink || !o->classify))
        return http_problem_set(problem, "hold_max", (int64_t)o->hold_max, "0 unless a sink and classify are set");
    return BIDE_OK;
}

static enum bide_err options_check_rules(const struct bide_curl_options *o, struct bide_problem *problem)
{
    if (o->type_rule_count > 0 && !o->type_rules)
        return http_problem_set(problem, "type_rule_count", (int64_t)o->type_rule_count, "0 when type_rules is NULL");
    if ((unsigned)o->reset_unit > BIDE_RESET_DURATION)
        return http_problem_set(problem, "reset_unit", o->reset_unit, "a value of enum bide_reset_unit");
    if (o->reset_header && o->reset_unit == BIDE_RESET_IGNORE)
        return http_problem_set(problem, "reset_unit", o->reset_unit, "the unit of reset_header (it is never guessed)");
    enum bide_err err = bide_rules_check(o->status_rules, problem);
    return err == BIDE_OK ? bide_rules_check(o->curl_rules, problem) : err;
}

static enum bide_err options_check_times(const struct bide_curl_options *o, struct bide_problem *problem)
{
    if (o->call_timeout_ns < 0)
        return http_problem_set(problem, "call_timeout_ns", o->call_timeout_ns, "0 (none) or more");
    if (o->connect_timeout_ns < 0)
        return http_problem_set(problem, "connect_timeout_ns", o->connect_timeout_ns, "0 (the policy's) or more");
    return o->stall_timeout_ns < 0
               ? http_problem_set(problem, "stall_timeout_ns", o->stall_timeout_ns, "0 (the default) or more")
               : BIDE_OK;
}

#define UNKNOWN_HANDLE                                                                                                 \
    "set, because this handle is not recorded: include <bide/curl_record.h> where it is created, or pass "             \
    "BIDE_CURL_PLAIN_HANDLE if it has none of the options that bide owns"

static uint64_t options_reserved_bits(const struct bide_curl_options *o)
{
    uint64_t all = 0;
    for (size_t i = 0; i < sizeof o->reserved_ / sizeof *o->reserved_; i++)
        all |= o->reserved_[i];
    return all;
}

enum bide_err http_options_check(const struct bide_curl_options *o, struct bide_problem *problem)
{
    if (!o)
        return http_problem_set(problem, "options", 0, UNKNOWN_HANDLE);
    if (options_reserved_bits(o) != 0)
        return http_problem_set(problem, "reserved_", 1, CORE_WANT_RESERVED);
    if ((unsigned)o->safety > BIDE_CURL_KEYED)
        return http_problem_set(problem, "safety", o->safety, "a value of enum bide_curl_safety");
    if ((unsigned)o->redirect > BIDE_CURL_REDIRECT_REFUSE)
        return http_problem_set(problem, "redirect", o->redirect, "a value of enum bide_curl_redirect");
    enum bide_err err = options_check_times(o, problem);
    if (err == BIDE_OK)
        err = options_check_inject(o, problem);
    if (err == BIDE_OK)
        err = options_check_body(&o->body, problem);
    if (err == BIDE_OK)
        err = options_check_keyed_body(o, problem);
    if (err == BIDE_OK)
        err = options_check_sink(o, problem);
    if (err == BIDE_OK)
        err = options_check_headers(o, problem);
    if (err == BIDE_OK)
        err = options_check_resume_from(o, problem);
    return err == BIDE_OK ? options_check_rules(o, problem) : err;
}

enum bide_err bide_curl_options_check(const struct bide_curl_options *o, struct bide_problem *problem)
{
    enum bide_err err = http_options_check(o, problem);
    return err == BIDE_OK && o->policy ? bide_policy_check(o->policy, problem) : err;
}
