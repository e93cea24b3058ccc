/* input.c - reads option values from arguments, files and standard input; see input.h. */
#include "input.h"

#include "secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define READ_BYTES 65536u

static const char no_memory[] = "smaller (out of memory)";

/* ---- files ---- */

static bool stdin_in_use;

static const char *unreadable(int error)
{
    static char text[128];
    snprintf(text, sizeof text, "a readable file (%s)", strerror(error));
    return text;
}

/* Returns -1 after setting *want. */
static int open_input(const char *name, const char **want)
{
    if (strcmp(name, "-") != 0) {
        int fd = open(name, O_RDONLY | O_CLOEXEC);
        *want = fd < 0 ? unreadable(errno) : NULL;
        return fd;
    }
    *want = stdin_in_use ? "a file (another option already reads standard input)" : NULL;
    if (stdin_in_use)
        return -1;
    stdin_in_use = true;
    return STDIN_FILENO;
}

const char *fetch_file_check(const char *name)
{
    struct stat st;
    bool readable = faccessat(AT_FDCWD, name, R_OK, AT_EACCESS) == 0 && stat(name, &st) == 0;
    return readable && !S_ISDIR(st.st_mode) ? NULL : unreadable(readable ? EISDIR : errno);
}

static void close_input(int fd)
{
    if (fd > STDIN_FILENO)
        close(fd);
}

const char *fetch_upload_open(int *fd, const char *name)
{
    const char *want;
    struct stat st;
    int opened = open_input(name, &want);
    if (opened < 0)
        return want;
    int error = fstat(opened, &st) != 0 ? errno : S_ISDIR(st.st_mode) ? EISDIR : 0;
    if (error != 0) {
        close_input(opened);
        return unreadable(error);
    }
    if (*fd >= 0)
        close_input(*fd);
    *fd = opened;
    return NULL;
}

static const char byte_order_mark[] = "\xef\xbb\xbf"; /* of UTF-8: some editors begin a file with it */

/* Adds the line number to the description of a valid value. */
static const char *line_error(size_t number, const char *want)
{
    static char text[256];
    snprintf(text, sizeof text, "valid in every line: line %zu must be %s", number, want);
    return text;
}

const char *fetch_read_lines(const char *name, const char *(*line)(void *context, char *text), void *context)
{
    const char *want;
    int fd = open_input(name, &want);
    if (fd < 0)
        return want;
    FILE *file = fdopen(fd, "r");
    char *text = malloc(FETCH_LINE_MAX);
    if (!file)
        close_input(fd);
    size_t number = 0;
    want = file && text ? NULL : no_memory;
    for (number = 1; !want && fgets(text, FETCH_LINE_MAX, file); number++) {
        size_t length = strlen(text);
        if ((length == 0 || text[length - 1] != '\n') && !feof(file))
            want = "at most 8190 bytes without NUL";
        while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
            text[--length] = '\0';
        char *begin = text + (number == 1 && strncmp(text, byte_order_mark, 3) == 0 ? 3 : 0);
        if (!want && begin[0] != '\0' && begin[0] != '#')
            want = line(context, begin);
    }
    if (want && number > 1)
        want = line_error(number - 1, want);
    if (!want && ferror(file))
        want = unreadable(errno);
    if (text)
        explicit_bzero(text, FETCH_LINE_MAX);
    free(text);
    if (file)
        fclose(file);
    return want;
}

/* ---- request body ---- */

static bool data_append(struct fetch_bytes *data, const void *at, size_t length)
{
    char *grown = length <= FETCH_DATA_MAX - data->length ? realloc(data->at, data->length + length + 1) : NULL;
    if (!grown)
        return false;
    memcpy(grown + data->length, at, length);
    data->at = grown;
    data->length += length;
    data->at[data->length] = '\0';
    return true;
}

static const char *data_append_file(struct fetch_bytes *data, const char *name)
{
    const char *want;
    int fd = open_input(name, &want);
    char *piece = malloc(READ_BYTES);
    ssize_t n = -1;
    errno = 0;
    while (fd >= 0 && piece && ((n = read(fd, piece, READ_BYTES)) > 0 || (n < 0 && errno == EINTR)))
        if (n > 0 && !data_append(data, piece, (size_t)n)) {
            want = "at most 256 MiB (-T sends a file of any length)";
            break;
        }
    if (!want && n < 0)
        want = piece ? unreadable(errno) : no_memory;
    free(piece);
    close_input(fd);
    return want;
}

static const char *data_append_encoded(struct fetch_bytes *data, const char *at, size_t length)
{
    char *encoded = length > 0 ? curl_easy_escape(NULL, at, (int)length) : NULL;
    const char *want = length == 0 || (encoded && data_append(data, encoded, strlen(encoded))) ? NULL : no_memory;
    if (encoded)
        explicit_bzero(encoded, strlen(encoded));
    curl_free(encoded);
    return want;
}

static const char *data_append_encoded_file(struct fetch_bytes *data, const char *name)
{
    struct fetch_bytes content = {0};
    const char *want = data_append_file(&content, name);
    if (!want)
        want = data_append_encoded(data, content.at, content.length);
    free(content.at);
    return want;
}

const char *fetch_data_add_encoded(struct fetch_bytes *data, const char *value)
{
    size_t name = strcspn(value, "=@");
    bool has_separator = value[name] != '\0', has_name = has_separator && name > 0;
    if (!data_append(data, "&", data->at ? 1 : 0) || !data_append(data, value, has_name ? name : 0) ||
        !data_append(data, "=", has_name ? 1 : 0))
        return no_memory;
    const char *content = has_separator ? value + name + 1 : value;
    if (value[name] == '@')
        return data_append_encoded_file(data, content);
    char *text = fetch_secret_take(content);
    const char *want = text ? data_append_encoded(data, text, strlen(text)) : no_memory;
    fetch_secret_free(text);
    return want;
}

const char *fetch_data_add(struct fetch_bytes *data, const char *value)
{
    if (value[0] != '@')
        return fetch_data_add_raw(data, value);
    return data_append(data, "&", data->at ? 1 : 0) ? data_append_file(data, value + 1) : no_memory;
}

const char *fetch_data_add_raw(struct fetch_bytes *data, const char *value)
{
    if (!data_append(data, "&", data->at ? 1 : 0))
        return no_memory;
    char *text = fetch_secret_take(value);
    const char *want = text && data_append(data, text, strlen(text)) ? NULL : no_memory;
    fetch_secret_free(text);
    return want;
}

/* ---- header fields ---- */

#define HEADER_NAME_MAX   64u   /* a longer name is not shown */
#define HEADER_LENGTH_MAX 8192u /* limit of libbide-curl */

static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/* Returns the description of a valid field. It names the wrong one by its position, and by its name if a colon or
 * semicolon follows: a word without them may be a secret. */
static const char *header_want(const struct curl_slist *list, const char *field, const char *rule)
{
    static char text[256];
    unsigned number = 1;
    size_t name = strspn(field, token);
    for (; list; list = list->next)
        number++;
    bool named = name > 0 && name <= HEADER_NAME_MAX && (field[name] == ':' || field[name] == ';');
    snprintf(text, sizeof text, "a header field 'Name: value'%s (field %u%s%.*s)", rule, number, named ? ", " : "",
             named ? (int)name : 0, field);
    return text;
}

/* Returns true if the field has a byte that would end it, or that servers reject: all control bytes but the tab. */
static bool header_has_control(const char *field)
{
    for (; *field != '\0'; field++)
        if (((unsigned char)*field < ' ' && *field != '\t') || *field == 0x7f)
            return true;
    return false;
}

/* Returns what is missing, NULL if the field is valid. As curl: "Name: value"; "Name;" for an empty value; "Name:"
 * removes a field that libcurl would add. */
static const char *header_broken_rule(const char *field)
{
    size_t name = strspn(field, token);
    if (strpbrk(field, "\r\n"))
        return " without line breaks";
    if (header_has_control(field))
        return " without control bytes";
    if (name == 0 || !(field[name] == ':' || (field[name] == ';' && field[name + 1] == '\0')))
        return ", or @FILE with one field per line";
    return strlen(field) > HEADER_LENGTH_MAX ? " of at most 8192 bytes" : NULL;
}

static const char *header_add_field(void *context, char *field)
{
    struct curl_slist **list = context;
    const char *rule = header_broken_rule(field);
    if (rule)
        return header_want(*list, field, rule);
    struct curl_slist *grown = curl_slist_append(*list, field);
    if (!grown)
        return no_memory;
    *list = grown;
    return NULL;
}

const char *fetch_header_add(struct curl_slist **list, const char *value)
{
    if (value[0] == '@')
        return fetch_read_lines(value + 1, header_add_field, list);
    char *field = fetch_secret_take(value);
    const char *want = field ? header_add_field(list, field) : no_memory;
    fetch_secret_free(field);
    return want;
}

bool fetch_has_header(const struct curl_slist *list, const char *name)
{
    size_t length = strlen(name);
    for (; list; list = list->next)
        if (strncasecmp(list->data, name, length) == 0 && (list->data[length] == ':' || list->data[length] == ';'))
            return true;
    return false;
}

/* ---- credentials ---- */

static const char *user_keep_first_line(void *context, char *line)
{
    char **user = context;
    if (*user)
        return NULL;
    *user = strdup(line);
    return *user ? NULL : no_memory;
}

const char *fetch_user_read(char **user, const char *value)
{
    fetch_secret_free(*user);
    *user = NULL;
    if (value[0] != '@') {
        *user = fetch_secret_take(value);
        return *user ? NULL : no_memory;
    }
    const char *want = fetch_read_lines(value + 1, user_keep_first_line, user);
    return want || *user ? want : "a file with USER:PASSWORD in its first line";
}
