#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""reference.h5, llava.h5 and ../fuzz/seeds/image -- pictures of every kind, and what Pillow and transformers make of them

Needs numpy, h5py, Pillow, torch, torchvision, transformers 5. Pictures are drawn here; PNG files are written by zlib, so
that every type and Adam7 are among them. reference.h5 holds /bytes and /index, a JSON text as bytes, where `at` is a place in /bytes:

    pictures    {name: {h, w, at}}
    decoded     [{file, h, w, at}]: transformers' convert_to_rgb() of the file
    resized     [{kind, from, h, w, sha256}]: Pillow's resize() of a picture
    processed   [{config, from, h, w, at, corner, fast}]: what the class with Pillow makes, as steps of 255 before
                normalization, and its pixels at 0, 0; fast: the largest distance of the class with torchvision, in
                steps, -1: it has other extents

llava.h5 is the first part of a model of bytes: its configuration and its processor.

resize() goes across first, then down, as Pillow did up to version 12; 13 does so unless a picture shrinks much more
in height. Two calls, of a direction each, give that in all versions.
"""
import hashlib, io, json, os, struct, zlib
import h5py, numpy as np
from PIL import Image
from transformers import CLIPImageProcessorPil, LlavaImageProcessorPil, Qwen2VLImageProcessorPil, SiglipImageProcessorPil
from transformers import CLIPImageProcessor, LlavaImageProcessor, Qwen2VLImageProcessor, SiglipImageProcessor
from transformers.image_transforms import convert_to_rgb

here = os.path.dirname(os.path.abspath(__file__))
seeds = f"{here}/../fuzz/seeds/image"
r = np.random.default_rng(16)

one_call = Image.Image.resize
def resize(self, size, resample=None, *rest, **more):
    if resample == Image.Resampling.NEAREST: return one_call(self, size, resample)
    return one_call(one_call(self, (size[0], self.height), resample), size, resample)
Image.Image.resize = resize

def smooth(h, w):
    """Colours that wander, and an edge."""
    y, x = np.mgrid[:h, :w]
    a = np.stack([127 + 120 * np.sin(x / 3 + c) * np.cos(y / 4 - c) for c in range(3)], -1)
    a[h // 3:h // 2, w // 4:w // 2] = [255, 0, 90]
    return np.clip(a + r.normal(0, 6, a.shape), 0, 255).astype("u1")

def chunk(kind, data): return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

def rows(samples, depth, filters=True):
    """Samples [h, w, channels] as filtered rows (types 0 to 4 in turn, where a sample has whole bytes)."""
    h, w, channels = samples.shape
    out, before, step = b"", None, max(1, channels * depth // 8)
    for i in range(h):
        if depth < 8:
            bits = np.unpackbits(samples[i].astype("u1").reshape(-1, 1), axis=1)[:, 8 - depth:]
            line = np.packbits(bits.reshape(-1))
        else:
            line = np.frombuffer(samples[i].astype(">u2" if depth == 16 else "u1").tobytes(), "u1")
        line = line.astype(int)
        up = before if before is not None else np.zeros_like(line)
        left, corner = (np.concatenate([np.zeros(step, int), v])[:len(line)] for v in (line, up))
        p = left + up - corner
        a, b, c = abs(p - left), abs(p - up), abs(p - corner)
        paeth = np.where((a <= b) & (a <= c), left, np.where(b <= c, up, corner))
        kind = i % 5 if filters else 0
        out += bytes([kind]) + ((line - [0 * line, left, up, (left + up) // 2, paeth][kind]) % 256).astype("u1").tobytes()
        before = line
    return out

def png(samples, depth, colour, extra=b"", interlaced=False):
    if samples.ndim == 2: samples = samples[..., None]
    h, w = samples.shape[:2]
    if interlaced:
        passes = (0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)
        data = b"".join(rows(samples[y::dy, x::dx], depth) for y, x, dy, dx in passes if samples[y::dy, x::dx].size)
    else:
        data = rows(samples, depth)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, interlaced)) + extra +
            chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))

def saved(a, kind, **how):
    b = io.BytesIO()
    Image.fromarray(a).save(b, kind, **how)
    return b.getvalue()

rgb = smooth(13, 11)
wide = rgb.astype(int) * 257
alpha = r.integers(0, 256, (13, 11, 1)); alpha[:3] = 0; alpha[3:6] = 255
gray = rgb[..., 1]
palette = chunk(b"PLTE", r.integers(0, 256, 48).astype("u1").tobytes())
files = {
    "gray1.png": png(gray >> 7, 1, 0), "gray2.png": png(gray >> 6, 2, 0), "gray4.png": png(gray >> 4, 4, 0), "gray8.png": png(gray, 8, 0),
    "gray-key.png": png(gray, 8, 0, chunk(b"tRNS", struct.pack(">H", int(gray[4, 4])))),
    "gray-alpha8.png": png(np.concatenate([gray[..., None], alpha], -1), 8, 4),
    "gray-alpha16.png": png(np.maximum(np.concatenate([gray[..., None], alpha], -1) * 257 - 20, 0), 16, 4),
    "palette1.png": png(gray >> 7, 1, 3, palette), "palette2.png": png(gray >> 6, 2, 3, palette),
    "palette4.png": png(gray >> 4, 4, 3, palette),
    "palette8.png": png(gray >> 4, 8, 3, palette), "palette-alpha.png": png(gray >> 4, 4, 3, palette + chunk(b"tRNS", bytes([0, 99, 200, 255, 3]))),
    "rgb8.png": png(rgb, 8, 2), "rgb16.png": png(np.minimum(wide + 100, 65535), 16, 2),
    "rgb-key.png": png(rgb, 8, 2, chunk(b"tRNS", struct.pack(">3H", *map(int, rgb[5, 5])))),
    "rgba8.png": png(np.concatenate([rgb, alpha], -1), 8, 6), "rgba16.png": png(np.concatenate([rgb, alpha], -1) * 257, 16, 6),
    "gamma.png": png(rgb, 8, 2, chunk(b"gAMA", struct.pack(">I", 20000)) + chunk(b"tEXt", b"Title\0a picture")),
    "rgb8-interlaced.png": png(rgb, 8, 2, interlaced=True), "palette4-interlaced.png": png(gray >> 4, 4, 3, palette, True),
    "rgba8-interlaced.png": png(np.concatenate([rgb, alpha], -1), 8, 6, interlaced=True), "pixel.png": png(rgb[:1, :1], 8, 2),
    "rgb.ppm": saved(rgb, "PPM"), "gray.pgm": saved(gray, "PPM"), "comment.ppm": b"P6\n# a comment\n 2 # wide\n1\n255\n" + bytes(range(6)),
    "rgb.jpg": saved(rgb, "JPEG", quality=90, subsampling=0), "rgb420.jpg": saved(rgb, "JPEG", quality=75),
    "progressive.jpg": saved(rgb, "JPEG", quality=85, progressive=True), "gray.jpg": saved(gray, "JPEG"),
    "restarts.jpg": saved(rgb, "JPEG", quality=60, restart_marker_blocks=1),
}
refused = {"gray16.png": png(gray.astype(int) * 257, 16, 0)}
b = io.BytesIO()
Image.fromarray(rgb).convert("CMYK").save(b, "JPEG")
refused["cmyk.jpg"] = b.getvalue()

pictures = {"wide": smooth(17, 40), "tall": smooth(47, 16), "square": smooth(24, 24), "small": smooth(9, 12),
            "noise": (r.integers(0, 2, (21, 19, 3)) * 255).astype("u1"), "line": smooth(1, 30), "dot": smooth(1, 1)}
CLIP, SIGLIP, LLAVA, QWEN = ((CLIPImageProcessorPil, CLIPImageProcessor), (SiglipImageProcessorPil, SiglipImageProcessor),
                             (LlavaImageProcessorPil, LlavaImageProcessor), (Qwen2VLImageProcessorPil, Qwen2VLImageProcessor))
small = dict(size={"shortest_edge": 20}, crop_size={"height": 16, "width": 16})
patches = dict(patch_size=4, merge_size=2, temporal_patch_size=2, min_pixels=256, max_pixels=512)
cases = [(CLIP, small, ("wide", "tall", "square", "small", "noise")), (CLIP, dict(size=20, crop_size=18, resample=2), ("wide",)),
         (CLIP, dict(size={"shortest_edge": 10}, crop_size={"height": 16, "width": 12}), ("wide", "tall", "square")),
         (CLIP, dict(size={"shortest_edge": 11}, crop_size={"height": 16, "width": 14}), ("tall",)),
         (CLIP, dict(small, do_resize=False), ("square", "small")), (CLIP, dict(small, do_center_crop=False, do_normalize=False), ("tall",)),
         (CLIP, dict(small, do_rescale=False, image_mean=[100, 120, 140], image_std=[50, 60, 70]), ("square",)),
         (SIGLIP, dict(size={"height": 14, "width": 22}), ("wide", "tall", "small", "line", "dot")), (SIGLIP, dict(size=16, resample=1), ("noise", "wide")),
         (SIGLIP, dict(size=16, resample=0), ("wide", "small")), (SIGLIP, dict(size=16, image_mean=0.4, image_std=0.3, rescale_factor=1 / 127.5), ("square",)),
         (LLAVA, dict(small, do_pad=True), ("wide", "tall", "square")), (LLAVA, dict(small), ("wide",)),
         (QWEN, patches, ("wide", "tall", "square", "small", "noise", "line")), (QWEN, dict(patches, min_pixels=16, max_pixels=4096), ("wide", "tall")),
         (QWEN, dict(patches, do_resize=False), ("square",))]

def pixels(p, a, config):
    """[3, height, width] of a picture."""
    y = p(Image.fromarray(a), return_tensors="np")
    v = np.asarray(y["pixel_values"], "f4")
    if v.ndim == 4: return v[0]
    (t, h, w), n, m = y["image_grid_thw"][0], config["patch_size"], config["merge_size"]
    v = v.reshape(h // m, w // m, m, m, 3, config["temporal_patch_size"], n, n)
    assert t == 1 and (v[..., 0, :, :] == v[..., 1, :, :]).all()
    return v[..., 0, :, :].transpose(4, 0, 2, 5, 1, 3, 6).reshape(3, h * n, w * n)

os.makedirs(seeds, exist_ok=True)
for name, data in (files | refused).items(): open(f"{seeds}/{name}", "wb").write(data)
data, index = [], dict(pictures={}, decoded=[], resized=[], processed=[])
def put(a):
    """Where the bytes of [h, w, 3] stand."""
    data.append(np.ascontiguousarray(a).reshape(-1))
    return dict(h=a.shape[0], w=a.shape[1], at=sum(map(len, data[:-1])))
for name, a in pictures.items(): index["pictures"][name] = put(a)
for name, raw in files.items():
    index["decoded"].append(dict(file=name, **put(convert_to_rgb(Image.open(io.BytesIO(raw)), return_numpy=True))))
for name, a in pictures.items():
    for kind in range(6):
        for h, w in (a.shape[0], 13), (14, a.shape[1]), (11, 15), (35, 50), (1, 1), (5, 90), (90, 4):
            y = np.array(Image.fromarray(a).resize((w, h), kind))
            index["resized"].append({"kind": kind, "from": name, "h": h, "w": w, "sha256": hashlib.sha256(y.tobytes()).hexdigest()})
for (slow, fast), config, names in cases:
    for name in names:
        p, q = slow(**config), fast(**config)
        y, z = pixels(p, pictures[name], config), pixels(q, pictures[name], config)
        std = np.reshape(p.image_std if p.do_normalize else 1., (-1, 1, 1)) * np.ones((3, 1, 1))
        mean = np.reshape(p.image_mean if p.do_normalize else 0., (-1, 1, 1)) * np.ones((3, 1, 1))
        steps = lambda v: (v.astype("f8") * std + mean) / (p.rescale_factor if p.do_rescale else 1)
        assert abs(steps(y) - steps(y).round()).max() < 1e-3
        far = float(abs(steps(y) - steps(z)).max()) if y.shape == z.shape else -1
        index["processed"].append({"config": {"image_processor_type": fast.__name__, **config}, "from": name, "fast": round(far, 3),
            "corner": [float(v) for v in y[:, 0, 0]], **put(steps(y).round().astype("u1").transpose(1, 2, 0))})
        print(fast.__name__, config, name, y.shape, round(far, 3))
with h5py.File(f"{here}/reference.h5", "w") as f:
    f.create_dataset("bytes", data=np.concatenate(data), compression="gzip", compression_opts=9)
    f.create_dataset("index", data=np.frombuffer(json.dumps(index).encode(), "u1"), compression="gzip", compression_opts=9)
with h5py.File(f"{here}/llava.h5", "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "model", "1"
    f["config"] = json.dumps(dict(model_type="llava", image_token_index=1, text_config=dict(model_type="llama", vocab_size=256),
                                  vision_config=dict(model_type="clip_vision_model", patch_size=4, image_size=16)))
    f["processor"] = json.dumps(dict(image_processor_type="CLIPImageProcessor", size=dict(shortest_edge=16), crop_size=dict(height=16, width=16)))
for name, text in {"clip": dict(image_processor_type="CLIPImageProcessor", **small, image_mean=[.1, .2, .3], image_std=.5),
                                  "qwen2-vl": dict(image_processor_type="Qwen2VLImageProcessor", **patches),
                                  "llava": dict(image_processor=dict(image_processor_type="LlavaImageProcessorFast", do_pad=True, **small, resample=2)),
                                  "siglip": dict(image_processor_type="SiglipImageProcessor", size=dict(height=9, width=7))}.items():
    open(f"{seeds}/{name}.json", "w").write(json.dumps(text))
