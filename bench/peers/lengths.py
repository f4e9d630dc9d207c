"""Sequences for the peers that read text: as long as a text's lines are, or all of one length."""
import gzip

CLS, SEP, FIRST_WORD = 101, 102, 1000


def read_lines(path):
    opener = gzip.open if path.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as file:
        return [line for line in (raw.strip() for raw in file) if line]


def of_text(path, vocab, max_length, count):
    """The ids of the first lines, between [CLS] and [SEP], cut at max_length."""
    from tokenizers import BertWordPieceTokenizer
    tokenizer = BertWordPieceTokenizer(vocab, lowercase="uncased" in vocab)
    tokenizer.enable_truncation(max_length)
    lines = read_lines(path)[:count]
    return [encoding.ids for encoding in tokenizer.encode_batch(lines)]


def of_length(length, vocabulary, count):
    import random
    draw = random.Random(0)
    return [[CLS, *(draw.randrange(FIRST_WORD, vocabulary) for _ in range(length - 2)), SEP]
            for _ in range(count)]


def pad(sequences):
    """Rectangular lists of ids and of what is a token, as long as the longest."""
    longest = max(map(len, sequences))
    return ([ids + [0] * (longest - len(ids)) for ids in sequences],
            [[1] * len(ids) + [0] * (longest - len(ids)) for ids in sequences])
