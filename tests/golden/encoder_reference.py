"""The encoder of models/encoder.h in PyTorch, written out plainly on unpadded sequences: what
make_encoder_golden.py computes references with. Parameters go by tandem's names and shapes, options
by the keys of a recipe's section `model`.
"""
import math

import torch
from torch.nn import functional

NO_LABEL = 0xffffffff

DEFAULTS = {
    "layers": 12, "hidden": 768, "heads": 12, "intermediate": 0, "norm": "post",
    "embedding_norm": False, "norm_eps": 1e-12, "positions": "learned", "max_positions": 0,
    "rotary_theta": 10000.0, "types": True, "activation": "gelu", "gated": False, "bias": True,
    "local_window": 0, "global_every": 1, "local_rotary_theta": 10000.0, "pooler": True,
}


def is_global(options, layer):
    return options["local_window"] == 0 or layer % options["global_every"] == 0


def has_attention_norm(options, layer):
    return options["norm"] == "post" or layer > 0 or not options["embedding_norm"]


def shapes_of(options, inputs):
    """Name to shape of every parameter; inputs: vocabulary, max_length, head, classes, pairs."""
    shapes = {}
    hidden = options["hidden"]
    intermediate = options["intermediate"] or 4 * hidden

    def linear(name, units, width, bias=options["bias"]):
        shapes[f"{name}.weight"] = (units, width)
        if bias:
            shapes[f"{name}.bias"] = (units,)

    def norm(name):
        shapes[f"{name}.weight"] = (hidden,)
        if options["bias"]:
            shapes[f"{name}.bias"] = (hidden,)

    shapes["embeddings.word.weight"] = (inputs["vocabulary"], hidden)
    if options["positions"] == "learned":
        shapes["embeddings.position.weight"] = (options["max_positions"] or inputs["max_length"],
                                                hidden)
    if options["types"]:
        shapes["embeddings.type.weight"] = (2, hidden)
    if options["norm"] == "post" or options["embedding_norm"]:
        norm("embeddings.norm")
    for i in range(options["layers"]):
        if has_attention_norm(options, i):
            norm(f"layer.{i}.attention.norm")
        linear(f"layer.{i}.attention.qkv", 3 * hidden, hidden)
        linear(f"layer.{i}.attention.output", hidden, hidden)
        norm(f"layer.{i}.mlp.norm")
        linear(f"layer.{i}.mlp.input", (2 if options["gated"] else 1) * intermediate, hidden)
        linear(f"layer.{i}.mlp.output", hidden, intermediate)
    if options["norm"] == "pre":
        norm("norm")
    of_sequences = inputs["head"] in ("classes", "labels", "regression")
    if inputs["pairs"] or (of_sequences and options["pooler"]):
        linear("pooler", hidden, hidden, bias=True)
    if inputs["pairs"]:
        linear("pair", 2, hidden, bias=True)
    if inputs["head"] == "masked":
        linear("masked.dense", hidden, hidden)
        norm("masked.norm")
        shapes["masked.bias"] = (inputs["vocabulary"],)
    else:
        linear("classifier", inputs["classes"], hidden, bias=True)
    return shapes


class Encoder:
    def __init__(self, options, weights, dtype=torch.float64):
        self.options = options
        self.weights = {n: torch.from_numpy(w).to(dtype).requires_grad_()
                        for n, w in weights.items()}

    # ---- parts -----------------------------------------------------------------------------------

    def add_bias(self, name, x):
        return x + self.weights[name] if name in self.weights else x

    def linear(self, name, x):
        return self.add_bias(f"{name}.bias", x @ self.weights[f"{name}.weight"].T)

    def norm(self, name, x):
        mean = x.mean(1, keepdim=True)
        variance = ((x - mean) ** 2).mean(1, keepdim=True)
        normal = (x - mean) / torch.sqrt(variance + self.options["norm_eps"])
        return self.add_bias(f"{name}.bias", normal * self.weights[f"{name}.weight"])

    def activation(self, x):
        if self.options["activation"] == "gelu":
            return 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))

    def rotate(self, x, theta):
        """Of [heads, tokens, dim], a sequence's tokens in order."""
        tokens, half = x.shape[1], x.shape[2] // 2
        power = -2 * torch.arange(half, dtype=torch.float64) / x.shape[2]
        angle = torch.arange(tokens, dtype=torch.float64)[:, None] * theta ** power
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        first, second = x[..., :half], x[..., half:]
        return torch.cat([first * cos - second * sin, second * cos + first * sin], 2)

    def attend(self, layer, qkv, spans):
        options = self.options
        heads = options["heads"]
        dim = options["hidden"] // heads
        theta = options["rotary_theta" if is_global(options, layer) else "local_rotary_theta"]
        out = []
        for begin, end in spans:
            tokens = end - begin
            q, k, v = qkv[begin:end].view(tokens, 3, heads, dim).permute(1, 2, 0, 3)
            if options["positions"] == "rotary":
                q, k = self.rotate(q, theta), self.rotate(k, theta)
            scores = q @ k.transpose(1, 2) / math.sqrt(dim)
            if not is_global(options, layer):
                at = torch.arange(tokens)
                far = (at[:, None] - at[None, :]).abs() > options["local_window"]
                scores = scores.masked_fill(far, -math.inf)
            mixed = torch.softmax(scores, 2) @ v
            out.append(mixed.transpose(0, 1).reshape(tokens, options["hidden"]))
        return torch.cat(out)

    def attention(self, layer, x, spans):
        qkv = self.linear(f"layer.{layer}.attention.qkv", x)
        return self.linear(f"layer.{layer}.attention.output", self.attend(layer, qkv, spans))

    def mlp(self, layer, x):
        y = self.linear(f"layer.{layer}.mlp.input", x)
        if self.options["gated"]:
            first, second = y.chunk(2, 1)
            return self.linear(f"layer.{layer}.mlp.output", self.activation(first) * second)
        return self.linear(f"layer.{layer}.mlp.output", self.activation(y))

    # ---- the whole -------------------------------------------------------------------------------

    def embed(self, batch):
        x = self.weights["embeddings.word.weight"][batch["ids"]]
        if self.options["positions"] == "learned":
            x = x + self.weights["embeddings.position.weight"][batch["positions"]]
        if self.options["types"]:
            x = x + self.weights["embeddings.type.weight"][batch["types"]]
        if "embeddings.norm.weight" in self.weights:
            x = self.norm("embeddings.norm", x)
        return x

    def hidden(self, batch):
        """[tokens, hidden] of the last layer, final norm included."""
        options, spans = self.options, batch["spans"]
        x = self.embed(batch)
        for i in range(options["layers"]):
            if options["norm"] == "post":
                x = self.norm(f"layer.{i}.attention.norm", x + self.attention(i, x, spans))
                x = self.norm(f"layer.{i}.mlp.norm", x + self.mlp(i, x))
            else:
                known = has_attention_norm(options, i)
                y = self.norm(f"layer.{i}.attention.norm", x) if known else x
                x = x + self.attention(i, y, spans)
                x = x + self.mlp(i, self.norm(f"layer.{i}.mlp.norm", x))
        return self.norm("norm", x) if options["norm"] == "pre" else x

    def first_tokens(self, hidden, batch):
        return hidden[[begin for begin, _ in batch["spans"]]]

    def pooled(self, hidden, batch):
        return torch.tanh(self.linear("pooler", self.first_tokens(hidden, batch)))

    def masked_logits(self, hidden, batch):
        x = self.activation(self.linear("masked.dense", hidden[batch["mask_positions"]]))
        words = self.weights["embeddings.word.weight"]
        return self.norm("masked.norm", x) @ words.T + self.weights["masked.bias"]

    def logits(self, head, hidden, batch):
        if head == "masked":
            return self.masked_logits(hidden, batch)
        if head == "token_classes":
            return self.linear("classifier", hidden)
        pooled = "pooler.weight" in self.weights
        return self.linear("classifier", (self.pooled if pooled else self.first_tokens)(hidden, batch))


# ---- losses: (weight sum, loss sum, correct sum) -------------------------------------------------


def softmax_loss(logits, labels, weights):
    known = labels != NO_LABEL
    logits, labels, weights = logits[known], labels[known], weights[known]
    losses = functional.cross_entropy(logits, labels, reduction="none")
    correct = logits.argmax(1) == labels
    return weights.sum(), (weights * losses).sum(), (weights * correct).sum()


def label_loss(logits, labels, weights):
    losses = functional.binary_cross_entropy_with_logits(logits, labels, reduction="none")
    correct = (logits > 0) == (labels > 0.5)
    each = weights[:, None].expand_as(logits)
    return each.sum(), (each * losses).sum(), (each * correct).sum()


def squared_loss(logits, labels, weights):
    losses = (logits[:, 0] - labels) ** 2
    return weights.sum(), (weights * losses).sum(), torch.zeros_like(weights.sum())


def losses_of(encoder, head, batch):
    """The last hidden states, the head's logits, and a list of losses."""
    hidden = encoder.hidden(batch)
    logits = encoder.logits(head, hidden, batch)
    if head == "masked":
        ones = torch.ones(len(logits), dtype=logits.dtype)
        losses = [softmax_loss(logits, batch["mask_labels"], ones)]
    elif head == "labels":
        losses = [label_loss(logits, batch["labels"], batch["weight"])]
    elif head == "regression":
        losses = [squared_loss(logits, batch["labels"], batch["weight"])]
    else:
        ones = torch.ones(len(logits), dtype=logits.dtype)
        weights = batch["weight"] if head == "classes" else ones
        losses = [softmax_loss(logits, batch["labels"], weights)]
    if "pair.weight" in encoder.weights:
        pairs = encoder.linear("pair", encoder.pooled(hidden, batch))
        losses.append(softmax_loss(pairs, batch["pair_labels"], batch["weight"]))
    return hidden, logits, losses


def total_loss(losses):
    return sum(loss / weight for weight, loss, _ in losses)
