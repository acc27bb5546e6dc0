"""hf.py -- Python of tests/doors/hf.t: models of transformers from the folders that model-export wrote"""

import json
import os
import sys

import h5py
import numpy as np

from lib.h5 import SIDES, create, plain

REF = os.path.join(os.path.dirname(__file__), "..", "ref")


def apart(source, model, tokens):
    """Splits a reference file into a model and its tokens."""
    plain(source, model)
    with h5py.File(source) as m, create(tokens, "tokens") as t:
        for name in SIDES & set(m) - {"test"}:
            m.copy(name, t)
        if "tokens" not in t:
            ids = m["test/tokens"][()]
            t["tokens"] = ids.ravel().astype("i4")
            t["tokens"].attrs.update(bos_id=-1, add_bos=0, vocab=int(ids.max()) + 1)
            del t["tokens"].attrs["vocab"]
            t["sequence"] = np.arange(0, ids.size + 1, ids.shape[1])


def no_bos(path):
    """Sets add_bos to 0, so that windows have 128 ids of the text."""
    with h5py.File(path, "r+") as f:
        f["tokens"].attrs["add_bos"] = 0


def load(folder, ours=True, dtype="float32", strangers=()):
    """The model of a folder. A folder of ours must have all tensors of the class, and no others but unknown ones."""
    import torch
    import transformers

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    with open(os.path.join(folder, "config.json")) as f:
        c = json.load(f)
    # model_type selects the class, as in model-import: mistral with layer_types is Ministral
    auto = "AutoModelForImageTextToText" if "vision_config" in c else "AutoModelForCausalLM"
    model, info = getattr(transformers, auto).from_pretrained(
        folder, dtype=getattr(torch, dtype), attn_implementation="eager", experts_implementation="eager",
        output_loading_info=True)
    name = type(model).__name__
    assert not ours or c["architectures"][0] in (name, name.replace("Ministral", "Mistral")), name
    # a norm of an encoder after the features that are used
    missing = [n for n in info["missing_keys"] if "post_layernorm" not in n and ".head." not in n]
    others = info["unexpected_keys"] - set(strangers)
    assert not ours or not (missing or others or info["mismatched_keys"]), (folder, info)
    model.strangers = info["unexpected_keys"]
    return model.eval()


def nll_of(model, ids, placeholder=None, **more):
    """Likelihoods of a sequence's targets, in double from the logits; tokens of images are not targets."""
    import torch

    ids = torch.tensor(np.array(ids, "i8"))[None]
    with torch.no_grad():
        y = model(input_ids=ids, use_cache=False, **more).logits[0, :-1].double()
    nll = torch.nn.functional.cross_entropy(y, ids[0, 1:], reduction="none")
    return nll[ids[0, 1:] != placeholder] if placeholder is not None else nll


def sequences(f):
    ids = f["tokens"][()]
    ends = f["sequence"][()] if "sequence" in f else [0, len(ids)]
    return [(a, ids[a:b]) for a, b in zip(ends, ends[1:])]


def pixels_of(image, dtype="f4"):
    """Pixels [3, h, w] in the form of these models' processors."""
    import torch

    x = ((image.astype("f4") / 255 - np.float32(0.5)) / np.float32(0.25)).transpose(2, 0, 1)
    return torch.tensor(x.astype(dtype))


def images(model, f, first, ids):
    """The inputs of the model in addition to the ids of a sequence."""
    import torch

    if "image_span" not in f:
        return {}
    own = [i for i, (at, _) in enumerate(f["image_span"][()]) if first <= at < first + len(ids)]
    pixels = [pixels_of(f[f"images/{i}"][()], "f8") for i in own]
    if model.config.model_type in ("idefics3", "smolvlm"):
        return dict(pixel_values=torch.stack(pixels)[None])
    if model.config.model_type not in ("qwen2_vl", "qwen2_5_vl"):
        return dict(pixel_values=torch.stack(pixels))
    v = model.config.vision_config
    p, m, t = v.patch_size, v.spatial_merge_size, v.temporal_patch_size
    grid = torch.tensor(f["image_grid"][()][own].astype("i8"))
    patches = [x.reshape(3, 1, h // m, m, p, w // m, m, p).expand(-1, t, -1, -1, -1, -1, -1, -1)
               .permute(2, 5, 3, 6, 0, 1, 4, 7).reshape(h * w, -1) for x, (_, h, w) in zip(pixels, grid.tolist())]
    types = (torch.tensor(ids.astype("i8"))[None] == model.config.image_token_id).int()
    return dict(pixel_values=torch.cat(patches), image_grid_thw=grid, mm_token_type_ids=types)


def mean_of(folder, tokens):
    """Likelihoods in double, so that the difference is the rounding of float32 in eval-ppl."""
    model, nll = load(folder, dtype="float64"), []
    with h5py.File(tokens) as f:
        placeholder = getattr(model.config, "image_token_index", getattr(model.config, "image_token_id", None))
        for first, ids in sequences(f):
            nll.append(nll_of(model, ids, placeholder, **images(model, f, first, ids)))
    return float(np.concatenate(nll).mean())


def likelihoods(*names):
    for n in names:
        print(n, format(mean_of(n, n.rsplit("-", 1)[0] + "-t.h5"), ".9g"), sep="\t", flush=True)


def text_likelihood(folder, tokens):
    """Windows of 128 ids."""
    model = load(folder)
    with h5py.File(tokens) as f:
        ids = f["tokens"][()]
    nll = [nll_of(model, ids[i:i + 128]) for i in range(0, len(ids), 128)]
    return format(float(np.concatenate(nll).mean()), ".9g")


def written():
    sys.path.insert(0, REF)
    import checkpoints
    import llava

    rows = {f"llava{i}": row for i, row in enumerate(llava.ROWS.values())}
    return rows | {f"row{i}": row for i, row in enumerate(checkpoints.ROWS.values())}, llava


def folders():
    """Writes the rows' folders, and prints their names."""
    for name, row in written()[0].items():
        row.write(name) if os.path.isdir(name) else (os.mkdir(name), row.write(name))
        print(name)


def rows(*names):
    """Whether a folder and its export are the same in transformers: the same weights and operations."""
    all, llava = written()
    for name in names:
        row, nll, strangers = all[name], [], ()
        for folder in (name, name + "-out"):
            model = load(folder, folder != name, strangers=strangers)
            strangers = model.strangers
            if name.startswith("llava"):
                pixels = [pixels_of(i)[None] for i in llava.IMAGES]
                nll.append([nll_of(model, s, llava.PLACEHOLDER, pixel_values=p)
                            for s, p in zip(llava.SEQUENCES, pixels)])
            else:
                nll.append([nll_of(model, ids) for ids in np.array(row.ids).reshape(-1, row.ctx)])
        a, b = (np.concatenate(n) for n in nll)
        print(name, "same" if (a == b).all() else f"differs by {np.abs(a - b).max()}", sep="\t", flush=True)
