/* Reads lines from standard input and prints the ids of their tokens.
 *
 *     cc examples/tokenize.c -Iinclude -Lbuild/release -ltandem -o tokenize
 *     ./tokenize vocab.txt < corpus.txt
 */
#include <tandem/text.h>

#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    tdm_tokenizer *tokenizer = NULL;
    tdm_encoder *encoder = NULL;
    tdm_status status = tdm_tokenizer_open(argc > 1 ? argv[1] : "", NULL, &tokenizer);
    if (status == TDM_OK)
        status = tdm_encoder_create(tokenizer, 1, &encoder);
    char *line = NULL;
    size_t capacity = 0;
    for (ssize_t bytes; status == TDM_OK && (bytes = getline(&line, &capacity, stdin)) > 0;) {
        const uint32_t *ids;
        int64_t count = 0;
        status = tdm_encoder_ids(encoder, line, (size_t)bytes, &ids, &count);
        for (int64_t i = 0; i < count; i++)
            printf("%s%u", i > 0 ? " " : "", ids[i]);
        printf("\n");
    }
    if (status != TDM_OK)
        fprintf(stderr, "%s\n", tdm_error_message());
    free(line);
    tdm_encoder_destroy(encoder);
    tdm_tokenizer_close(tokenizer);
    return status == TDM_OK ? 0 : 1;
}
