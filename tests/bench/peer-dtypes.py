# SPDX-License-Identifier: GPL-3.0-or-later
"""peer-dtypes.py -- ml_dtypes rounds float32 to six-bit floats, in G numbers per second (it has no e2m2)"""
import time
import ml_dtypes
import numpy as np

x = np.random.default_rng(1).uniform(-7, 7, (1024, 4096)).astype(np.float32)
seconds = []
for _ in range(5):
    start = time.perf_counter()
    x.astype(ml_dtypes.float6_e2m3fn)
    seconds.append(time.perf_counter() - start)
print(f"pack-e2m2\tpeer\t{x.size / sorted(seconds)[2] * 1e-9:.5g}")
print(f"pack-e2m2\tpeer_is\tml_dtypes {ml_dtypes.__version__}, to float6_e2m3fn, one thread")
