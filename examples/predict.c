/* Reads click records from standard input and prints a probability for each.
 *
 *     cc examples/predict.c -Iinclude -Lbuild/release -ltandem -o predict
 *     ./predict runs/deepfm_criteo < requests.tsv
 */
#include <tandem/tandem.h>

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    tdm_predictor *predictor = NULL;
    tdm_status status = tdm_predictor_open(argc > 1 ? argv[1] : "", NULL, &predictor);
    char record[65536];
    while (status == TDM_OK && fgets(record, sizeof record, stdin) != NULL) {
        float probability;
        int64_t count;
        status = tdm_predictor_predict(predictor, record, strlen(record), &probability, 1, &count);
        if (status == TDM_OK && count == 1)
            printf("%.8g\n", (double)probability); /* nan: a bad record */
    }
    if (status != TDM_OK)
        fprintf(stderr, "%s\n", tdm_error_message());
    tdm_predictor_close(predictor);
    return status == TDM_OK ? 0 : 1;
}
