"""Sentence vectors (the mean of the last hidden states) with onnxruntime, of a BertModel exported by
PyTorch, fp32: real tokens a second.

    peer_onnx.py SIZE|FOLDER [--text FILE --vocab FILE [--sort]] [--fused] [--threads N]
                 [--seconds S] [--batches N]

SIZE      mini (4 layers, hidden 256) or small (4, 512) with random weights, or the folder of a
          Hugging Face BERT
--text    sequences as long as the lines of a text, in batches of 32 padded to their longest;
          without it every sequence has 128 tokens
--sort    batches of lines of like length
--fused   the graph goes through onnxruntime.transformers.optimizer first (fused attention, GELU and
          LayerNorm)

It prints one line of JSON; "fill" is the share of real tokens in what is computed.
"""
import argparse
import json
import os
import sys
import tempfile
import time
import warnings

import numpy as np
import onnxruntime
import torch
import transformers

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import lengths  # noqa: E402

VOCABULARY, LENGTH, BATCH, BATCHES = 30522, 128, 32, 32
SIZES = {"mini": (4, 256, 4), "small": (4, 512, 8)}  # layers, hidden, heads


class Embedder(torch.nn.Module):
    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, ids, mask):
        hidden = self.bert(input_ids=ids, attention_mask=mask).last_hidden_state
        weights = mask.unsqueeze(-1).to(hidden.dtype)
        return (hidden * weights).sum(1) / weights.sum(1)


def make_bert(model):
    if model not in SIZES:
        return transformers.BertModel.from_pretrained(model, attn_implementation="eager")
    layers, hidden, heads = SIZES[model]
    torch.manual_seed(0)
    return transformers.BertModel(transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=4 * hidden, attn_implementation="eager"))


def export(embedder, path, fused):
    ids = torch.randint(0, 1000, (2, 16))
    mask = torch.ones_like(ids)
    mask[1, 9:] = 0
    sizes = {0: torch.export.Dim("rows", min=1, max=4096), 1: torch.export.Dim("length", max=512)}
    warnings.filterwarnings("ignore", module="torch")
    torch.onnx.export(embedder, (ids, mask), path, input_names=["ids", "mask"],
                      output_names=["vectors"], dynamic_shapes=(sizes, sizes), dynamo=True,
                      external_data=False, verbose=False)
    if fused:
        from onnxruntime.transformers import optimizer
        config = embedder.bert.config
        model = optimizer.optimize_model(path, "bert", num_heads=config.num_attention_heads,
                                         hidden_size=config.hidden_size)
        model.save_model_to_file(path)
    return ids, mask


def open_session(bert, fused, threads):
    """A session whose vectors equal PyTorch's."""
    embedder = Embedder(bert).eval()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        path = os.path.join(folder, "model.onnx")
        ids, mask = export(embedder, path, fused)
        session = onnxruntime.InferenceSession(path, options, ["CPUExecutionProvider"])
        expected = embedder(ids, mask).numpy()
    found = session.run(None, {"ids": ids.numpy(), "mask": mask.numpy()})[0]
    assert np.abs(found - expected).max() < 1e-4, "onnxruntime's vectors are not PyTorch's"
    return session


def measure(session, arguments, batches):
    def run(i):
        ids, mask = batches[i % len(batches)]
        session.run(None, {"ids": ids, "mask": mask})
        return mask

    run(0)
    done, start = [], time.perf_counter()
    while len(done) < arguments.batches and time.perf_counter() - start < arguments.seconds:
        done.append(run(len(done)))
    seconds = time.perf_counter() - start
    tokens = sum(int(mask.sum()) for mask in done)
    return {"batches": len(done), "tokens_per_second": tokens / seconds,
            "sequences_per_second": sum(len(mask) for mask in done) / seconds,
            "fill": tokens / sum(mask.size for mask in done)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--text")
    parser.add_argument("--vocab")
    parser.add_argument("--sort", action="store_true")
    parser.add_argument("--fused", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--batches", type=int, default=1_000_000)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    bert = make_bert(arguments.model)
    if arguments.text:
        sequences = lengths.of_text(arguments.text, arguments.vocab, LENGTH, BATCH * BATCHES)
    else:
        sequences = lengths.of_length(LENGTH, bert.config.vocab_size, BATCH * BATCHES)
    if arguments.sort:
        sequences.sort(key=len)
    batches = [tuple(np.array(rows, np.int64) for rows in lengths.pad(sequences[i:i + BATCH]))
               for i in range(0, len(sequences), BATCH)]
    result = measure(open_session(bert, arguments.fused, arguments.threads), arguments, batches)
    print(json.dumps({"peer": "onnxruntime", "onnxruntime": onnxruntime.__version__,
                      "torch": torch.__version__, "model": arguments.model,
                      "fused": arguments.fused, "precision": "fp32",
                      "lengths": "natural" if arguments.text else "full",
                      "sorted": arguments.sort, "batch": BATCH, "threads": arguments.threads,
                      **result}))


if __name__ == "__main__":
    main()
