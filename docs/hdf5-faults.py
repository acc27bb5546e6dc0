#!/usr/bin/env python3
# hdf5-faults.py -- four faults of libhdf5 1.10 that damaged files bring out, shown with HDF5's own tools
#
# usage: docs/hdf5-faults.py [FOLDER]; writes the files and runs h5dump, h5copy and h5ls on them. Needs h5py,
# hdf5-tools, valgrind. What ptqtools does about them: lib/io/probe.c, docs/robustness.md.
import os, shutil, struct, subprocess, sys
import h5py

here = os.path.dirname(os.path.abspath(__file__))
os.chdir(sys.argv[1] if len(sys.argv) > 1 else ".")

def damaged(name, make, change):
    with h5py.File(name, "w", libver="earliest") as f:
        make(f)
    with open(name, "rb") as f:
        data = bytearray(f.read())
    change(data)
    with open(name, "wb") as f:
        f.write(data)

def long_text(f):
    f.attrs["text"] = "x" * 20000

def endless(data):	# an object of the heap without a length: the loop over them stands still
    heap = data.index(b"GCOL")
    struct.pack_into("<HHIQ", data, heap + 16, 0, 0, 0, 0)

def short_reference(data):	# the reference says 4 bytes, the heap copies 20000 into them
    heap = data.index(b"GCOL")
    at = data.index(struct.pack("<IQI", 20000, heap, 1))
    struct.pack_into("<I", data, at, 4)

damaged("endless.h5", long_text, endless)
damaged("short.h5", long_text, short_reference)
for name in "copy-crash", "local-heap":	# found by fuzzing
    shutil.copy(f"{here}/../tests/fuzz/finds/part/{name}", f"{name}.h5")

def show(what, seconds, *command):
    try:
        p = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=seconds)
        lines = [l for l in p.stderr.decode().splitlines() if "Invalid write" in l or "of size" in l]
        end = f"signal {-p.returncode}" if p.returncode < 0 else f"status {p.returncode}"
        print(f"{what}: {' '.join(command)}: {end}", *lines[:1])
    except subprocess.TimeoutExpired:
        print(f"{what}: {' '.join(command)}: no end within {seconds} s")

print(subprocess.run(["h5dump", "--version"], stdout=subprocess.PIPE).stdout.decode().strip())
show("a global heap without end", 5, "h5dump", "-A", "endless.h5")
show("a string longer than its reference", 60, "valgrind", "h5dump", "-A", "short.h5")
show("a dataset whose header is damaged", 5, "h5copy", "-i", "copy-crash.h5", "-o", "copy.h5", "-s", "/n", "-d", "/n")
show("a local heap that is damaged", 5, "h5ls", "-r", "local-heap.h5")
