"""BERT pretraining with Transformers on PyTorch, masked tokens only: real tokens a second of whole
steps (forward, backward, clipping, fused AdamW), dropout 0.1, 15 % of the tokens masked.

    peer_torch.py SIZE [--form shipped|masked] [--precision fp32|bf16] [--text FILE --vocab FILE]
                  [--compile] [--threads N] [--seconds S] [--steps N]

SIZE      mini (4 layers, hidden 256), small (4, 512) or base (12, 768)
shipped   BertForMaskedLM as it is: logits at every position
masked    the head on masked positions only, attention by scaled_dot_product_attention: its best form
--text    sequences as long as the lines of a text, in batches padded to their longest; without it
          every sequence has 128 tokens

bf16 is autocast. It prints one line of JSON; "fill" is the share of real tokens in what is computed.
"""
import argparse
import json
import os
import sys
import time

import torch
import transformers
from torch.nn import functional

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "peers"))
import lengths  # noqa: E402

VOCABULARY, MASK, LENGTH, RATE, BATCHES = 30522, 103, 128, 0.15, 16
# layers, hidden, heads, batch
SIZES = {"mini": (4, 256, 4, 32), "small": (4, 512, 8, 32), "base": (12, 768, 12, 8)}


def make_model(size):
    layers, hidden, heads, _ = SIZES[size]
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=hidden, num_hidden_layers=layers,
        num_attention_heads=heads, intermediate_size=4 * hidden, max_position_embeddings=512)
    torch.manual_seed(0)
    return transformers.BertForMaskedLM(config).train()


def make_batch(sequences):
    """What both forms need of a batch, and its count of real tokens."""
    ids, mask = (torch.tensor(rows) for rows in lengths.pad(sequences))
    words = (mask == 1) & (ids != lengths.CLS) & (ids != lengths.SEP)
    at = torch.nonzero(words.flatten())[:, 0]
    chosen = at[torch.randperm(len(at))[:max(1, round(RATE * int(mask.sum())))]].sort().values
    labels = ids.flatten()[chosen]
    masked = ids.flatten().clone()
    masked[chosen] = MASK
    all_labels = torch.full_like(masked, -100)
    all_labels[chosen] = labels
    # Where nothing is padded there is no mask: attention is faster without.
    return {"ids": masked.view_as(ids), "mask": None if bool(mask.all()) else mask, "at": chosen,
            "labels": labels, "all_labels": all_labels.view_as(ids), "tokens": int(mask.sum()),
            "places": mask.numel()}


def loss_of(model, form, batch):
    if form == "shipped":
        return model(input_ids=batch["ids"], attention_mask=batch["mask"],
                     labels=batch["all_labels"]).loss
    hidden = model.bert(input_ids=batch["ids"], attention_mask=batch["mask"]).last_hidden_state
    logits = model.cls(hidden.flatten(0, 1)[batch["at"]])
    return functional.cross_entropy(logits.float(), batch["labels"])


def measure(model, arguments, batches):
    parameters = list(model.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=1e-4, weight_decay=0.01, fused=True)
    compute = torch.compile(loss_of, dynamic=True) if arguments.compile else loss_of

    def step(i):
        batch = batches[i % len(batches)]
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", torch.bfloat16, enabled=arguments.precision == "bf16"):
            loss = compute(model, arguments.form, batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        optimizer.step()
        return batch

    for i in range(arguments.warmup):
        step(i)
    done, start = [], time.perf_counter()
    while len(done) < arguments.steps and time.perf_counter() - start < arguments.seconds:
        done.append(step(len(done)))
    seconds = time.perf_counter() - start
    tokens = sum(batch["tokens"] for batch in done)
    return {"steps": len(done), "tokens_per_second": tokens / seconds,
            "fill": tokens / sum(batch["places"] for batch in done)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("--form", choices=["shipped", "masked"], default="masked")
    parser.add_argument("--precision", choices=["fp32", "bf16"], default="fp32")
    parser.add_argument("--text")
    parser.add_argument("--vocab")
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--warmup", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    size = SIZES[arguments.size][3]
    if arguments.text:
        sequences = lengths.of_text(arguments.text, arguments.vocab, LENGTH, BATCHES * size)
    else:
        sequences = lengths.of_length(LENGTH, VOCABULARY, BATCHES * size)
    torch.manual_seed(1)
    batches = [make_batch(sequences[i:i + size]) for i in range(0, len(sequences), size)]
    result = measure(make_model(arguments.size), arguments, batches)
    print(json.dumps({"peer": "torch", "torch": torch.__version__,
                      "transformers": transformers.__version__, "size": arguments.size,
                      "form": arguments.form, "compiled": arguments.compile,
                      "precision": arguments.precision,
                      "lengths": "natural" if arguments.text else "full", "batch": size,
                      "threads": arguments.threads, **result}))


if __name__ == "__main__":
    main()
