"""ggml.py TYPE MODEL HESSIAN|- CODES -o OUT -- weights in a block type of llama.cpp, dequantized: pipelines/frontier.sh

Quantizes the layers that have codes in the file CODES by ggml_quantize_chunk() of the library in the package
llama-cpp-python. With HESSIAN the importance of a column is the mean of its squared inputs, as in an imatrix file.
Rows that are no multiple of the block get the type that llama.cpp takes instead. OUT is a plain model; on standard
output are the bits per weight, as the last line of tensor-stats has them, on standard error memory and time.
"""

import ctypes
import importlib.util
import os
import resource
import shutil
import sys
import time

import h5py
import numpy as np

FALLBACK = {"q4_K": "q5_0", "q5_K": "q5_1", "q6_K": "q8_0"}  # others: iq4_nl


def library():
    folder = importlib.util.find_spec("llama_cpp").submodule_search_locations[0]
    lib = ctypes.CDLL(os.path.join(folder, "lib", "libggml-base.so"))
    lib.ggml_type_name.restype = ctypes.c_char_p
    lib.ggml_row_size.restype = lib.ggml_quantize_chunk.restype = ctypes.c_size_t
    lib.ggml_row_size.argtypes = [ctypes.c_int, ctypes.c_int64]
    lib.ggml_blck_size.restype = ctypes.c_int64
    lib.ggml_quantize_chunk.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64,
                                        ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
    return lib


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


def requantized(lib, numbers, name, weight, importance):
    """The dequantized weight [out, in], and its bits."""
    out, n = weight.shape
    if n % lib.ggml_blck_size(numbers[name]):
        name = FALLBACK.get(name, "iq4_nl")
    source, result = np.ascontiguousarray(weight, "f4"), np.empty((out, n), "f4")
    codes = np.empty(out * lib.ggml_row_size(numbers[name], n), "u1")
    given = None if importance is None else pointer(importance)
    lib.ggml_quantize_chunk(numbers[name], pointer(source), pointer(codes), 0, out, n, given)
    decode = getattr(lib, "dequantize_row_" + name)
    decode.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    decode(pointer(codes), pointer(result), out * n)
    return result, 8 * codes.size


def layers_of(codes):
    found = []
    with h5py.File(codes) as f:
        f.visititems(lambda path, d: found.append(path.rsplit("/", 1)[0]) if path.endswith("/codes") else None)
    return found


def main(name, model, hessian, codes, _, output):
    lib = library()
    numbers = {(lib.ggml_type_name(i) or b"").decode(): i for i in range(40)}
    lib.ggml_quantize_init(numbers[name])
    shutil.copyfile(model, output)
    moments = None if hessian == "-" else h5py.File(hessian)
    bits = weights = 0
    with h5py.File(output, "r+") as f:
        for layer in layers_of(codes):
            importance, path = None, layer + "/weight"
            if moments and moments[layer]["count"][()] > 0:  # an expert may have had no input
                group = moments[layer]
                importance = np.ascontiguousarray(np.diag(group["hessian"][()]) / group["count"][()], "f4")
            weight, size = requantized(lib, numbers, name, f[path][()], importance)
            del f[path]  # it may be of 16 bits
            f[path] = weight
            bits += size
            weights += weight.size
    print("all\t-\t-\t-\t-\t-\t%.6g" % (bits / weights))


if __name__ == "__main__":
    main(*sys.argv[1:])
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"ggml: peak memory {memory:.1f} MiB, {time.process_time():.2f} s of processor time", file=sys.stderr)
