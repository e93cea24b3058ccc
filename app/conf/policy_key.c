/* policy_key.c - the keys of a section: fields of the table and the six lists. Used for files and for --set. */
#include "rules.h"
#include "suggest.h"
#include "text/slice.h"

bool conf_key_find(struct conf_key *key, const char *name, size_t length)
{
    struct bide_text text = {name, length};
    *key = (struct conf_key){.field = conf_field_find(name, length)};
    for (size_t i = 0; i < CONF_LISTS && key->list == NULL; i++) {
        key->permanent = text_equals(text, conf_lists[i].permanent);
        if (key->permanent || text_equals(text, conf_lists[i].retry))
            key->list = &conf_lists[i];
    }
    return key->field != NULL || key->list != NULL;
}

bool conf_key_equal(const struct conf_key *one, const struct conf_key *other)
{
    return one->field == other->field && one->list == other->list && one->permanent == other->permanent;
}

const char *conf_key_name(const struct conf_key *key)
{
    if (key->field != NULL)
        return key->field->key;
    return key->permanent ? key->list->permanent : key->list->retry;
}

const char *conf_key_name_at(size_t i)
{
    size_t fields = 0;
    while (conf_field(fields) != NULL && fields < i)
        fields++;
    if (conf_field(fields) != NULL)
        return conf_field(fields)->key;
    i -= fields;
    if (i / 2 >= CONF_LISTS)
        return NULL;
    return i % 2 == 0 ? conf_lists[i / 2].retry : conf_lists[i / 2].permanent;
}

const char *conf_key_assign(const struct conf_key *key, struct conf_policy *policy, const char *value)
{
    if (key->field != NULL)
        return conf_field_assign(key->field, &policy->pair, value);
    struct conf_rules *rules = (void *)((char *)policy + key->list->offset);
    return conf_rules_replace(rules, key->list->allowed, key->permanent ? BIDE_KIND_PERMANENT : BIDE_KIND_TRANSIENT,
                              value);
}

const char *conf_key_suggest(const char *name, size_t length, const char *prefix)
{
    static char text[CONF_SUGGESTION_SIZE];
    struct conf_suggestion suggestion = {.word = name, .length = length};
    conf_suggestion_consider(&suggestion, "extends", "extends");
    for (size_t i = 0; i < CONF_LISTS; i++) {
        conf_suggestion_consider(&suggestion, conf_lists[i].retry, conf_lists[i].retry);
        conf_suggestion_consider(&suggestion, conf_lists[i].permanent, conf_lists[i].permanent);
    }
    conf_field_consider(&suggestion);
    return conf_suggestion_format(text, &suggestion, prefix);
}
