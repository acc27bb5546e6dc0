"""same.py -- Python of tests/same.t"""

import sys

import h5py
import numpy as np

from lib.h5 import copied


def move(kinds, moves):
    gamma = (2 * 768 + 8) * 2.0**-24  # of down_proj, the widest
    for kind in kinds.split():
        for i in moves.split():
            draw, path, norms = np.random.default_rng(int(i)), f"models/{kind}-{i}.h5", []
            with copied(f"models/{kind}.h5", path) as f:
                f.visit(lambda name: norms.append(name) if name.endswith("norm/weight") else None)
                assert len(norms) == 17
                for name in norms:
                    w = f[name][...].astype("f8")
                    del f[name]  # bf16 there, which would take no such move
                    f[name] = (w * (1 + gamma * draw.choice((-1, 1), w.shape))).astype("f4")


def nll(path):
    return h5py.File(path)["nll_of_target"][...]


def near(kernels, kind, moves):
    moves = moves.split()

    def apart(path):
        return float(np.sqrt(np.mean((nll(path) - nll(f"numbers/{kind}.h5")) ** 2)))

    far, bound = apart(f"{kernels}/{kind}.h5"), 2 * max(apart(f"numbers/{kind}-{i}.h5") for i in moves)
    print(f"# {kernels}: {kind} {far:.2g} apart, bound {bound:.2g}")
    sys.exit(not 0 <= far <= bound or not bound > 0)
