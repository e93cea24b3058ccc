/* scenario_file.c - the sections of a scenario file.
 *
 * In a [policy NAME] the rules of bide.conf apply, and app/conf reads it. In all other sections only = separates key
 * and value, since a tail contains colons, and every value may continue in the next line. */
#include "scenario_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/slice.h"
#include "text/utf8.h"

/* The lines below a malformed heading are skipped. */
static const struct conf_ini_syntax *file_syntax(const char *heading)
{
    static const struct conf_ini_syntax syntax = {.separators = "="};
    if (heading == NULL)
        return NULL;
    return conf_ini_name_after(heading, "policy") != NULL ? conf_policy_syntax(heading) : &syntax;
}

static struct sim_section section_from(const struct conf_ini_section *ini)
{
    struct sim_section section = {.ini = ini, .kind_length = strcspn(ini->heading, TEXT_BLANKS)};
    snprintf(section.kind, sizeof section.kind, "%.*s", (int)section.kind_length, ini->heading);
    section.name = ini->heading + section.kind_length;
    section.name += strspn(section.name, TEXT_BLANKS);
    return section;
}

static void file_split_headings(struct sim_file *file, struct conf_diagnostics *diagnostics)
{
    for (size_t i = 0; i < file->ini.sections; i++) {
        if (file->ini.section[i].heading == NULL)
            continue;
        struct sim_section section = section_from(&file->ini.section[i]);
        if (strcmp(section.kind, "policy") != 0)
            file->section[file->sections++] = section;
        else if (section.name[0] == '\0')
            conf_diagnostics_add(diagnostics, section.ini->line, "[policy]: needs a name, as in [policy careful]");
        else
            file->policies++;
    }
}

bool sim_file_read(struct sim_file *file, struct bide_text text, struct conf_diagnostics *diagnostics)
{
    *file = (struct sim_file){.sections = 0};
    if (!conf_ini_read(&file->ini, text_utf8_skip_mark(text), file_syntax, diagnostics))
        return false;
    file->section = calloc(file->ini.sections + 1, sizeof *file->section);
    if (file->section == NULL)
        return conf_diagnostics_add(diagnostics, 0, "no memory");
    file_split_headings(file, diagnostics);
    return true;
}

void sim_file_free(struct sim_file *file)
{
    free(file->section);
    conf_ini_free(&file->ini);
    *file = (struct sim_file){.sections = 0};
}
