"""images-import.py -- Python of tests/images-import.t"""

import hashlib
import json
import os
import struct
import subprocess
import zlib

import h5py
import numpy as np

from lib.h5 import copied, read


def check(before, after, counts, grids, placeholder=1, sizes=None):
    """Compares the file with the definition, id by id."""
    with h5py.File(before) as a, h5py.File(after) as b:
        ids, bytes_, modality, span, moved, k = [], [], [], [], {}, 0
        for i, t in enumerate(a["tokens"][...]):
            moved[i] = len(ids)
            n = counts[k] if t == placeholder else 1
            if t == placeholder:
                span.append([len(ids), n])
                k += 1
            ids += [t] * n
            bytes_ += [0 if t == placeholder else a["bytes"][i]] * n if "bytes" in a else []
            modality += [int(t == placeholder)] * n
        moved[len(a["tokens"])] = len(ids)
        assert k == len(counts) == len(b["images"])
        assert b["tokens"][...].tolist() == ids and b["tokens"].dtype == "i4"
        assert b["modality"][...].tolist() == modality and b["modality"].dtype == "u1"
        assert b["image_span"][...].tolist() == span and b["image_span"].dtype == "i8"
        assert b["image_grid"][...].tolist() == grids and b["image_grid"].dtype == "i4"
        assert "bytes" not in a or (b["bytes"][...].tolist() == bytes_ and b["bytes"].dtype == "u2")
        assert "sequence" not in a or b["sequence"][...].tolist() == [moved[i] for i in a["sequence"][...]]
        was, now = dict(a["tokens"].attrs), dict(b["tokens"].attrs)
        assert (
            now.pop("tokens_sha256")
            == hashlib.sha256(b["tokens"][()].astype("<i4").tobytes()).hexdigest()
            != was.pop("tokens_sha256", None)
            and now == was
        )
        assert ("note" in a) == ("note" in b)
        for i, s in enumerate(sizes or []):
            assert b[f"images/{i}"].shape == (*s, 3) and b[f"images/{i}"].dtype == "u1"
        h = b.attrs["history"].splitlines()
        assert h[0].startswith("images-import ") and h[1:] == a.attrs["history"].splitlines(), h


def change(path, make, source="llava.h5"):
    with copied(source, path) as f:
        make(f)


def config(path, root={}, vision={}, processor={}, source="llava.h5"):
    def make(f):
        c, p = json.loads(f["config"][()]), json.loads(f["processor"][()])
        c.update(root)
        p.update(processor)
        if vision is None:
            del c["vision_config"]
        else:
            c["vision_config"].update(vision)
        for name, v in ("config", c), ("processor", p):
            del f[name]
            f[name] = json.dumps(v)

    change(path, make, source)


def models():
    config("full.h5", dict(vision_feature_select_strategy="full"))
    config("siglip.h5", vision=dict(model_type="siglip_vision_model"))
    config(
        "siglip-full.h5",
        dict(vision_feature_select_strategy="full"),
        dict(model_type="siglip_vision_model"),
        dict(image_processor_type="SiglipImageProcessor", size=dict(height=16, width=16), do_center_crop=False),
    )
    qwen = dict(
        image_processor_type="Qwen2VLImageProcessor",
        do_center_crop=None,
        crop_size=None,
        size=None,
        patch_size=4,
        merge_size=2,
        min_pixels=64,
        max_pixels=256,
    )
    config(
        "qwen.h5",
        dict(model_type="qwen2_vl", image_token_id=1),
        dict(model_type="qwen2_vl_vision", patch_size=4, spatial_merge_size=2),
        qwen,
    )
    change(
        "whole.h5",
        lambda f: (
            f.pop("processor"),
            f.__setitem__(
                "processor",
                json.dumps(
                    dict(
                        image_processor=dict(image_processor_type="CLIPImageProcessorFast", size=16, crop_size=16),
                        processor_class="LlavaProcessor",
                    )
                ),
            ),
        ),
    )
    # errors
    change("none.h5", lambda f: f.pop("processor"))
    change("bare.h5", lambda f: f.pop("config"))
    config("text-model.h5", dict(model_type="llama"))
    config("tower.h5", vision=dict(model_type="vit"))
    config("strategy.h5", dict(vision_feature_select_strategy="last"))
    config("side.h5", vision=dict(image_size=20))
    config("patch.h5", vision=dict(patch_size=0))
    config(
        "empty.h5",
        dict(vision_feature_select_strategy="default"),
        dict(model_type="siglip_vision_model", patch_size=16),
    )
    config("vocab.h5", dict(text_config=dict(vocab_size=300)))
    for name, setting in dict(
        kind=dict(image_processor_type="ViTImageProcessor"),
        nameless=dict(image_processor_type=None),
        key=dict(do_sharpen=True),
        pad=dict(do_pad=True),
        resample=dict(resample=9),
        size=dict(size=dict(longest_edge=3)),
        both=dict(size=dict(shortest_edge=16, longest_edge=99)),
        mean=dict(image_mean=[1, 2]),
        std=dict(image_std=0),
        factor=dict(rescale_factor=-1),
        flag=dict(do_resize="yes"),
        crop=dict(crop_size=dict(height=5)),
        large=dict(do_center_crop=False, size=65536),
        crops=dict(crop_size=65536),
    ).items():
        config(f"p-{name}.h5", processor=setting)
    config("q-patch.h5", processor=dict(patch_size=8), source="qwen.h5")
    config("q-frames.h5", processor=dict(temporal_patch_size=3), source="qwen.h5")
    config(
        "q-clip.h5",
        dict(model_type="qwen2_vl", image_token_id=1),
        dict(model_type="qwen2_vl_vision", patch_size=4, spatial_merge_size=2),
    )
    config("q-less.h5", processor=dict(min_pixels=999), source="qwen.h5")
    config("q-whole.h5", processor=dict(do_resize=False), source="qwen.h5")
    change("not-json.h5", lambda f: (f.pop("processor"), f.__setitem__("processor", "{")))
    change("note.h5", lambda f: f.__setitem__("note", [1]), "text.h5")
    change("sequence.h5", lambda f: f.__setitem__("sequence", [0, 3, 4, 10]), "text.h5")
    change("text-only.h5", lambda f: (f.pop("bytes"), f.__setitem__("modality", [0] * 10)), "text.h5")
    change("index.h5", lambda f: f.__setitem__("index", list(range(10))), "text.h5")
    change("position.h5", lambda f: f.__setitem__("position", list(range(10))), "text.h5")
    change("modality.h5", lambda f: f.__setitem__("modality", [0, 0, 1] + [0] * 7), "text.h5")


S = os.path.dirname(os.path.abspath(__file__)) + "/../fuzz/seeds/image"


def run(raw, name):
    open(name, "wb").write(raw)
    p = subprocess.run(
        ["images-import", "-q", "--model", "llava.h5", "--tokens", "one.h5", name, "-o", "out"],
        capture_output=True,
        text=True,
    )
    assert p.returncode in (0, 1), (name, p.returncode, p.stderr)
    assert p.returncode == 0 or (
        p.stderr.count("\n") == 1 and p.stderr.startswith(f"images-import: {name}: ") and not os.path.exists("out")
    ), p.stderr
    if os.path.exists("out"):
        os.unlink("out")
    return p


def cuts(name, step):
    raw = open(f"{S}/{name}", "rb").read()
    for n in range(0, len(raw), step):
        assert run(raw[:n], "cut").returncode == 1, (name, n)


def flips(name, step):
    raw = open(f"{S}/{name}", "rb").read()
    for n in range(0, len(raw), step):
        assert run(raw[:n] + bytes([raw[n] ^ 1 << n % 8]) + raw[n + 1 :], "flipped").returncode == 1, (name, n)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(w, h, depth, colour, data, more=b"", interlace=0):
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, depth, colour, 0, 0, interlace))
        + more
        + chunk(b"IDAT", data)
        + chunk(b"IEND", b"")
    )


def says(raw, what):
    said = run(raw, "bad").stderr
    assert what in said, (what, said)


def claims():
    few = "its pixels cannot be in so few bytes"
    says(png(8000, 8000, 8, 2, zlib.compress(b"\0" * 99)), few)
    says(png(8000, 8000, 16, 6, zlib.compress(b"\0" * 99), interlace=1), few)
    says(png(1 << 30, 1 << 30, 8, 2, b""), "more pixels than the 2^26")
    says(png(8193, 8192, 1, 0, zlib.compress(b"\0" * 1025 * 8192)), "more pixels than the 2^26")
    says(png(0, 5, 8, 2, b""), "damaged PNG")
    says(png(5, 5, 8, 2, zlib.compress(b"\0" * 70)), "damaged PNG")
    says(png(5, 5, 8, 3, zlib.compress(b"\0" * 30)), "damaged PNG")  # no palette
    says(png(5, 5, 3, 2, zlib.compress(b"\0" * 90)), "damaged PNG")
    jpeg = open(f"{S}/rgb.jpg", "rb").read()
    at = jpeg.index(b"\xff\xc0") + 5
    says(jpeg[:at] + struct.pack(">HH", 60000, 1000) + jpeg[at + 4 :], few)
    says(jpeg[:at] + struct.pack(">HH", 60000, 60000) + jpeg[at + 4 :], "more pixels than the 2^26")
    says(jpeg[:at] + struct.pack(">HH", 200, 200) + jpeg[at + 4 :], "damaged JPEG")
    says(b"P6 8000 8000 255\n" + b"x" * 99, "cut short")
    says(b"P6 99999 99999 255\n", "more pixels")
    says(b"P5 99999999999999999999 1 255\n", "more pixels")
    says(b"P6 1 1000000000 255\n", "more pixels")
    says(b"P5 1000000000 0 255\n", "no pixels")
    says(b"P5 2 2 255\nabcde", "has data after its pixels")
    says(b"P5 2 2 65535\nabcdefgh", "maximum is not 255")
    says(b"P5 2 2 255", "does not end in a blank")
    says(b"P5", "is not a supported image file")
    says(b"P5 #", "no pixels")
    says(b"", "is not a supported image file")
    says(b"\xff\xd8\xff", "JPEG")
    says(b"P3 1 1 255\n1 2 3\n", "is not a supported image file")


def scans():
    """A progressive JPEG whose last scan is repeated many times."""
    raw = open(f"{S}/progressive.jpg", "rb").read()
    at = raw.rindex(b"\xff\xda")
    says(raw[:-2] + raw[at:-2] * 200 + raw[-2:], "JPEG")


def put(f, path, v):
    if path in f:
        del f[path]
    f[path] = v


def faults():
    def change(path, make):
        with copied("two.h5", path) as f:
            make(f)

    span, grid, z = "image_span", "image_grid", np.zeros
    I = lambda *v: np.array(v, "i8").reshape(-1, 2)
    change("no-span.h5", lambda f: f.pop(span))
    change("no-grid.h5", lambda f: f.pop(grid))
    change("no-images.h5", lambda f: f.pop("images"))
    change("one-image.h5", lambda f: f.pop("images/1"))
    change("three-images.h5", lambda f: put(f, "images/2", f["images/1"][...]))
    change("far.h5", lambda f: put(f, span, I(2, 16, 23, 18)))
    change("overlap.h5", lambda f: put(f, span, I(2, 16, 17, 16)))
    change("order.h5", lambda f: put(f, span, I(23, 16, 2, 16)))
    change("none.h5", lambda f: put(f, span, I(2, 16, 23, 0)))
    change("minus.h5", lambda f: put(f, span, I(-1, 16, 23, 16)))
    change("huge.h5", lambda f: put(f, span, I(2, 1 << 62, 23, 16)))
    change("shifted.h5", lambda f: put(f, span, I(3, 16, 23, 16)))
    change("short.h5", lambda f: put(f, span, I(2, 16, 23, 15)))
    change("no-modality.h5", lambda f: f.pop("modality"))
    change("two.sequences.h5", lambda f: put(f, "sequence", np.array([0, 9, 40])))
    change("channels.h5", lambda f: put(f, "images/1", z((2, 2, 4), "u1")))
    change("flat.h5", lambda f: put(f, "images/1", z((2, 2), "u1")))
    change("float.h5", lambda f: put(f, "images/1", z((2, 2, 3), "f4")))
    change("zero.h5", lambda f: put(f, "images/1", z((2, 0, 3), "u1")))
    change("no-patch.h5", lambda f: put(f, grid, np.array([[1, 4, 4], [1, 0, 4]], "i4")))
    change("grids.h5", lambda f: put(f, grid, np.ones((3, 3), "i4")))


def decoded():
    raw = open("c.ppm", "rb").read()[-13 * 11 * 3 :]
    assert read("two.h5", "images/0").tobytes() == raw


def black_dots():
    assert run(png(2048, 2048, 1, 0, zlib.compress(b"\0" * 257 * 2048, 9)), "dots").returncode == 0
