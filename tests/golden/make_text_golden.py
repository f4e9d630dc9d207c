"""Makes the reference files of the tokenizer, tests/golden/text/*, by running Hugging Face's.

    pip install tokenizers==0.23.3 numpy xxhash
    TANDEM_TEST_DATA=shared/data python tests/golden/make_text_golden.py [SECTION ...]

Sections, each a file (all of them without an argument, some minutes on one core):

    code_points.tsv      every code point through BertNormalizer and BertPreTokenizer, each setting
                         alone
    normalizations.json  strings that rules meet in, with all combinations of the settings
    corpora.tsv          ids and offsets of the test data's texts with each of its vocabularies
    random.tsv           ids and offsets of a million random strings (tests/support/random_text.h)

A hash is XXH3-64 of little-endian 32-bit numbers: for each record (a line, a string) how many
tokens it has, then their ids, or their offsets: from and to in code points of the record, token
after token. Bytes that are not UTF-8 are U+FFFD each. A line has no LF; what follows a file's last
LF is a line where it is not empty.
"""
import codecs
import gzip
import io
import itertools
import json
import os
import re
import sys
import zipfile
from array import array

os.environ.setdefault("RAYON_NUM_THREADS", "1")

import numpy as np
import tokenizers
import xxhash
from tokenizers import Tokenizer, normalizers, pre_tokenizers
from tokenizers.models import WordPiece

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "text")
DATA = os.environ["TANDEM_TEST_DATA"]

# name, file, lowercase
VOCABULARIES = [
    ("uncased", "bert-base-uncased-vocab.txt", True),
    ("cased", "bert-base-cased-vocab.txt", False),
    ("multilingual_uncased", "bert-base-multilingual-uncased-vocab.txt.gz", True),
    ("multilingual_cased", "bert-base-multilingual-cased-vocab.txt.gz", False),
    ("chinese", "bert-base-chinese-vocab.txt", True),
    ("japanese", "bert-base-japanese-vocab.txt", False),
]


def read(path):
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if path.endswith(".gz") else data


def load(name):
    """The tokenizer without special tokens: what stands in a text is text."""
    file, lowercase = next((f, low) for n, f, low in VOCABULARIES if n == name)
    lines = read(os.path.join(DATA, "vocab", file)).decode().split("\n")
    assert lines.pop() == ""
    model = WordPiece({line: i for i, line in enumerate(lines)}, unk_token="[UNK]",
                      max_input_chars_per_word=100)
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lowercase)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def hash_numbers(numbers):
    return f"{xxhash.xxh3_64_intdigest(numbers.tobytes()):016x}"


def hashes(encodings):
    """How many tokens, the hash of ids, the hash of offsets."""
    ids, offsets, tokens = array("I"), array("I"), 0
    for encoding in encodings:
        count = len(encoding.ids)
        tokens += count
        ids.append(count)
        ids.extend(encoding.ids)
        offsets.append(count)
        offsets.extend(itertools.chain.from_iterable(encoding.offsets))
    return tokens, hash_numbers(ids), hash_numbers(offsets)


def write(name, lines):
    with open(os.path.join(OUT, name), "w", encoding="ascii", newline="\n") as file:
        file.write("".join(line + "\n" for line in lines))


def dump(value):
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))


# ---- code points ------------------------------------------------------------------------------

# clean_text, handle_chinese_chars, strip_accents, lowercase
SINGLE = [("none", (False, False, False, False)), ("clean_text", (True, False, False, False)),
          ("chinese", (False, True, False, False)), ("strip_accents", (False, False, True, False)),
          ("lowercase", (False, False, False, True)), ("uncased", (True, True, None, True))]
BLOCK = 0x1000


def words_of(normalizer):
    """A tokenizer whose tokens are the words, all of them [UNK]."""
    tokenizer = Tokenizer(WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def bert_normalizer(settings):
    return normalizers.BertNormalizer(*settings)


def make_code_points():
    """For each block, "a", the code point, "b", " " one after another as one text: the hash of the
    normalised text in UTF-8, and of its words' offsets as one record."""
    rows = ["block\t" + "\t".join(name for name, _ in SINGLE)]
    peers = [words_of(bert_normalizer(settings)) for _, settings in SINGLE]
    for first in range(0, 0x110000, BLOCK):
        points = [c for c in range(first, first + BLOCK) if not 0xd800 <= c <= 0xdfff]
        text = "".join(f"a{chr(c)}b " for c in points)
        cells = []
        for peer in peers:
            normal = peer.normalizer.normalize_str(text).encode()
            words = hashes([peer.encode(text)])[2]
            cells.append(f"{xxhash.xxh3_64_intdigest(normal):016x}:{words}")
        rows.append(f"{first:x}\t" + "\t".join(cells))
    write("code_points.tsv", rows)


# ---- strings that rules meet in ---------------------------------------------------------------

TRICKY = [
    "", " ", " \t\r\n", "Hello, World!", "H\u00e9llo\0\tW\u00f6rld \u4e2d\u6587", "a\u200bb",
    "x\x0by\x0cz", "a\x85b\x1cc\x7fd", "1\0002\ufffd3", "\xad", "\u200e\u200f", "\ufeffHello",
    "a\u3000b\u2028c\u00a0d\u1680e\u202ff", "\u751f\u6d3b\u7684\u771f\u8c1b\u662f",
    "ah\u535a\u63a8zz", "\u9999\u6e2f\u3067\u306f\uff14\u65e5", "a\U0002b820b\U0002b920c",
    "\uf900\ufa11\U0002f800", "\u30ac\u30ae \u304b\u3099", "\ud55c\uad6d\uc5b4",
    "\u1112\u1161\u11ab", "\u0939\u093f\u0928\u094d\u0926\u0940", "\u0e44\u0e17\u0e22",
    "\u0645\u064f\u062d\u064e\u0645\u0651\u064e\u062f", "\u05e9\u05c1\u05dc\u05d5\u05b9\u05dd",
    "\u039f\u0394\u039f\u03a3 \u03a3\u03af\u03c3\u03c5\u03c6\u03bf\u03c2",
    "\u0130stanbul \u0131\u0130", "Stra\u00dfe STRASSE \u1e9e", "\u212a \u212b \u2126",
    "\ufb01\ufb03 \u01c5", "a\u2260b\u226ec\u037e\u1fef", "fianc\u00e9e re\u0301sume\u0301",
    "a\u0301\u0323\u0334b", "a\u0301\u302eb", "\u00e9\u302eb", "\u302e\u0301\u0334a",
    "\u0344\u0340\u0341", "\u0f73\u0f71\u0f72x", "\U0001d15e\U0001d160\u0334b",
    "\U0001d165\U0001d16e\u0301", "\u1e69\u1e0b\u0323", "q\u0307\u0323 q\u0323\u0307",
    "\u0898a\u08e2b\u1abf", "\u1734\u1885\u1886\ua9bd\U000111c9", "\u061d\u09fd\u2e43\u2e5d\u166d",
    "\u180e\U000110cd\U00013430", "\u1c89\ua7cb\ua7dc\U00010d50\U00016ea0",
    "\U00010400\U0001e900\U000118a0", "don\u2019t \u2014 en\u2013dash \u2026",
    "$1.00 #3 \u20ac4 \u00a35 \u20b98", "[unused1] ##ing [MASK]", "\u2581This \uff5e \u2192",
    "\U0001f600\u2764\ufe0f\U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\U0001f3f4\U000e0067\U000e0062\U000e007f", "a\ue000b\U000f0000c", "\u0378\uffff\U0010ffff",
    "tab\tnew\nline\r\n", "\u1ea1\u0302\u1ed9\u0301 \u0110\u1eb7ng",
    "'\u03a3' A\u03a3\u0301 \u03a3", "\u0345\u1fb3\u1fb7 \u0390\u1fd3", "\u2000\u2001\u2002\u200a",
    "\u115f\u1160\u3164\uffa0", "\u2329\u3008", "a" * 101 + " " + "b" * 100, "e\u0301" * 20,
]


def make_normalizations():
    """Results that are the same are written once; `settings` lists which combinations they are of:
    8 a clean_text, 4 a handle_chinese_chars, 2 a strip_accents, 1 a lowercase."""
    peers = [words_of(bert_normalizer(tuple(bool(i & bit) for bit in (8, 4, 2, 1))))
             for i in range(16)]
    rows = []
    for text in TRICKY:
        results = {}
        for i, peer in enumerate(peers):
            normal = peer.normalizer.normalize_str(text)
            offsets = list(itertools.chain.from_iterable(peer.encode(text).offsets))
            results.setdefault(dump([normal, offsets]), []).append(i)
        rows.append({"text": text, "results": [
            dict(zip(("settings", "normalized", "words"), (settings, *json.loads(result))))
            for result, settings in results.items()]})
    write("normalizations.json", ["[", *(dump(row) + ("," if i + 1 < len(rows) else "")
                                         for i, row in enumerate(rows)), "]"])


# ---- corpora ----------------------------------------------------------------------------------

def texts():
    """Names and bytes of all texts, files of the archive behind its name and a colon."""
    folder = os.path.join(DATA, "text")
    names = [name for name in os.listdir(folder) if os.path.isfile(os.path.join(folder, name))]
    names += ["udhr/" + name for name in os.listdir(os.path.join(folder, "udhr"))]
    for name in sorted(names):
        if not name.endswith(".zip"):
            yield name, read(os.path.join(folder, name))
            continue
        with zipfile.ZipFile(io.BytesIO(read(os.path.join(folder, name)))) as archive:
            for item in sorted(archive.infolist(), key=lambda info: info.filename):
                if not item.is_dir():
                    yield f"{name}:{item.filename}", archive.read(item)


def lines_of(data):
    # Python's own replacement takes several bytes at once.
    def one_each(error):
        return "\ufffd", error.start + 1

    codecs.register_error("one_each", one_each)
    lines = data.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    return [line.decode("utf-8", "one_each") for line in lines]


def make_corpora():
    files = [(name, lines_of(data)) for name, data in texts()]
    columns = []
    for name, _, _ in VOCABULARIES:
        tokenizer = load(name)
        columns.append([])
        for _, lines in files:
            tokens, ids, offsets = hashes(tokenizer.encode_batch(lines, add_special_tokens=False))
            columns[-1].append(f"{tokens}:{ids}:{offsets}")
    rows = ["file\tlines\t" + "\t".join(name for name, _, _ in VOCABULARIES)]
    for i, (name, lines) in enumerate(files):
        rows.append(f"{name}\t{len(lines)}\t" + "\t".join(column[i] for column in columns))
    write("corpora.tsv", rows)


# ---- random strings ---------------------------------------------------------------------------

RANDOM_SEED, RANDOM_STRINGS, RANDOM_BLOCK = 2018, 1000000, 10000
RANDOM_CHARS = 31
RANDOM_VOCABULARIES = ["uncased", "cased", "multilingual_cased"]


def random_ranges():
    path = os.path.join(HERE, "..", "support", "random_ranges.inc")
    with open(path, encoding="ascii") as file:
        pairs = re.findall(r"\{(0x[0-9a-f]+), (0x[0-9a-f]+)\}", file.read())
    return np.array([[int(a, 16), int(b, 16)] for a, b in pairs], dtype=np.uint64)


def random_strings(first, count, ranges):
    """As tdm_random_text()."""
    each = RANDOM_CHARS + 1
    draws = np.arange(first * each, (first + count) * each, dtype=np.uint64)
    with np.errstate(over="ignore"):
        x = np.uint64(RANDOM_SEED) + (draws + np.uint64(1)) * np.uint64(0x9e3779b97f4a7c15)
        x = (x ^ x >> np.uint64(30)) * np.uint64(0xbf58476d1ce4e5b9)
        x = (x ^ x >> np.uint64(27)) * np.uint64(0x94d049bb133111eb)
        x = (x ^ x >> np.uint64(31)).reshape(count, each)
    counts = x[:, 0] % np.uint64(each)
    chosen = ranges[x % np.uint64(len(ranges))]
    low, high = chosen[..., 0], chosen[..., 1]
    points = (low + (x >> np.uint64(32)) % (high - low + np.uint64(1))).astype("<u4")
    return [points[i, 1:1 + int(counts[i])].tobytes().decode("utf-32-le") for i in range(count)]


def make_random():
    ranges = random_ranges()
    peers = [load(name) for name in RANDOM_VOCABULARIES]
    rows = ["first\t" + "\t".join(RANDOM_VOCABULARIES)]
    for first in range(0, RANDOM_STRINGS, RANDOM_BLOCK):
        strings = random_strings(first, RANDOM_BLOCK, ranges)
        cells = []
        for peer in peers:
            tokens, ids, offsets = hashes(peer.encode_batch(strings, add_special_tokens=False))
            cells.append(f"{tokens}:{ids}:{offsets}")
        rows.append(f"{first}\t" + "\t".join(cells))
    write("random.tsv", rows)


SECTIONS = {"code_points": make_code_points, "normalizations": make_normalizations,
            "corpora": make_corpora, "random": make_random}

if __name__ == "__main__":
    assert tokenizers.__version__ == "0.23.3"
    os.makedirs(OUT, exist_ok=True)
    for section in sys.argv[1:] or SECTIONS:
        SECTIONS[section]()
