#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference tensors for tests/vision.c: small random models that see images, run by transformers.

Float32, eager attention, fixed seeds. Each file is a model as model-import writes it (config, processor, tree)
and the tokens it was run on as images-import writes them: /tokens, /images, /image_span, /image_grid, /modality,
/sequence; beside them /test/logits [tokens, vocab], and /test/squares/<layer> [modalities, in]: sums of squares
of what each linear layer is fed, by modality of the tokens, one row for what sees images alone.
Usage: vision.py [FOLDER], default the folder vision beside this file.
"""
import json
import pathlib
import sys

import h5py
import numpy as np
import torch
import transformers

TEXT = dict(hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=61, max_position_embeddings=128, bos_token_id=1,
            eos_token_id=2, rms_norm_eps=1e-5)
TOWER = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=3, patch_size=5)
PLACEHOLDER = 60

# Encoder and its settings, language model and its settings, settings of the whole.
ROWS = {
    "llava-clip": ("CLIPVision", dict(image_size=20), "Llama", dict(), dict()),
    "llava-clip-full": ("CLIPVision", dict(image_size=17, hidden_act="gelu", layer_norm_eps=1e-3), "Gemma",
                        dict(num_hidden_layers=1, head_dim=8),
                        dict(vision_feature_layer=-1, vision_feature_select_strategy="full", projector_hidden_act="relu")),
    "llava-siglip": ("SiglipVision", dict(image_size=20), "Qwen2", dict(tie_word_embeddings=True),
                     dict(vision_feature_layer=1, vision_feature_select_strategy="full", multimodal_projector_bias=False)),
}
# Rows of text between two images; how many tokens of each.
TEXTS = (3, 4, 5), (0, 2, 1)


def configuration(row):
    tower, vision, text, language, whole = row
    return transformers.LlavaConfig(
        vision_config=getattr(transformers, tower + "Config")(**TOWER | vision),
        text_config=getattr(transformers, text + "Config")(**TEXT | language),
        image_token_index=PLACEHOLDER, attn_implementation="eager", **whole)


def fill(model, generator):
    """Random weights: of transformers' own, norms are 1 and biases 0."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            p.copy_(1 + 0.2 * noise if "norm" in name and name.endswith("weight") and p.dim() == 1 else 0.2 * noise)


def path_of(name):
    """Where model-import puts a tensor or a layer; None: nowhere."""
    for start, other in (("model.language_model.", "model."), ("model.", "")):
        if name.startswith(start):
            name = other + name[len(start):]
            break
    name = name.replace("vision_tower.vision_model.", "vision_tower.")
    name = name.replace("vision_tower.pre_layrnorm", "vision_tower.embeddings.pre_layrnorm")
    if name.startswith(("vision_tower.post_layernorm", "vision_tower.head.")):
        return None
    return "/" + name.replace(".", "/")


def depth(config):
    """How many blocks of the encoder the features pass."""
    n, layer = config.vision_config.num_hidden_layers, config.vision_feature_layer
    return layer if layer >= 0 else n + 1 + layer


def kept(path, config):
    stem = "/vision_tower/encoder/layers/"
    return path and not (path.startswith(stem) and int(path[len(stem):].split("/")[0]) >= depth(config))


def tree(model):
    state = dict(model.state_dict()) | {"lm_head.weight": model.lm_head.weight}
    for name, t in sorted(state.items()):
        path = path_of(name)
        if not kept(path, model.config) or path.endswith("position_ids"):
            continue
        t = t.detach().numpy()
        yield path, t.reshape(len(t), -1) if path.endswith("patch_embedding/weight") else t


def watch(model, modality, seen):
    """Sums of squares of the inputs of linear layers, by modality."""
    def see(path, module, x):
        x = x[0].detach()
        if isinstance(module, torch.nn.Conv2d):
            x = torch.nn.functional.unfold(x, module.kernel_size, stride=module.stride).transpose(1, 2)
        x = x.double().reshape(-1, x.shape[-1])
        parts = [x[modality == m] for m in (0, 1)] if path.startswith(("/model", "/lm_head")) else [x]
        seen[path] = seen.get(path, 0) + np.stack([(p ** 2).sum(0).numpy() for p in parts])

    for name, module in model.named_modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
            path = path_of(name)
            if kept(path, model.config):
                module.register_forward_pre_hook(lambda module, x, path=path: see(path, module, x))


def write(path, row):
    config = configuration(row)
    generator = torch.Generator().manual_seed(16)
    model = transformers.LlavaForConditionalGeneration(config).eval()
    fill(model, generator)
    v = config.vision_config
    features = (v.image_size // v.patch_size) ** 2 + (v.model_type == "clip_vision_model") - (config.vision_feature_select_strategy == "default")
    images = torch.randint(0, 256, (4, v.image_size, v.image_size, 3), generator=generator).numpy().astype("u1")
    pixels = torch.tensor(((images.astype("f4") / 255 - np.float32(0.5)) / np.float32(0.25)).transpose(0, 3, 1, 2))
    ids, spans, sequence, logits, seen = [], [], [0], [], {}
    modality = []
    for text in TEXTS:
        own = []
        for i, n in enumerate(text):
            own += torch.randint(3, PLACEHOLDER, (n,), generator=generator).tolist()
            if i < 2:
                spans.append([sequence[-1] + len(own), features])
                own += [PLACEHOLDER] * features
        ids += own
        modality.append(torch.tensor(own) == PLACEHOLDER)
        sequence.append(len(ids))
    for s, (first, end) in enumerate(zip(sequence, sequence[1:])):
        for module in model.modules():
            module._forward_pre_hooks.clear()
        watch(model, modality[s], seen)
        with torch.no_grad():
            y = model(input_ids=torch.tensor([ids[first:end]]), pixel_values=pixels[2 * s:2 * s + 2])
        logits.append(y.logits[0])
    text = json.loads(config.to_json_string(use_diff=False))
    text["architectures"] = ["LlavaForConditionalGeneration"]
    processor = dict(image_processor_type="CLIPImageProcessor", do_resize=False, do_center_crop=False, do_rescale=True,
                     rescale_factor=1 / 255, do_normalize=True, image_mean=[0.5] * 3, image_std=[0.25] * 3)
    with h5py.File(path, "w", track_order=False) as f:
        def put(name, data, kind):
            f.create_dataset(name, data=np.ascontiguousarray(data, kind), track_times=False)

        f.attrs["ptq_kind"], f.attrs["ptq_version"], f.attrs["history"] = "model", "1", "tests/ref/vision.py"
        f.create_dataset("config", data=json.dumps(text, indent=1), dtype=h5py.string_dtype())
        f.create_dataset("processor", data=json.dumps(processor, indent=1), dtype=h5py.string_dtype())
        for name, t in tree(model):
            put(name, t, "f4")
        put("tokens", ids, "i4")
        for name, n in ("bos_id", 1), ("add_bos", 0), ("vocab", 61):
            f["tokens"].attrs[name] = np.int64(n)
        put("sequence", sequence, "i8")
        put("modality", [i == PLACEHOLDER for i in ids], "u1")
        put("image_span", spans, "i8")
        side = v.image_size // v.patch_size
        put("image_grid", [[1, side, side]] * len(images), "i4")
        for i, image in enumerate(images):
            put(f"images/{i}", image, "u1")
        put("test/logits", torch.cat(logits).numpy(), "f4")
        for name, s in seen.items():
            put("test/squares" + name, s, "f8")


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "vision")
    for name, row in ROWS.items():
        write(folder / f"{name}.h5", row)


if __name__ == "__main__":
    main()
