/* replay.c - the main of a fuzz target without libFuzzer: runs all files of the directories that it is given.
 *
 * `make test` replays the corpora of the repository this way, in every build. A crash names its file. */
#define _GNU_SOURCE
#include <dirent.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FILE_MAX (1u << 20)

/* Runs one file; returns 1, or 0 if it cannot be read. */
static int replay_file(const char *path)
{
    static uint8_t bytes[FILE_MAX];
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return 0;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    printf("%s\n", path);
    fflush(stdout);                              /* the last line names the input that crashed */
    uint8_t *copy = malloc(size > 0 ? size : 1); /* of its size: the address sanitizer detects every overread */
    if (copy == NULL)
        return 0;
    memcpy(copy, bytes, size);
    LLVMFuzzerTestOneInput(copy, size);
    free(copy);
    return 1;
}

static int replay_directory(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, alphasort), replayed = 0;
    if (count < 0)
        return replay_file(path);
    for (int i = 0; i < count; i++) {
        char name[PATH_MAX];
        snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        replayed += entries[i]->d_name[0] != '.' && replay_file(name);
        free(entries[i]);
    }
    free(entries);
    return replayed;
}

/* Exit status 1: no input was found, so nothing was tested. */
int main(int argc, char **argv)
{
    int replayed = 0;
    for (int i = 1; i < argc; i++)
        replayed += replay_directory(argv[i]);
    printf("%d inputs\n", replayed);
    return replayed == 0;
}
