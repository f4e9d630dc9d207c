"""tandem's encoders in Transformers' classes: the names of their parameters, and comparisons of
encoder_reference.py with them in float64.

What a class cannot hold is told instead of compared. ModernBERT's rotary positions are computed in
float32 by Transformers, so there the tolerance is wider.
"""
import numpy as np
import torch
import transformers
from torch.nn import functional

ACTIVATIONS = {"gelu": "gelu", "gelu_tanh": "gelu_pytorch_tanh"}


# ---- names: tandem's to a list of theirs, which lie one behind the other in tandem's tensor ------


def of_bert(name, pre):
    """BertModel, or with `pre` MegatronBertModel, with their heads."""
    base, kind = name.rsplit(".", 1)
    if base == "masked":
        return ["cls.predictions.decoder.bias"]
    heads = {"pair": "cls.seq_relationship", "masked.dense": "cls.predictions.transform.dense",
             "masked.norm": "cls.predictions.transform.LayerNorm", "classifier": "classifier",
             "pooler": "bert.pooler.dense", "norm": "bert.encoder.ln",
             "embeddings.word": "bert.embeddings.word_embeddings",
             "embeddings.position": "bert.embeddings.position_embeddings",
             "embeddings.type": "bert.embeddings.token_type_embeddings",
             "embeddings.norm": "bert.embeddings.LayerNorm"}
    if base in heads:
        return [f"{heads[base]}.{kind}"]
    _, i, part = base.split(".", 2)
    parts = {"attention.qkv": [f"attention.self.{p}" for p in ("query", "key", "value")],
             "attention.output": ["attention.output.dense"],
             "attention.norm": ["attention.ln" if pre else "attention.output.LayerNorm"],
             "mlp.input": ["intermediate.dense"], "mlp.output": ["output.dense"],
             "mlp.norm": ["ln" if pre else "output.LayerNorm"]}
    return [f"bert.encoder.layer.{i}.{p}.{kind}" for p in parts[part]]


def of_modern(name):
    """ModernBertForMaskedLM."""
    if name == "masked.bias":
        return ["decoder.bias"]
    base, kind = name.rsplit(".", 1)
    heads = {"masked.dense": "head.dense", "masked.norm": "head.norm", "norm": "model.final_norm",
             "embeddings.word": "model.embeddings.tok_embeddings",
             "embeddings.norm": "model.embeddings.norm"}
    if base in heads:
        return [f"{heads[base]}.{kind}"]
    _, i, part = base.split(".", 2)
    parts = {"attention.qkv": "attn.Wqkv", "attention.output": "attn.Wo",
             "attention.norm": "attn_norm", "mlp.input": "mlp.Wi", "mlp.output": "mlp.Wo",
             "mlp.norm": "mlp_norm"}
    return [f"model.layers.{i}.{parts[part]}.{kind}"]


# ---- classes -------------------------------------------------------------------------------------


def modern_model(options, vocabulary, max_length):
    config = transformers.ModernBertConfig(
        vocab_size=vocabulary, hidden_size=options["hidden"],
        intermediate_size=options["intermediate"], num_hidden_layers=options["layers"],
        num_attention_heads=options["heads"], max_position_embeddings=max_length,
        hidden_activation=ACTIVATIONS[options["activation"]],
        classifier_activation=ACTIVATIONS[options["activation"]], norm_eps=options["norm_eps"],
        local_attention=2 * options["local_window"],
        global_attn_every_n_layers=options["global_every"],
        rope_parameters={
            "full_attention": {"rope_type": "default", "rope_theta": options["rotary_theta"]},
            "sliding_attention": {"rope_type": "default",
                                  "rope_theta": options["local_rotary_theta"]}},
        pad_token_id=0, attn_implementation="sdpa")
    return transformers.ModernBertForMaskedLM(config)


def bert_model(options, weights, head):
    pre = options["norm"] == "pre"
    config = (transformers.MegatronBertConfig if pre else transformers.BertConfig)(
        vocab_size=len(weights["embeddings.word.weight"]), hidden_size=options["hidden"],
        num_hidden_layers=options["layers"], num_attention_heads=options["heads"],
        intermediate_size=options["intermediate"] or 4 * options["hidden"],
        hidden_act=ACTIVATIONS[options["activation"]], layer_norm_eps=options["norm_eps"],
        max_position_embeddings=len(weights["embeddings.position.weight"]), type_vocab_size=2,
        num_labels=len(weights.get("classifier.weight", [0, 0])))
    if head != "masked":
        return transformers.BertForSequenceClassification(config)
    if pre:
        return transformers.MegatronBertForPreTraining(config)
    pairs = "pair.weight" in weights
    return (transformers.BertForPreTraining if pairs else transformers.BertForMaskedLM)(config)


def class_of(options, head):
    """"bert", "modern" or None."""
    learned = options["positions"] == "learned" and options["local_window"] == 0
    if not learned:
        fits = (head == "masked" and options["norm"] == "pre" and options["embedding_norm"]
                and options["gated"] and not options["bias"] and not options["types"])
        return "modern" if fits else None
    plain = options["bias"] and not options["gated"] and not options["embedding_norm"]
    fits_head = head == "masked" or (head == "classes" and options["pooler"])
    return "bert" if plain and fits_head else None


def build(encoder, head, max_length):
    """The class that holds the encoder, in float64 with its weights, and how names are mapped."""
    options, weights = encoder.options, encoder.weights
    if class_of(options, head) == "modern":
        model = modern_model(options, len(weights["embeddings.word.weight"]), max_length)
        names = {n: of_modern(n) for n in weights}
    else:
        model = bert_model(options, weights, head)
        names = {n: of_bert(n, options["norm"] == "pre") for n in weights}
    model = model.double().eval()
    theirs = dict(model.named_parameters(remove_duplicate=False))
    if not options["types"] and "bert.embeddings.token_type_embeddings.weight" in theirs:
        theirs["bert.embeddings.token_type_embeddings.weight"].data.zero_()
    for name, parts in names.items():
        pieces = weights[name].data.chunk(len(parts))
        for part, piece in zip(parts, pieces):
            theirs[part].data.copy_(piece)
    return model, theirs, names


def pad(batch, values, fill=0):
    """[sequences, longest] of values of the tokens."""
    rows = int(batch["rows"][0])
    ends = batch["cu_seqlens"][:rows + 1]
    out = np.full((rows, int(np.diff(ends).max())), fill, np.int64)
    for i in range(rows):
        out[i, :ends[i + 1] - ends[i]] = values[ends[i]:ends[i + 1]]
    return torch.from_numpy(out)


def run(model, options, batch):
    """Their last hidden states [tokens, hidden], and what the class answers."""
    rows, tokens = int(batch["rows"][0]), int(batch["token_count"][0])
    mask = pad(batch, np.ones(tokens, np.int64))
    arguments = {"input_ids": pad(batch, batch["ids"]), "attention_mask": mask}
    if options["types"]:
        arguments["token_type_ids"] = pad(batch, batch["types"])
    answer = model(**arguments)
    hidden = model.base_model(**arguments).last_hidden_state
    assert len(hidden) == rows
    return hidden[mask.bool()], answer, mask.bool()


def total(head, answer, batch, mask):
    """The sum of the mean losses, as Transformers would have it of labels."""
    if head == "classes":
        known = batch["labels"][:len(answer.logits)] != 0xffffffff
        losses = functional.cross_entropy(
            answer.logits[known], torch.from_numpy(batch["labels"][:len(known)][known].astype(int)),
            reduction="none")
        weights = torch.from_numpy(batch["weight"][:len(known)][known]).double()
        return (weights * losses).sum() / weights.sum()
    count = int(batch["mask_count"][0])
    pairs = "pair_labels" in batch
    logits = (answer.prediction_logits if pairs else answer.logits)[mask]
    at = torch.from_numpy(batch["mask_positions"][:count].astype(int))
    loss = functional.cross_entropy(logits[at],
                                    torch.from_numpy(batch["mask_labels"][:count].astype(int)))
    if pairs:
        scores = answer.seq_relationship_logits
        loss = loss + functional.cross_entropy(
            scores, torch.from_numpy(batch["pair_labels"][:len(scores)].astype(int)))
    return loss


def distance(found, expected):
    return ((found - expected).norm() / expected.norm()).item()


def compare(head, encoder, batch, hidden, losses):
    """Fails where they differ; a line that tells how much."""
    kind = class_of(encoder.options, head)
    if kind is None:
        return "no class of Transformers holds it"
    model, theirs, names = build(encoder, head, int(pad(batch, batch["ids"]).shape[1]))
    found, answer, mask = run(model, encoder.options, batch)
    loss = total(head, answer, batch, mask)
    loss.backward()
    expected = sum(part / weight for weight, part, _ in losses)
    worst = {"hidden": distance(found, hidden), "loss": abs(loss.item() / expected.item() - 1)}
    for name, parts in names.items():
        gradient = torch.cat([theirs[p].grad for p in parts])
        worst[name] = distance(gradient, encoder.weights[name].grad)
    tolerance = 1e-5 if kind == "modern" else 1e-10
    name, most = max(worst.items(), key=lambda item: item[1])
    assert most <= tolerance, f"{name} differs from {type(model).__name__} by {most}"
    return f"{type(model).__name__} {transformers.__version__} differs by {most:.1e} at most ({name})"
