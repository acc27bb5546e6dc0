"""abuse.py -- Python of tests/abuse.t"""

import fcntl
import os
import shutil
import signal
import struct
import subprocess
import sys
import termios
import time

import h5py
import numpy as np

from lib.h5 import copied, read


def change(path, make, source="model.h5"):
    with copied(source, path) as f:
        make(f)


def replace(f, path, value=None, **how):
    del f[path]
    f.create_dataset(path, data=value, **how)


def ladder(f):
    g = f["model/layers/0"]
    for i in range(28):
        n = f.create_group(f"rungs/{i}")
        g["a"], g["b"], g = n, n, n


# the address and length of a dataset, the end of the file
def patch(path, make):
    raw = bytearray(open("model.h5", "rb").read())
    make(raw)
    open(path, "wb").write(raw)


def linked():
    """Files of a Hessian and an order whose first dataset is in another file."""
    for name in "hessian", "order":
        shutil.copy(name + ".h5", f"linked-{name}.h5")
        with h5py.File(f"linked-{name}.h5", "r+") as f:
            at = []
            f.visititems(lambda path, o: at.append(path) if isinstance(o, h5py.Dataset) else None)
            del f[at[0]]
            f[at[0]] = h5py.ExternalLink(name + ".h5", "/" + at[0])


def faults():
    W = "model/layers/0/mlp/up_proj/weight"
    change("huge.h5", lambda f: replace(f, W, shape=(1 << 40, 1 << 30), dtype="f4", chunks=(1, 1024)))
    change("rank.h5", lambda f: replace(f, W, np.zeros((1,) * 32, "f4")))
    change("null.h5", lambda f: replace(f, W, h5py.Empty("f4")))
    change("compound.h5", lambda f: replace(f, W, np.zeros((2, 2), [("a", "f4"), ("b", "f4")])))
    change("text.h5", lambda f: replace(f, W, "a text"))
    change("texts.h5", lambda f: replace(f, "config", np.array(["a", "b"], dtype=object), dtype=h5py.string_dtype()))
    change("integer.h5", lambda f: replace(f, "config", 5))
    change("group.h5", lambda f: (f.pop("config"), f.create_group("config")))
    change("soft.h5", lambda f: (f.pop(W), f.__setitem__(W, h5py.SoftLink("/model/layers/1/mlp/up_proj/weight"))))
    change("outside.h5", lambda f: (f.pop(W), f.__setitem__(W, h5py.ExternalLink("model.h5", "/" + W))))

    def virtual(f):
        del f[W]
        v = h5py.VirtualLayout((16, 8), "f4")
        v[...] = h5py.VirtualSource("model.h5", W, (16, 8))
        f.create_virtual_dataset(W, v)

    change("virtual.h5", virtual)

    def elsewhere(f):
        del f[W]
        space = h5py.h5s.create_simple((16, 8))
        c = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        c.set_external(b"/etc/passwd", 0, 512)
        h5py.h5d.create(f.id, W.encode(), h5py.h5t.IEEE_F32LE, space, c)

    change("elsewhere.h5", elsewhere)
    change("kind.h5", lambda f: f.attrs.__setitem__("ptq_kind", 5))
    change("long-kind.h5", lambda f: f.attrs.__setitem__("ptq_kind", "x" * 30000))
    change("cycle.h5", lambda f: f["model/layers/0"].__setitem__("again", f["model"]))

    change("ladder.h5", ladder)
    change("deep.h5", lambda f: f.create_group("/".join("x" * 60)))
    for name, value in (("many", 1e300), ("nan", float("nan")), ("half", 2.5), ("7", 7), ("0", 0)):
        change(f"parts-{name}.h5", lambda f: (f.attrs.__setitem__("part", 0), f.attrs.__setitem__("parts", value)))
    for name, group in (("minus", -7), ("many", 1e300), ("half", 2.5)):
        change(
            f"columns-{name}.h5",
            lambda f: f["model/layers/0/mlp/up_proj"].attrs.__setitem__("group", group),
            "quantized.h5",
        )

    with h5py.File("model.h5") as f:
        at, size = f[W].id.get_offset(), f[W].id.get_storage_size()
    layout = open("model.h5", "rb").read().index(struct.pack("<QQ", at, size))
    patch("address.h5", lambda r: struct.pack_into("<Q", r, layout, len(r) - 8))
    patch("far.h5", lambda r: struct.pack_into("<Q", r, layout, 1 << 62))
    patch("length.h5", lambda r: struct.pack_into("<Q", r, layout + 8, 1 << 62))


def put(name, *parts):
    open(name, "wb").write(b"".join(parts))


def streams():
    raw, images = open("stream", "rb").read(), []
    while raw:
        n = int.from_bytes(raw[28:36], "little")
        images.append(raw[:n])
        raw = raw[n:]
    a = images

    put("missing", *a[:2], *a[3:])
    put("twice", *a[:3], *a[2:])
    put("swapped", a[0], a[2], a[1], *a[3:])
    put("first", *a[1:])
    put("last", *a[:-1])
    put("more", *a, a[-1])
    put("again", *a, *a)
    put("one", a[0])
    put("cut", b"".join(a)[:-100])
    put("junk", *a, b"\0" * 100)
    put("head", *a[:-1], a[-1][:20])
    put("inside", *a[:2], b"x", *a[2:])


def held():  # the open result file, which has no name yet
    return [name for name in os.listdir("out") if name.startswith(".ptq")]


def clear():
    for name in os.listdir("out"):
        os.unlink("out/" + name)


def signals(name):
    number, moments = getattr(signal, "SIG" + name), 12
    stream, whole, wrong = open("long", "rb").read(), open("whole", "rb").read(), []
    command = "env --default-signal=INT,TERM,HUP,PIPE dpq-run -q -j2 --compensate none".split()

    class Tool:
        def __init__(self, *more, **streams):
            self.child = subprocess.Popen(
                command + list(more), stdin=subprocess.PIPE, stderr=open("said", "wb"), bufsize=0, **streams
            )

        def feed(self, bytes):  # returns when the tool has read them
            try:
                self.child.stdin.write(bytes) if bytes else 0  # writes all: the pipe blocks
            except BrokenPipeError:
                pass
            left = struct.pack("i", 1)
            while any(left) and self.child.poll() is None:
                time.sleep(0.001)
                left = fcntl.ioctl(self.child.stdin, termios.FIONREAD, left)

        def end(self):
            try:
                self.child.stdin.close()
            except BrokenPipeError:
                pass
            return self.child.wait(), open("said").read()

    for i in range(moments if number != signal.SIGPIPE else 0):
        clear()
        old = b"old" if i % 2 else None
        if old:
            open("out/r", "wb").write(old)
        tool = Tool("-o", "out/r")
        tool.feed(stream[: len(stream) * i // moments])
        while not held() and tool.child.poll() is None:
            time.sleep(0.001)
        if tool.child.poll() is not None:
            wrong.append(f"{i}: ended before its input did")
        tool.child.send_signal(number)
        got, said = tool.end()
        if got != -number or said:
            wrong.append(f"{i}: status {got}: {said}")
        if (open("out/r", "rb").read() if os.path.exists("out/r") else None) != old:
            wrong.append(f"{i}: another file")
        if held() and number != signal.SIGKILL:
            wrong.append(f"{i}: left {held()}")
    clear()
    # after more bytes of output than the reader reads
    tool, fed, came = Tool(stdout=subprocess.PIPE), 0, b""
    os.set_blocking(tool.child.stdin.fileno(), False)
    os.set_blocking(tool.child.stdout.fileno(), False)
    while not came and tool.child.poll() is None:
        fed += tool.child.stdin.write(stream[fed : fed + 65536]) or 0
        came = tool.child.stdout.read(1) or b""
        time.sleep(0.0001)
    tool.child.stdout.close() if number == signal.SIGPIPE else tool.child.send_signal(number)
    os.set_blocking(tool.child.stdin.fileno(), True)
    try:
        number != signal.SIGPIPE or tool.child.stdin.write(stream[fed:])
    except BrokenPipeError:
        pass
    got, said = tool.end()
    if got != -number or said or came != whole[:1]:
        wrong.append(f"to a pipe: status {got}: {said}")
    sys.exit("\n".join(wrong) or 0)


def every_byte():
    assert int(read("ids.h5", "bytes").sum()) == len(open("bytes", "rb").read())
