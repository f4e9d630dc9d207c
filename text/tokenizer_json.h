/* tokenizer.json, as Hugging Face's tokenizers (0.x, version "1.0" of the format) write it for
 * BERT: BertNormalizer, maybe behind NFC or NFKC, BertPreTokenizer, WordPiece, and the template of
 * [CLS] and [SEP]. Anything else is refused by name.
 *
 * What the format cannot say stands in the normalizer as "tandem": {"unicode": "google"}; Hugging
 * Face skips it there. Files without it are of mode huggingface. */
#ifndef TDM_TEXT_TOKENIZER_JSON_H
#define TDM_TEXT_TOKENIZER_JSON_H

#include "text/tokenizer.h"

/* Makes a tokenizer of the text of a file; `name` stands for the file in messages. TDM_E_FORMAT for
 * what is damaged, TDM_E_UNSUPPORTED for another kind of tokenizer, TDM_E_VERSION for another
 * version. */
TDM_MUST_CHECK tdm_status tdm_tokenizer_json_parse(const char *text, size_t bytes, const char *name,
                                                   tdm_tokenizer **out);

TDM_MUST_CHECK tdm_status tdm_tokenizer_json_save(const tdm_tokenizer *tokenizer, const char *path);

#endif
