#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""LLaVA with language models of every kind, with the names of checkpoints of both generations.

vision.py loads the same folders with transformers and stores the likelihoods of their text in vision/texts.h5.
vision.t runs `llava.py TEXTS.h5`, which prints one line per row. Weights are a hash of their names, as in checkpoints.py.
"""
import json
import sys

import numpy as np

from checkpoints import GEMMA, GEMMA2, GEMMA3, GPT2, LLAMA, NEOX, NEOX_HEAD, OPT, QWEN3MOE, Row, compare, tensor

PLACEHOLDER = 28
VISION = dict(model_type="clip_vision_model", hidden_size=8, intermediate_size=12, num_hidden_layers=2, num_attention_heads=2,
              image_size=8, patch_size=4)
PROCESSOR = dict(image_processor_type="CLIPImageProcessor", do_resize=False, do_center_crop=False, do_rescale=True,
                 rescale_factor=1 / 255, do_normalize=True, image_mean=[0.5] * 3, image_std=[0.25] * 3)
IMAGES = [(np.abs(tensor(f"image {i}", 8, 24)) * 255).astype("u1").reshape(8, 8, 3) for i in (0, 1)]
TEXT = (np.abs(tensor("text", 1, 24))[0] * PLACEHOLDER).astype("i4")
SEQUENCES = [[*TEXT[:5], *[PLACEHOLDER] * 4, *TEXT[5:13]], [*[PLACEHOLDER] * 4, *TEXT[13:]]]
SPANS = [[5, 4], [len(SEQUENCES[0]), 4]]


def vision_shapes(hidden, normed):
    h, i = VISION["hidden_size"], VISION["intermediate_size"]
    s = {"pre_layrnorm": (h,)}
    for b in range(VISION["num_hidden_layers"]):
        p = f"encoder.layers.{b}."
        s |= {p + "self_attn." + n + "_proj": (h, h) for n in ("q", "k", "v", "out")}
        s |= {p + "layer_norm1": (h,), p + "layer_norm2": (h,), p + "mlp.fc1": (i, h), p + "mlp.fc2": (h, i)}
    s = {"vision_tower." + n: d for n, d in s.items()}
    s |= {"multi_modal_projector.linear_1": (hidden, h), "multi_modal_projector.linear_2": (hidden, hidden)}
    if normed:
        s["multi_modal_projector.projector_layernorm"] = (h,)
    s = {n + ".weight": d for n, d in s.items()} | {n + ".bias": d[:1] for n, d in s.items()}
    e = "vision_tower.embeddings."
    return s | {e + "class_embedding": (h,), e + "patch_embedding.weight": (h, 48), e + "position_embedding.weight": (5, h)}


class Llava(Row):
    """A folder of such a language model, a row of checkpoints.py, behind an encoder. old: names of transformers 4."""

    def __init__(self, text, old=False, kind="llava"):
        name = {"llava": "Llava", "vipllava": "VipLlava"}[kind] + "ForConditionalGeneration"
        self.config = dict(model_type=kind, architectures=[name], text_config=text.config, vision_config=VISION, vision_feature_layer=1,
                           image_token_index=PLACEHOLDER, tie_word_embeddings=text.config.get("tie_word_embeddings", False))
        self.tensors = {}
        for n, d in vision_shapes(text.config.get("hidden_size", 16), kind == "vipllava").items():
            t = tensor(n, *d) / (4 if len(d) == 2 else 1)
            n = n.replace("vision_tower.", "vision_tower.vision_model.") if old else "model." + n
            self.tensors[n] = t.reshape(-1, 3, 4, 4) if "patch_embedding" in n else t
        for n, t in text.tensors.items():
            if n in ("lm_head.weight", NEOX_HEAD):
                n = "language_model." * old + "lm_head.weight"
            else:
                n = ("language_model.model." if old else "model.language_model.") + n.split(".", 1)[1]
            self.tensors[n] = t

    def write(self, folder):
        super().write(folder)
        with open(folder + "/preprocessor_config.json", "w") as f:
            json.dump(PROCESSOR, f)


UNTIED = dict(tie_word_embeddings=False)        # no class that sees images ties the heads of these
CAPPED = dict(final_logit_softcapping=2.0)
OPT_ROW, NEOX_ROW, GPT2_ROW = Row(OPT, **UNTIED), Row(NEOX), Row(GPT2, **UNTIED)
GPT2_ROW.tensors["lm_head.weight"] = tensor("lm_head.weight", 29, 16)
ROWS = {
    "opt": Llava(OPT_ROW),
    "opt, names of transformers 4": Llava(OPT_ROW, old=True),
    "gpt2": Llava(GPT2_ROW),
    "gpt2, names of transformers 4": Llava(GPT2_ROW, old=True),
    "gpt_neox": Llava(NEOX_ROW),
    "gpt_neox, names of transformers 4": Llava(NEOX_ROW, old=True),
    "gpt_neox of VipLLaVA": Llava(NEOX_ROW, kind="vipllava"),
    "gemma": Llava(Row(GEMMA)),
    "gemma2, its logits are not capped": Llava(Row(GEMMA2, **CAPPED), old=True),
    "gemma2 of VipLLaVA": Llava(Row(GEMMA2, **CAPPED), kind="vipllava"),
    "gemma3, its logits are not capped": Llava(Row(GEMMA3, **CAPPED)),
    "qwen3_moe": Llava(Row(QWEN3MOE)),
}


def main():
    import h5py

    with h5py.File("texts.tokens.h5", "w") as f:
        ids = np.concatenate(SEQUENCES).astype("i4")
        f.attrs["ptq_kind"], f.attrs["ptq_version"] = "tokens", "1"
        f["tokens"], f["sequence"], f["modality"] = ids, np.cumsum([0, *map(len, SEQUENCES)]), (ids == PLACEHOLDER).astype("u1")
        f["tokens"].attrs.update(bos_id=-1, add_bos=0, vocab=29)
        f["image_span"], f["image_grid"] = np.array(SPANS), np.array([[1, 2, 2]] * 2, "i4")
        for i, image in enumerate(IMAGES):
            f[f"images/{i}"] = image
    with h5py.File(sys.argv[1]) as ref:
        for name, row in ROWS.items():
            compare(name, row, "texts.tokens.h5", 48, ref[name][...])


if __name__ == "__main__":
    main()
