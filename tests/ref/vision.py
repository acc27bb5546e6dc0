#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reference tensors for tests/vision.c: small random vision-language models, run by transformers.

Models run in float32 with eager attention and fixed seeds. Each file is a model as model-import writes it (config,
processor, tree), and its tokens as images-import writes them: /tokens, /images, /image_span, /image_grid, /modality,
/sequence. It also has /test/logits [tokens, vocab], /test/loss [sequences] in double, with labels of images -100, and
/test/squares/<layer> [modalities, in]: sums of squares of the inputs of each linear layer, by modality of the tokens,
with one row for layers that process images only.

texts.h5 has the nll of the rows of llava.py. Usage: vision.py [FOLDER [MODEL...]], default all models; writes to the
folder vision next to this file.
"""
import copy
import json
import pathlib
import sys
import tempfile

import h5py
import numpy as np
import torch
import transformers
from transformers.models.clip import modeling_clip

import llava

TEXT = dict(hidden_size=32, intermediate_size=44, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, vocab_size=61, max_position_embeddings=128, bos_token_id=1,
            eos_token_id=2, rms_norm_eps=1e-5)
TOWER = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=3, patch_size=5)
PLACEHOLDER = 60

# Encoder and its settings, language model and its settings, settings of the whole, whose class is LLaVA's or that of "kind".
ROWS = {
    "llava-clip": ("CLIPVision", dict(image_size=20), "Llama", dict(), dict()),
    "llava-clip-full": ("CLIPVision", dict(image_size=17, hidden_act="gelu", layer_norm_eps=1e-3), "Gemma",
                        dict(num_hidden_layers=1, head_dim=8),
                        dict(vision_feature_layer=-1, vision_feature_select_strategy="full", projector_hidden_act="relu")),
    "qwen2-vl": ("Qwen2VL", dict(depth=2, embed_dim=24, num_heads=2, hidden_size=32, mlp_ratio=2, patch_size=5), "Qwen2VL",
                 dict(rope_parameters=dict(rope_type="default", rope_theta=1000.0, mrope_section=[1, 2, 1])), dict()),
    "qwen2.5-vl": ("Qwen2_5_VL", dict(depth=3, hidden_size=24, num_heads=2, out_hidden_size=32, intermediate_size=36,
                                      patch_size=5, window_size=27, fullatt_block_indexes=[1, 7]), "Qwen2_5_VL",
                   dict(rope_parameters=dict(rope_type="default", rope_theta=1000.0, mrope_section=[2, 1, 1])), dict()),
    "idefics3": ("Idefics3", dict(image_size=30), "Llama", dict(), dict(scale_factor=2)),
    "smolvlm": ("SmolVLM", dict(image_size=46, hidden_act="gelu", layer_norm_eps=1e-3), "Qwen2", dict(),
                dict(scale_factor=3, tie_word_embeddings=True)),
    "llava-siglip": ("SiglipVision", dict(image_size=20), "Qwen2", dict(tie_word_embeddings=True),
                     dict(vision_feature_layer=1, vision_feature_select_strategy="full", multimodal_projector_bias=False)),
    "llava-postnorm": ("CLIPVision", dict(image_size=20, hidden_act="gelu"), "Llama", dict(),
                       dict(vision_feature_layer=-1, postnorm=True)),
    "vipllava": ("CLIPVision", dict(image_size=20, hidden_act="gelu"), "Llama", dict(),
                 dict(kind="VipLlava", vision_feature_layer=-1, projector_layernorm_eps=1e-2)),
}
# Rows and columns of patches of the images of classes with images of any size. Windows of 2 x 2 squares of 2 x 2 patches:
# several in an image, whole ones and parts of one at both edges; one that is the image, and one smaller.
GRIDS = {"qwen2_vl": ((4, 6), (2, 2), (6, 4), (4, 4)), "qwen2_5_vl": ((6, 10), (2, 2), (10, 4), (4, 4))}
# Rows of text between two images; how many tokens of each.
TEXTS = (3, 4, 5), (0, 2, 1)


def configuration(row):
    tower, vision, text, language, whole = row
    if tower.startswith("Qwen"):
        return getattr(transformers, tower + "Config")(vision_config=vision, text_config=TEXT | language, image_token_id=PLACEHOLDER,
            vision_start_token_id=58, vision_end_token_id=59, attn_implementation="eager", **whole)
    if "scale_factor" in whole:
        return getattr(transformers, tower + "Config")(
            vision_config=TOWER | vision, text_config=getattr(transformers, text + "Config")(**TEXT | language),
            image_token_id=PLACEHOLDER, attn_implementation="eager", **whole)
    whole = {k: v for k, v in whole.items() if k != "postnorm"}
    return getattr(transformers, whole.pop("kind", "Llava") + "Config")(
        vision_config=getattr(transformers, tower + "Config")(**TOWER | vision),
        text_config=getattr(transformers, text + "Config")(**TEXT | language),
        image_token_index=PLACEHOLDER, attn_implementation="eager", **whole)


class PostNorm(modeling_clip.CLIPEncoderLayer):
    """x + LayerNorm(f(x)), of CLIP's parameters."""
    def forward(self, x, mask=None, **rest):
        x = x + self.layer_norm1(self.self_attn(x, mask, **rest)[0])
        return x + self.layer_norm2(self.mlp(x))


def make(config, postnorm):
    """The model; with blocks of the class above and no norm before them."""
    kind = getattr(transformers, type(config).__name__.replace("Config", "ForConditionalGeneration"))
    if not postnorm:
        return kind(config)
    own, modeling_clip.CLIPEncoderLayer = modeling_clip.CLIPEncoderLayer, PostNorm
    modeling_clip.CLIPPreTrainedModel._can_record_outputs["hidden_states"] = PostNorm
    model = kind(config)
    modeling_clip.CLIPEncoderLayer = modeling_clip.CLIPPreTrainedModel._can_record_outputs["hidden_states"] = own
    model.model.vision_tower.pre_layrnorm = torch.nn.Identity()
    return model


def fill(model, generator):
    """Random weights: of transformers' own, norms are 1 and biases 0."""
    with torch.no_grad():
        for name, p in model.named_parameters():
            noise = torch.randn(p.shape, generator=generator)
            p.copy_(1 + 0.2 * noise if "norm" in name and name.endswith("weight") and p.dim() == 1 else 0.2 * noise)


def path_of(name):
    """Where model-import puts a tensor or a layer; None: nowhere."""
    name = name.replace("model.vision_model.post_layernorm", "model.connector.post_layernorm")
    for start, other in (("model.language_model.", "model."), ("model.text_model.", "model."),
                         ("model.vision_model.", "vision_tower."), ("model.", "")):
        if name.startswith(start):
            name = other + name[len(start):]
            break
    name = name.replace("vision_tower.vision_model.", "vision_tower.")
    name = name.replace("vision_tower.pre_layrnorm", "vision_tower.embeddings.pre_layrnorm")
    if name.startswith("visual."):
        return "/" + name.replace(".", "/")
    if name.startswith(("vision_tower.post_layernorm", "vision_tower.head.")):
        return None
    return "/" + name.replace(".", "/")


def depth(config):
    """How many blocks of the encoder the features pass."""
    if config.model_type in GRIDS:
        return config.vision_config.depth
    n, layer = config.vision_config.num_hidden_layers, getattr(config, "vision_feature_layer", -1)
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
        if "/attn/qkv/" in path:
            yield from zip((path.replace("qkv", part + "_proj") for part in "qkv"), np.split(t, 3))
        else:
            yield path, t.reshape(len(t), -1) if t.ndim > 2 else t


def watch(model, modality, seen):
    """Sums of squares of the inputs of linear layers, by modality."""
    def see(path, module, x):
        x = x[0].detach()
        if isinstance(module, torch.nn.Conv3d):
            x = x.flatten(1)
        if isinstance(module, torch.nn.Conv2d):
            x = torch.nn.functional.unfold(x, module.kernel_size, stride=module.stride).transpose(1, 2)
        x = x.double().reshape(-1, x.shape[-1])
        parts = [x[modality == m] for m in (0, 1)] if path.startswith(("/model", "/lm_head")) else [x]
        for p in [path.replace("qkv", part + "_proj") for part in "qkv"] if path.endswith("/qkv") else [path]:
            seen[p] = seen.get(p, 0) + np.stack([(part ** 2).sum(0).numpy() for part in parts])

    for name, module in model.named_modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d, torch.nn.Conv3d)):
            path = path_of(name)
            if kept(path, model.config):
                module.register_forward_pre_hook(lambda module, x, path=path: see(path, module, x))


def images_of(config, generator):
    """Images, their grids of patches, how many tokens each has, and the rescaled and normalized pixels."""
    v = config.vision_config
    if config.model_type in GRIDS:
        grids = GRIDS[config.model_type]
        features = [h * w // v.spatial_merge_size ** 2 for h, w in grids]
    else:
        side = v.image_size // v.patch_size
        grids = [(side, side)] * 4
        skipped = getattr(config, "vision_feature_select_strategy", "default") == "default"
        each = getattr(config, "scale_factor", None)
        features = [side * side // each ** 2 if each else side * side + (v.model_type == "clip_vision_model") - skipped] * 4
    rest = 0 if config.model_type in GRIDS else v.image_size % v.patch_size
    images = [torch.randint(0, 256, (h * v.patch_size + rest, w * v.patch_size + rest, 3), generator=generator).numpy().astype("u1")
              for h, w in grids]
    pixels = [torch.tensor(((i.astype("f4") / 255 - np.float32(0.5)) / np.float32(0.25)).transpose(2, 0, 1)) for i in images]
    return images, grids, features, pixels


def run(model, exact, ids, pixels, grids):
    """The logits of a sequence, its loss in double, and its positions where they have three numbers."""
    ids, c = torch.tensor([ids]), model.config
    labels = ids.masked_fill(ids == PLACEHOLDER, -100)
    if c.model_type not in GRIDS:
        own = dict(input_ids=ids, pixel_values=torch.stack(pixels)[None if hasattr(c, "scale_factor") else slice(None)])
        return model(**own).logits[0], exact(**own, labels=labels).loss, None
    p, m, t = c.vision_config.patch_size, c.vision_config.spatial_merge_size, c.vision_config.temporal_patch_size
    patches = [x.reshape(3, 1, h // m, m, p, w // m, m, p).expand(-1, t, -1, -1, -1, -1, -1, -1).permute(2, 5, 3, 6, 0, 1, 4, 7)
               .reshape(h * w, -1) for x, (h, w) in zip(pixels, grids)]
    grid = torch.tensor([[1, h, w] for h, w in grids])
    types = (ids == PLACEHOLDER).int()
    positions = model.model.get_rope_index(ids, types, image_grid_thw=grid)[0]
    own = dict(input_ids=ids, pixel_values=torch.cat(patches), image_grid_thw=grid, mm_token_type_ids=types, position_ids=positions)
    return model(**own).logits[0], exact(**own, labels=labels).loss, positions[:, 0].T.numpy()


def write(path, row):
    config = configuration(row)
    generator = torch.Generator().manual_seed(16)
    postnorm = row[4].get("postnorm")
    model = make(config, postnorm).eval()
    fill(model, generator)
    exact = copy.deepcopy(model).double()
    images, grids, features, pixels = images_of(config, generator)
    ids, spans, sequence, logits, losses, positions, seen = [], [], [0], [], [], [], {}
    for s, text in enumerate(TEXTS):
        own = []
        for i, n in enumerate(text):
            own += torch.randint(3, 58, (n,), generator=generator).tolist()
            if i < 2:
                spans.append([sequence[-1] + len(own), features[2 * s + i]])
                own += [PLACEHOLDER] * features[2 * s + i]
        for module in model.modules():
            module._forward_pre_hooks.clear()
        watch(model, torch.tensor(own) == PLACEHOLDER, seen)
        with torch.no_grad():
            y, loss, at = run(model, exact, own, pixels[2 * s:2 * s + 2], grids[2 * s:2 * s + 2])
        ids += own
        sequence.append(len(ids))
        logits.append(y)
        losses.append(loss)
        positions.append(at)
    text = json.loads(config.to_json_string(use_diff=False))
    text["architectures"] = [type(model).__name__]
    if postnorm:
        text["vision_config"]["model_type"] = "postnorm_vision_model"
    merges = config.model_type in GRIDS
    processor = dict(image_processor_type="Qwen2VLImageProcessor" if merges else "CLIPImageProcessor", do_resize=False,
                     **(dict(patch_size=5, merge_size=2, temporal_patch_size=2) if merges else dict(do_center_crop=False)), do_rescale=True,
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
        put("image_grid", [[1, h, w] for h, w in grids], "i4")
        if merges:
            put("position", np.concatenate(positions), "i4")
        for i, image in enumerate(images):
            put(f"images/{i}", image, "u1")
        put("test/logits", torch.cat(logits).numpy(), "f4")
        put("test/loss", losses, "f8")
        for name, s in seen.items():
            put("test/squares" + name, s, "f8")


def write_texts(path):
    """The nll of each token of text of llava.py's rows."""
    with h5py.File(path, "w", track_order=False) as f, tempfile.TemporaryDirectory() as tmp:
        for name, row in llava.ROWS.items():
            row.write(tmp)
            kind = getattr(transformers, row.config["architectures"][0])
            model = kind.from_pretrained(tmp, dtype=torch.float32, attn_implementation="eager").eval()
            nll = []
            for own, image in zip(llava.SEQUENCES, llava.IMAGES):
                pixels = torch.tensor(((image.astype("f4") / 255 - np.float32(0.5)) / np.float32(0.25)).transpose(2, 0, 1))
                ids = torch.tensor([[int(i) for i in own]])
                with torch.no_grad():
                    y = model(input_ids=ids, pixel_values=pixels[None], use_cache=False).logits[0, :-1].double()
                nll.append(torch.nn.functional.cross_entropy(y, ids[0, 1:], reduction="none")[ids[0, 1:] != llava.PLACEHOLDER])
            f.create_dataset(name, data=torch.cat(nll).numpy().astype("f4"), track_times=False)
            print(name, type(model.model.language_model).__name__, float(torch.cat(nll).mean()))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "vision")
    for name, row in ROWS.items():
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        write(folder / f"{name}.h5", row)
    if len(sys.argv) <= 2 or "texts" in sys.argv[2:]:
        write_texts(folder / "texts.h5")


if __name__ == "__main__":
    main()
