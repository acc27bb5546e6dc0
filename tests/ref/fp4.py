#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""fp4.h5 -- weights, and their MXFP4 and NVFP4 by the types of ml_dtypes; needs numpy, h5py, ml_dtypes

MX: scales 2^(floor(log2 max) - 2) of 32 columns (OCP MX 1.0, section 6.3). NV: e4m3fn scales of 16 columns
with the divisor 448*6/max|W|; a scale that is rounded to 0 becomes 2^-9. Codes are the bits of float4_e2m1fn,
-0 is stored as 0.
"""
import h5py, ml_dtypes, numpy as np, os

r = np.random.default_rng(4)
w = (r.standard_normal((24, 96)) * np.exp(r.standard_normal((24, 1)) * 3) * 0.02).astype("f4")
w[5, 32:64] = 0
w[6] *= 2.0 ** -20				# scales that e4m3fn has no number for
half = np.array([0, .25, .5, .75, 1, 1.25, 1.5, 1.75, 2, 2.5, 3, 3.5, 4, 5, 6, 7])
w[7, :32] = np.concatenate([half, -half]) / 8	# ties, and beyond the top
w[8, :32] = np.concatenate([half, -half]) * 7.99 / 7

def codes(x):
    c = x.astype(ml_dtypes.float4_e2m1fn).view("u1") & 15
    return np.where(c == 8, 0, c).astype("u1")

def quantize(group, scale, divisor=np.float32(1)):
    g = w.reshape(24, -1, group)
    s = scale(np.abs(g).max(2).astype("f8"))
    x = g.astype("f8") / (s.astype("f4") / divisor).astype("f8")[..., None]
    return s.astype("f4"), codes(x.reshape(w.shape))

def mx(m):
    s = 2.0 ** (np.floor(np.log2(np.where(m > 0, m, 4))) - 2)
    assert (s.astype(ml_dtypes.float8_e8m0fnu).astype("f8") == s).all()
    return s

def nv(m):
    s = (m / 6 * float(divisor)).astype(ml_dtypes.float8_e4m3fn).astype("f8")
    return np.where(m == 0, 1, np.maximum(s, 2.0 ** -9))

divisor = np.float32(448 * 6 / float(np.abs(w).max()))
with h5py.File(os.path.join(os.path.dirname(os.path.abspath(__file__)), "fp4.h5"), "w") as f:
    f.attrs["ptq_kind"], f.attrs["ptq_version"] = "model", "1"
    f["a/weight"], f["nv_tensor"] = w, np.array([divisor])
    f["mx_scale"], f["mx_codes"] = quantize(32, mx)
    f["nv_scale"], f["nv_codes"] = quantize(16, nv, divisor)
