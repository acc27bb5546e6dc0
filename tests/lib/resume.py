"""resume.py -- Python of tests/resume.t"""

import fcntl
import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import h5py
import numpy as np

from lib.h5 import copied, create


def changed(path, source, make):
    with copied(source, path) as f:
        make(f)


def make(source):
    BLOCKS, r = 6, np.random.default_rng(1)

    def deepen(f):
        c = json.loads(f["config"][()])
        c["num_hidden_layers"] = BLOCKS
        del f["config"]
        f["config"] = np.bytes_(json.dumps(c))
        for i in range(2, BLOCKS):
            f.copy(f"model/layers/{i % 2}", f"model/layers/{i}")
        for i in range(BLOCKS):
            for n in "q_proj", "v_proj":
                f[f"model/layers/{i}/self_attn/{n}/weight"][...] += r.standard_normal(()) / 10

    changed("model.h5", source, deepen)
    changed("other.h5", "model.h5", lambda f: f["model/layers/5/mlp/up_proj/weight"].__setitem__((0, 0), 1))
    changed("nan.h5", "model.h5", lambda f: f["model/layers/4/mlp/up_proj/weight"].__setitem__((0, 0), np.nan))
    with create("t.h5", "tokens") as f:
        d = f.create_dataset("tokens", data=r.integers(3, 61, 200).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"] = 1, 1
    with create("layer.h5", "model") as f:
        f["a/weight"] = r.standard_normal((24, 100)).astype("f4")


def all_of(path):
    y = {}

    def look(name, o):
        y[name] = (
            dict((k, str(v)) for k, v in o.attrs.items()),
            None if isinstance(o, h5py.Group) else (o.dtype.str, o.shape, bytes(o[()])),
            o.name,
        )

    with h5py.File(path) as f:
        look("/", f)
        f.visititems(look)
    return y


def same_file(before, after):
    sys.exit(all_of(before) != all_of(after))


# FILE.part by its description in docs/format.md: images, each after three lines of 128 bytes in all

SEAL, PIECE = 128, 16 << 20


def seal(image):
    each = b"".join(hashlib.sha256(image[i : i + PIECE]).digest() for i in range(0, len(image), PIECE))
    return b"%-28s\nbytes %20d\nsha256 %s\n" % (
        b"ptqtools: a finished part",
        len(image),
        hashlib.sha256(each).hexdigest().encode(),
    )


def places(raw):
    at = [0]
    while at[-1] < len(raw):
        n = int(raw[at[-1] + 35 : at[-1] + 55])
        image = raw[at[-1] + SEAL : at[-1] + SEAL + n]
        assert n == int.from_bytes(image[28:36], "little") and raw[at[-1] : at[-1] + SEAL] == seal(image)
        at.append(at[-1] + SEAL + n)
    return at


def cut():
    raw = open("parts", "rb").read()
    at = places(raw)
    assert at[-1] == len(raw) and len(at) == 10, at
    open("at", "w").write(" ".join(map(str, at)))

    def zeros(name, i, n):
        open(name, "wb").write(raw[: at[i]] + b"\0" * n + raw[at[i] + n :])

    zeros("head-first", 0, SEAL)
    zeros("head-7", 6, SEAL)
    zeros("image-last", 8, at[9] - at[8])


def flip():
    random.seed(1)
    whole, raw = open("whole.h5", "rb").read(), open("parts", "rb").read()
    at = places(raw)

    def inside(i, word):  # the place of a word in part i; numbers(): that of a dataset
        found = raw.find(word, at[i], at[i + 1])
        assert found >= 0, (i, word)
        return found

    def numbers(i, path):
        open("one.h5", "wb").write(raw[at[i] + SEAL : at[i + 1]])
        with h5py.File("one.h5") as f:
            return at[i] + SEAL + f[path].id.get_offset()

    layer = "model/layers/%d/self_attn/q_proj/"
    flips = [
        (i, at[i] + d) for i in (0, 4, 8) for d in (0, 40, 54, 70, 127, SEAL, SEAL + 28)
    ]  # places in the seal and in the superblock
    flips += [
        (i, inside(i, w))
        for i, w in ((0, b"resume"), (0, b"dpq-run"), (4, b"resume:report"), (4, b"storage"), (8, b"resume:report"))
    ]
    flips += [(i, numbers(i, layer % (i - 2) + name) + 2) for i in (2, 5, 7) for name in ("codes", "scale")]
    flips += [(i, at[i + 1] - 1) for i in (0, 5, 8)] + [(i, random.randrange(at[i], at[i + 1])) for i in range(9)]
    wrong, anew, idle = [], 0, 0
    for i, place in flips:
        d = place - at[i]
        fixed = d < 35 or 55 <= d < 63 or d == 127  # words of the seal that do not depend on the image
        idle += fixed
        bad = bytearray(raw)
        bad[place] ^= 1 << random.randrange(7)
        open("r.h5.part", "wb").write(bad)
        run = subprocess.run(
            "dpq-run --hessian h.h5 --order o.h5 --group 8 --plan plan --resume model.h5 -o r.h5".split(),
            stderr=subprocess.PIPE,
            text=True,
        )
        where = f"part {i + 1}, byte {d}: "
        said = re.search(r"r.h5.part: part (\d+) was damaged after it was written", run.stderr)
        anew += said is not None
        if run.returncode or open("r.h5", "rb").read() != whole:
            wrong.append(f"{where}status {run.returncode} or other bytes: {run.stderr[:200]}")
        elif (said is None) != fixed or said is not None and int(said[1]) != i + 1:
            wrong.append(f"{where}said: {said}")
    print(f"# {len(flips)} flips, {anew} parts made anew")
    print("\n".join(wrong))
    raise SystemExit(bool(wrong) or idle > 10)


def part_again():
    data = open("parts", "rb").read()
    n = places(data)[1]
    open("first.h5", "wb").write(data[SEAL:n])
    with h5py.File("first.h5", "r+") as f:
        f.attrs["resume:processor"] = "abacus"
    first = open("first.h5", "rb").read()
    open("cpu", "wb").write(seal(first) + first + data[n:])


def clear():
    for name in os.listdir("k"):
        os.unlink("k/" + name)


def size():
    return os.path.getsize("k/r.h5.part") if os.path.exists("k/r.h5.part") else 0


def kill(kills, seed):
    kills = int(kills)
    random.seed(int(seed))
    command = "dpq-run -q --hessian h.h5 --order o.h5 --group 8 --plan plan --resume model.h5 -o k/r.h5".split()

    def start():
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    os.mkdir("k")
    whole, begin = open("whole.h5", "rb").read(), time.time()
    assert start().wait() == 0
    seconds, total, late, kept, wrong = time.time() - begin, os.path.getsize("parts"), 0, 0, []

    def stop(name, number):  # when FILE.part has some size; earlier if that was too late
        nonlocal late
        for again in range(20):
            goal = max(1, size() + (total - size()) * random.random() / 2**again)
            child = start()
            while size() < goal and child.poll() is None:
                time.sleep(0.001)
            time.sleep(random.random() * seconds / 9 / 2**again)
            child.send_signal(number)
            said = child.communicate()[1]
            if os.path.exists("k/r.h5") and open("k/r.h5", "rb").read() != whole:
                wrong.append(f"{name}: half a result")
            if child.returncode == -number:
                return
            if child.returncode:
                wrong.append(f"{name}: status {child.returncode}: {said}")
                return
            os.unlink("k/r.h5")
            late += 1
        wrong.append(f"{name}: the signal never came in time")

    for i in range(kills):
        clear()
        for number in (
            signal.SIGKILL,
            random.choice([signal.SIGKILL, signal.SIGTERM]),
        ):  # the second kills the resumed run
            stop(i, number)
            if size():
                kept += 1
            elif not os.path.exists("k/r.h5"):
                wrong.append(f"{i}: what was finished is gone")
        child = start()
        said = child.communicate()[1]
        if child.returncode:
            wrong.append(f"{i}: goes not on: {said}")
        elif open("k/r.h5", "rb").read() != whole:
            wrong.append(f"{i}: other bytes")
        if os.path.exists("k/r.h5.part"):
            wrong.append(f"{i}: FILE.part is left")
    print(f"# {2 * kills} signals in time, {late} too late; {kept} left parts to go on from")
    print("\n".join(wrong[:20]))
    sys.exit(bool(wrong) or kept < kills)


def first_part(count):
    raw = open("parts2", "rb").read()
    open("s.h5.part", "wb").write(raw[: places(raw)[int(count)]])


def foreign(count):
    raw = open("parts2", "rb").read()
    at = places(raw)
    open("v.h5.part", "wb").write(raw[: at[int(count) if int(count) < len(at) else -1]])


def sealed():
    image = open("h.h5", "rb").read()
    open("r.h5.part", "wb").write(seal(image) + image)


def sealed_junk():
    image = b"\211HDF\r\n\032\n" + b"0" * 100
    open("r.h5.part", "wb").write(seal(image) + image)


def lock():
    """Holds the lock of another run until it is killed."""
    with open("r.h5.part", "w+") as f:
        fcntl.lockf(f, fcntl.LOCK_EX)
        open("locked", "w").close()
        time.sleep(3600)


def no_report():
    """A first part without the report of its layers, as written by an earlier version."""
    data = open("parts", "rb").read()
    n = places(data)[1]
    open("first.h5", "wb").write(data[SEAL:n])
    with h5py.File("first.h5", "r+") as f:
        del f["resume:report"]
    first = open("first.h5", "rb").read()
    open("r.h5.part", "wb").write(seal(first) + first + data[n:])
