"""gar-order.py -- Python of tests/gar-order.t"""

import h5py
import numpy as np

from lib.h5 import create


def hessian(path, **layers):
    with create(path, "hessian") as f:
        for name, d in layers.items():
            f[name + "/hessian"] = np.diag(np.array(d, "f4"))
            f[name + "/count"] = np.int64(1)


def make():
    hessian("figure1.h5", layer=[3, 4, 2, 1, 5, 6])
    hessian("ties.h5", layer=[1, 1, 1, 2, 2, 1, 0])
    hessian("tail.h5", layer=[1, 2, 3, 4, 5, 6, 9])
    hessian("nan.h5", layer=[1, float("nan")])
    hessian("negative.h5", layer=[1, -1])
    with create("shared.h5", "hessian") as f:
        f["q/hessian"], f["q/count"] = np.diag(np.array([1, 2], "f4")), np.int64(1)
        f["k"] = f["q"]
    with create("flat.h5", "hessian") as f:
        f["layer/hessian"] = np.zeros((3, 4), "f4")


def order(path, member):
    print(*(h5py.File(path)[member][...] + 1))


def attributes():
    a = h5py.File("o.h5").attrs
    print(a["order"], a["key"], a["group"])
