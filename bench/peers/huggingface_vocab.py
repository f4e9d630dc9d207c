"""Hugging Face's WordPiece trainer, and how well a vocabulary fits a text.

    huggingface_vocab.py train SIZE OUT FILE...     prints seconds
    huggingface_vocab.py measure VOCAB TEXT         prints tokens a word and the share of [UNK] among the tokens
"""
import sys
import time

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers


def make_tokenizer(model):
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def train(size, out, files):
    tokenizer = make_tokenizer(models.WordPiece(unk_token="[UNK]"))
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=2, limit_alphabet=1000, show_progress=False,
        special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"])
    start = time.perf_counter()
    tokenizer.train(files, trainer)
    print(f"{time.perf_counter() - start:.3f}")
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    with open(out, "w", encoding="utf-8", newline="\n") as file:
        file.writelines(token + "\n" for token, _ in vocabulary)


def measure(vocabulary, text):
    with open(vocabulary, encoding="utf-8", newline="\n") as file:
        tokens = [line.rstrip("\n") for line in file]
    tokenizer = make_tokenizer(
        models.WordPiece({token: i for i, token in enumerate(tokens)}, unk_token="[UNK]"))
    unknown = tokenizer.token_to_id("[UNK]")
    with open(text, encoding="utf-8", newline="\n") as file:
        encodings = tokenizer.encode_batch([line.rstrip("\n") for line in file])
    ids = [i for encoding in encodings for i in encoding.ids]
    words = sum(len(set(encoding.word_ids)) for encoding in encodings)
    print(f"{len(ids) / words:.5f} {ids.count(unknown) / len(ids):.3e}")


if sys.argv[1] == "train":
    train(int(sys.argv[2]), sys.argv[3], sys.argv[4:])
else:
    measure(sys.argv[2], sys.argv[3])
