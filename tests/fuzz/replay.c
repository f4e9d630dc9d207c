/* Runs a fuzz target over every file of a folder: the corpus as an ordinary test. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void replay(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        perror(path);
        exit(1);
    }
    uint8_t *data = malloc(1 << 22);
    if (data == NULL)
        exit(1);
    size_t size = fread(data, 1, 1 << 22, file);
    fclose(file);
    /* An exact allocation, so that a read past the end is seen. */
    uint8_t *exact = malloc(size == 0 ? 1 : size);
    if (exact == NULL)
        exit(1);
    memcpy(exact, data, size);
    free(data);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    DIR *folder = opendir(argv[1]);
    if (folder == NULL) {
        perror(argv[1]);
        return 1;
    }
    int count = 0;
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", argv[1], entry->d_name);
        replay(path);
        count++;
    }
    closedir(folder);
    printf("%d inputs replayed\n", count);
    return count > 0 ? 0 : 1;
}
