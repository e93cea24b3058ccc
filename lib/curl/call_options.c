/* call_options.c - initializes and checks the options of a call.
 *
 * The check runs before a socket is opened. It includes the caller's header lines: a line break inside a value would
 * start another header field or another request (header injection). */
#include "attempt.h"

#include <string.h>

#define HEADER_LINE_MAX 8192u /* longest header line accepted from the caller */

void bide_curl_options_init_sized(struct bide_curl_options *options, size_t size)
{
    memset(options, 0, size);
    options->struct_size = (uint32_t)size;
}

static enum bide_err options_problem(struct bide_problem *problem, const char *field, int64_t value, const char *want)
{
    if (problem)
        *problem = (struct bide_problem){.field = field, .want = want, .value = value};
    return BIDE_ERR_INVALID;
}

enum bide_err http_headers_check(const struct curl_slist *list, struct bide_problem *problem)
{
    for (; list; list = list->next) {
        size_t length = strcspn(list->data, "\r\n");
        if (list->data[length] != '\0')
            return options_problem(problem, "headers", list->data[length], "header lines without CR and LF");
        if (length > HEADER_LINE_MAX)
            return options_problem(problem, "headers", (int64_t)length, "header lines of up to 8192 bytes");
    }
    return BIDE_OK;
}

static enum bide_err options_check_inject(const struct bide_curl_options *o, struct bide_problem *problem)
{
    const uint32_t known_bits = BIDE_CURL_INJECT_KEY | BIDE_CURL_INJECT_ATTEMPT | BIDE_CURL_INJECT_TRACE;
    if (o->inject & ~known_bits)
        return options_problem(problem, "inject", o->inject, "bits of enum bide_curl_inject");
    if (o->key && !(o->inject & BIDE_CURL_INJECT_KEY))
        return options_problem(problem, "inject", o->inject, "BIDE_CURL_INJECT_KEY when key is set");
    if (o->traceparent && !(o->inject & BIDE_CURL_INJECT_TRACE))
        return options_problem(problem, "inject", o->inject, "BIDE_CURL_INJECT_TRACE when traceparent is set");
    if ((unsigned)o->key_form > BIDE_KEY_RAW)
        return options_problem(problem, "key_form", o->key_form, "a value of enum bide_key_form");
    return o->key ? bide_key_check(o->key, o->key_form, problem) : BIDE_OK;
}

static enum bide_err options_check_body(const struct bide_curl_body *b, struct bide_problem *problem)
{
    switch (b->kind) {
    case BIDE_CURL_BODY_UNKNOWN:
    case BIDE_CURL_BODY_REPEATABLE: return BIDE_OK;
    case BIDE_CURL_BODY_MEMORY:
        if (b->length < 0 || (!b->at && b->length > 0))
            return options_problem(problem, "body.length", b->length, "the number of bytes at body.at, 0 or more");
        return BIDE_OK;
    case BIDE_CURL_BODY_FILE:
        if (b->fd < 0)
            return options_problem(problem, "body.fd", b->fd, "an open file descriptor");
        if (b->offset < 0)
            return options_problem(problem, "body.offset", b->offset, "0 or more");
        return b->length < -1
                   ? options_problem(problem, "body.length", b->length, "0 or more, or -1 (to the end of the file)")
                   : BIDE_OK;
    case BIDE_CURL_BODY_STREAM:
        if (!b->read)
            return options_problem(problem, "body.read", 0, "a read function");
        return b->length < -1 ? options_problem(problem, "body.length", b->length, "0 or more, or -1 (unknown)")
                              : BIDE_OK;
    }
    return options_problem(problem, "body.kind", b->kind, "a value of enum bide_curl_body_kind");
}

/* Options that concern the response body need a sink. */
static enum bide_err options_check_sink(const struct bide_curl_options *o, struct bide_problem *problem)
{
    bool has_sink = o->write || o->write_data;
    if (o->header_data && !o->header)
        return options_problem(problem, "header_data", 1, "NULL unless header is set");
    if (o->resume && !has_sink)
        return options_problem(problem, "resume", 1, "false unless a sink is set (write or write_data)");
    if (o->rewind && !has_sink)
        return options_problem(problem, "rewind", 1, "NULL unless a sink is set (write or write_data)");
    if (o->type_rule_count > 0 && !has_sink)
        return options_problem(problem, "type_rule_count", (int64_t)o->type_rule_count,
                               "0 unless a sink is set (write or write_data)");
    if (o->hold_max > 0 && (!has_sink || !o->classify))
        return options_problem(problem, "hold_max", (int64_t)o->hold_max, "0 unless a sink and classify are set");
    return BIDE_OK;
}

static enum bide_err options_check_rules(const struct bide_curl_options *o, struct bide_problem *problem)
{
    if (o->type_rule_count > 0 && !o->type_rules)
        return options_problem(problem, "type_rule_count", (int64_t)o->type_rule_count, "0 when type_rules is NULL");
    if ((unsigned)o->reset_unit > BIDE_RESET_RFC3339)
        return options_problem(problem, "reset_unit", o->reset_unit, "a value of enum bide_reset_unit");
    if (o->reset_header && o->reset_unit == BIDE_RESET_IGNORE)
        return options_problem(problem, "reset_unit", o->reset_unit, "the unit of reset_header (it is never guessed)");
    enum bide_err err = bide_rules_check(o->status_rules, problem);
    return err == BIDE_OK ? bide_rules_check(o->curl_rules, problem) : err;
}

enum bide_err bide_curl_options_check(const struct bide_curl_options *o, struct bide_problem *problem)
{
    if (o->struct_size != sizeof *o)
        return options_problem(problem, "struct_size", o->struct_size, "the value set by bide_curl_options_init");
    if ((unsigned)o->safety > BIDE_CURL_KEYED)
        return options_problem(problem, "safety", o->safety, "a value of enum bide_curl_safety");
    if ((unsigned)o->redirect > BIDE_CURL_REDIRECT_REFUSE)
        return options_problem(problem, "redirect", o->redirect, "a value of enum bide_curl_redirect");
    enum bide_err err = http_headers_check(o->headers, problem);
    if (err == BIDE_OK)
        err = options_check_inject(o, problem);
    if (err == BIDE_OK)
        err = options_check_body(&o->body, problem);
    if (err == BIDE_OK)
        err = options_check_sink(o, problem);
    return err == BIDE_OK ? options_check_rules(o, problem) : err;
}
