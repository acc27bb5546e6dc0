"""Models of ptqtools in Python, by h5py and numpy alone; docs/python.md shows how. `ptqtools.py FILE` lists layers."""
import functools
import itertools
import json
import re
import statistics
import sys

import h5py
import numpy as np

MEMBERS = ("storage group bits scale_dtype compute saturate act_format act_mode act_clip online_hadamard "
           "output_hadamard bias scale zero scale_tensor scale8 act_scale split_index split_weight split_scale "
           "input_signs output_signs branch_a branch_b").split()


class Error(Exception):
    """What cannot be read, and why, in one line."""


def _floats(x, y, bias=0, top=np.inf, minus=0.0):
    e, m = np.divmod(np.arange(2 ** (x + y)), 2**y)
    v = np.ldexp(np.where(e, 2.0**y + m, m), np.maximum(e, 1) - bias - y)
    v[v > top] = np.nan
    return np.append(v, np.where(v == 0, minus, -v)).astype("f4")


def _quantiles(n):
    q, h, o = statistics.NormalDist().inv_cdf, n // 2, 1 - 1 / (4 * (n - 1)) - 1 / (4 * n)
    below = [-q(o + (0.5 - o) * i / (h - 1)) / q(o) for i in range(h - 1)]
    return np.float32(below + [0] + [q(o + (0.5 - o) * i / h) / q(o) for i in reversed(range(h))])


# The value of each code of a format, float32; NaN: the code stands for none. Formats of your own can be added.
grids = {f"uint{n}": np.arange(2**n, dtype="f4") for n in range(1, 9)}
grids |= {f"int{n}": np.append(np.arange(1.0 - 2 ** (n - 1), 2 ** (n - 1)), np.nan).astype("f4") for n in range(2, 9)}
grids |= {f"e{x}m{y}": _floats(x, y) for x in range(7) for y in range(8) if 1 <= x + y <= 7}
grids |= {f"nf{n}": _quantiles(2**n) for n in range(2, 9)}
grids |= {"mxfp4": _floats(2, 1, 1), "nvfp4": _floats(2, 1, 1), "e4m3fn": _floats(4, 3, 7, 448, -0.0),
          "e4m3ieee": _floats(4, 3, 7, 240, -0.0), "e5m2ieee": _floats(5, 2, 15, 57344, -0.0)}


def nearest(format, x, limit=None):
    """The values of a compute format that are nearest to x, none beyond limit; ties go to even."""
    g = np.unique(grids[format][~np.isnan(grids[format])])
    limit = np.float32(min(limit or g[-1], g[-1]))
    if format.startswith("int"):
        return np.rint(np.clip(x, -limit, limit)) + np.float32(0)  # no −0
    quantiles, gap, middle = format.startswith("nf"), np.diff(g), (g[:-1].astype("f8") + g[1:]) / 2
    down = np.arange(len(gap)) % 2 == 0 if quantiles else g[:-1] / gap % 2 == 0  # where a tie goes
    v = g[np.searchsorted(np.where(down, np.nextafter(middle, np.inf), middle), x, "right")]
    return np.clip(v if quantiles else np.copysign(v, x), -limit, limit)


def unpack(words, bits, columns):
    """Codes [rows, columns] of packed words: 32 codes in as many words as they have bits."""
    w, n, code, done = words.reshape(len(words), -1, bits), np.arange(32, dtype="u4"), 0, 0
    if bits == 5:
        p, h = n // 2, 16 * (n % 2)
        code = w[..., p // 4] >> 4 * (p % 4) + h & 15 | (w[..., 4:] >> 15 - p + h & 1) << 4
    for b in (b for b in (8, 4, 2, 1) if bits & b and bits != 5):
        code |= (w[..., done + n * b // 32] >> n * b % 32 & 2**b - 1) << done
        done += b
    return code.reshape(len(words), -1)[:, :columns].astype("u1")


@functools.cache
def _e8p():
    """The points of E8P, [code][entry], and the 256 points of E8."""
    halves = np.array([p for p in itertools.product((0.5, 1.5, 2.5), repeat=8) if np.dot(p, p) <= 10], "f4")
    last = ("123 023 013 012 367 357 347 356 346 345 267 257 247 256 246 245 167 157 147 156 146 045 067 057 047 056 "
            "046 014 237").split()
    a = np.vstack([halves, np.float32([[0.5 if str(i) in t else 1.5 for i in range(8)] for t in last])])
    odd = np.array([bin(n).count("1") % 2 for n in range(256)])
    negative = np.arange(256) ^ odd ^ (a.sum(1) % 2).astype(int)[:, None] << 7  # [pattern, signs]
    points = np.where(negative[..., None] >> np.arange(8) & 1, -a[:, None], a[:, None])
    points += np.where(odd, np.float32(-0.25), np.float32(0.25))[:, None]
    e8 = np.where((np.arange(128)[:, None] | odd[:128, None] << 7) >> np.arange(8) & 1, -0.5, 0.5)
    one = np.eye(8)
    pairs = [x * one[i] + y * one[j] for i, j in itertools.combinations(range(8), 2) for y in (1, -1) for x in (1, -1)]
    twos = [x * one[i] for i in range(8) for x in (2, -2)]
    return points.reshape(-1, 8), np.vstack([e8, pairs, twos[:-1], 0 * one[:1]]).astype("f4")


def _vectors(codes, bits):
    """Numbers [rows, columns] of codes of e8p, e8p3, e8p4."""
    points, e8 = _e8p()
    c = codes.reshape(len(codes), -1, int(bits or 2)).astype(int)
    g = points[c[..., 0] + 256 * c[..., 1]]
    if c.shape[2] > 2:
        one = np.float32(1)
        g = g + (e8[c[..., 2]] * (one / np.float32(2.04)) if c.shape[2] == 3
                 else points[c[..., 2] + 256 * c[..., 3]] * (one / np.float32(3.45)))
    return g.reshape(len(codes), -1)


def _tiles(codes, kind, bits, states):
    """Numbers [rows, columns] of trellis codes."""
    k, n = int(bits), int(states or 12)
    ring = np.unpackbits(codes.reshape(len(codes), -1, 32 * k), axis=2)
    at = (np.arange(256)[:, None] * k + np.arange(n)) % (256 * k)
    t = ring[..., at].astype("u4") @ (1 << np.arange(n)[::-1].astype("u4"))
    if kind == "1mad":
        z = t * np.uint32(34038481) + np.uint32(76625530)
        v = (sum(z >> b & 255 for b in (0, 8, 16, 24)).astype("f4") - 510) / np.float32(147.8005)
    else:
        z = (t * np.uint32(89226354) + np.uint32(64248484) & 0x8FFF8FFF) ^ 0x3B603B60
        v = (z.astype("u2").view("f2") + (z >> 16).astype("u2").view("f2")).astype("f4")
    rows, columns = v.shape[:2]
    return v.reshape(rows, columns, 16, 16).swapaxes(1, 2).reshape(16 * rows, -1)


def _halves(b):
    v = b.copy().view("<f2").astype("f4")
    if not np.isfinite(v).all():
        raise ValueError("there is a block with a scale that is infinite or NaN")
    return v


def _offset_blocks(codes, bits):
    """Weights d s q - m b [rows, columns] of blocks of q4_k, q5_k."""
    x = codes.reshape(len(codes), -1, {"4": 144, "5": 176}[bits])
    pairs, low = x[..., 4:16], x[..., -128:].reshape(*x.shape[:2], 4, 1, 32)
    s, b = (np.concatenate([pairs[..., i:i + 4] & 63, pairs[..., 8:] >> i & 15 | pairs[..., i:i + 4] >> 2 & 48], -1)
            for i in (0, 4))
    q = (low >> 4 * np.arange(2)[:, None] & 15).reshape(*x.shape[:2], 8, 32)
    if bits == "5":
        q = q | (x[..., None, 16:48] >> np.arange(8)[:, None] & 1) << 4
    d, m = _halves(x[..., :2]), _halves(x[..., 2:4])
    return ((d * s)[..., None] * q - (m * b)[..., None]).astype("f4").reshape(len(codes), -1)


def _scale_blocks(codes):
    """Weights d s (q - 32) [rows, columns] of blocks of q6_k."""
    x = codes.reshape(len(codes), -1, 210)
    half, g, j = np.arange(2)[:, None, None], np.arange(4)[:, None], np.arange(32)
    low = x[..., 64 * half + 32 * (g % 2) + j] >> 4 * (g // 2) & 15
    high = x[..., 128 + 32 * half + j] >> 2 * g & 3
    q = (low | high << 4).astype("f4").reshape(*x.shape[:2], 16, 16) - 32
    scale = _halves(x[..., 208:]) * x[..., 192:208].view("i1")
    return (scale[..., None] * q).astype("f4").reshape(len(codes), -1)


def _level_blocks(codes):
    """Weights d v(q) [rows, columns] of blocks of iq4_nl."""
    v = np.float32([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113])
    b = codes.reshape(len(codes), -1, 18)
    q = np.concatenate([b[..., 2:] & 15, b[..., 2:] >> 4], -1)
    return (_halves(b[..., :2]) * v[q]).reshape(len(codes), -1)


# Formats with codes of several weights: the pattern of their names, and the numbers of their codes. The groups of the
# pattern are arguments. Scales multiply the numbers, except those of BLOCKS, whose codes contain the scales.
forms = {"e8p([34]?)": _vectors, "(1mad|3inst)([1-4])(?:-(1[0-6]))?": _tiles, "q([45])_k": _offset_blocks,
         "q6_k": _scale_blocks, "iq4_nl": _level_blocks}
BLOCKS = "q[456]_k|iq4_nl"


def _member(f):
    def get(self):
        try:
            return f(self)
        except (OSError, LookupError, ValueError, TypeError) as e:
            raise Error(f"{self.file.filename}: {self.name}: " + str(e).strip('"')) from None
    return property(get)


class Layer(h5py.Group):
    """The group of a matrix: MEMBERS as docs/format.md has them, or None, branches as layers; and, made of them, shape
    (outputs, inputs), codes, unpacked, grid_values of the codes, group_index of each column, weight, dequantized, to
    the bit what the tools multiply, and whole, the weight with split columns and branch added. Weights are float32."""
    def __getattr__(self, name):
        if name not in MEMBERS:
            raise AttributeError(f"a layer has no {name}")
        v = self.get(name, self.attrs.get(name))
        v = Layer(v.id) if isinstance(v, h5py.Group) else v[()] if isinstance(v, h5py.Dataset) else v
        return v.decode() if isinstance(v, bytes) else v

    @_member
    def shape(self):
        d = self[next((n for n in ("codes", "packed") if n in self), "weight")]
        return tuple(int(d.attrs.get(name, n)) for name, n in zip(("rows", "columns"), d.shape))

    @_member
    def codes(self):
        if "packed" in self:
            return unpack(self["packed"][()].astype("u4"), len(grids[self.storage]).bit_length() - 1, self.shape[1])
        c = self["codes"][()] if "codes" in self else None
        if c is not None and (c.dtype.kind not in "iu" or (c.astype("u1") != c).any()):
            raise ValueError("there is a code that is not a byte")
        return c if c is None else c.astype("u1")

    @_member
    def group_index(self):
        given = self["group_index"][()].astype("u4") if "group_index" in self else None
        return np.arange(self.shape[1]) // (max(self.group or 0, 0) or self.shape[1]) if given is None else given

    @_member
    def grid_values(self):
        for names, numbers in forms.items():
            if m := re.fullmatch(names, self.storage):
                return numbers(self.codes, *m.groups())[:self.shape[0], :self.shape[1]]
        w = np.append(grids.get(self.storage, []), np.full(256, np.nan, "f4"))[self.codes]
        if np.isnan(w).any():
            raise ValueError(f"there is a code without a value in the grid of {self.storage}")
        return w

    @_member
    def weight(self):
        if self.storage is None:
            return self["weight"][()].astype("f4")
        w = self.grid_values
        if not re.fullmatch(BLOCKS, self.storage):
            i = self.group_index
            w = w - np.atleast_2d(self["zero"][()])[:, i] if self.storage[:4] == "uint" or "zero" in self else w
            w = w * np.atleast_2d(self["scale"][()] / (1 if self.scale_tensor is None else self.scale_tensor))[:, i]
        return w if self.compute in (None, "none") else nearest(self.compute, w, self.saturate) * np.c_[self.scale8]

    @_member
    def whole(self):
        w, scale = self.weight, 1 if self.split_scale is None else self.split_scale
        if self.split_index is not None:
            w[:, self.split_index.astype("u4")] += self.split_weight * np.float32(scale)
        for a, b in zip(self.branch_a.weight, self.branch_b.weight.T) if self.branch_a else ():
            w += np.multiply.outer(b, a)
        return w


class Model(h5py.File):
    """A file as h5py has it, with its configuration, the commands that made it, and its layers."""
    config = _member(lambda self: json.loads(self["config"][()]) if "config" in self else {})
    history = _member(lambda self: {n: v.split("\n") for n, v in self.attrs.items() if n.startswith("history")})

    def layers(self, group=None):
        """Each linear layer, and other matrices (embeddings), block after block."""
        group = group or self
        if "codes" in group or "packed" in group or "weight" in group and group["weight"].ndim == 2:
            yield Layer(group.id)
        for name in sorted(group, key=lambda n: (int(n) if n.isdigit() else 0, n)):
            if isinstance(group[name], h5py.Group) and not name.startswith("branch_"):
                yield from self.layers(group[name])


def open(path):
    """The Model of a file."""
    try:
        model = Model(path, "r")
    except OSError as e:
        raise Error(f"{path}: {e}") from None
    if "parts" in model.attrs:
        raise Error(f"{path}: is a stream, of which h5py sees the first part; tensor-join makes one file of it")
    return model


if __name__ == "__main__":
    sys.tracebacklimit = 0
    for layer in open(sys.argv[1]).layers():
        print(layer.name, *layer.shape, layer.storage or layer["weight"].dtype, layer.group, sep="\t")
