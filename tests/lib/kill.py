"""kill.py -- Python of tests/kill.t"""

import os
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np


def start(command, out):
    if out == "-o":
        return subprocess.Popen(command + ["-o", "out/r"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with open("out/r", "wb") as f:
        return subprocess.Popen(command, stdout=f, stderr=subprocess.DEVNULL)


def result():
    """The bytes of the file, or of the files of the folder by name; None if it does not exist."""
    if os.path.isdir("out/r"):
        return {name: open("out/r/" + name, "rb").read() for name in os.listdir("out/r")}
    return open("out/r", "rb").read() if os.path.exists("out/r") else None


def clear():
    for name in os.listdir("out"):
        if os.path.isdir("out/" + name):
            shutil.rmtree("out/" + name)
        else:
            os.unlink("out/" + name)


def kill(top, kills):
    kills = int(kills)
    random.seed(1)
    commands = [c.split() for c in f"""model-import -q {top}/data/prose
    tokenize --bytes text
    images-import -q --model llava.h5 --tokens holes.h5 rgb8.png
    sample-tokens -q --length 64 --ctx 33 model.h5
    hessian-accum -q --tokens tokens.h5 --ctx 256 model.h5
    gar-order -q hessian.h5
    dpq-run -q --compensate none model.h5
    dpq-run -q --hessian hessian.h5 --order order.h5 --layers */0/* model.h5
    exmy-pack -q codes.h5
    ln2rms -q gpt2.h5
    hadamard-rotate -q model.h5
    fbq-run -q --group 8 --rank 4 --steps 20 --hessian hessian.h5 model.h5
    smooth-scale -q --hessian hessian.h5 model.h5
    awq-scale -q --hessian hessian.h5 model.h5
    qep-correct -q --hessian cross.h5 model.h5
    rms-suppress -q rotated.h5
    msq-calib -q --act-format int8 --tokens tokens.h5 --ctx 256 model.h5
    exmy-sweep --formats int4,e2m1,nf4
    eval-ppl -q --tokens tokens.h5 --ctx 256 model.h5
    eval-choice -q --questions questions.jsonl model.h5
    eval-generate -q --max 8 --questions answers.jsonl model.h5
    aifs-order -q mixed.h5
    tensor-stats -q model.h5
    tensor-diff -q --reference model.h5 codes.h5
    tensor-join -q codes.h5 model.h5
    model-export -q --to gguf codes.h5
    model-export -q --to compressed-tensors codes.h5
    model-export -q --to gptq codes.h5
    model-export -q --to hf codes.h5""".split("\n")]
    signals = [signal.SIGKILL, signal.SIGTERM, signal.SIGQUIT, signal.SIGXCPU, signal.SIGUSR1, signal.SIGALRM]
    for number in signals[1:]:
        signal.signal(number, signal.SIG_DFL)  # a shell ignores some signals in its background jobs
    # The result is text, or not a stream: -o only.
    text = {"eval-ppl", "eval-choice", "eval-generate", "tensor-stats", "tensor-diff", "model-export"}

    os.mkdir("out")
    whole, seconds, late, left, wrong = [], [], 0, 0, []
    for command in commands:
        for _ in 1, 2:  # the second run has programs and files in memory
            clear()
            begin = time.time()
            assert start(command, "-o").wait() == 0, command
        seconds.append(time.time() - begin)
        whole.append(result())
    for i in range(kills):
        k, number = i % len(commands), signals[(i // len(commands)) % len(signals)]
        command, way = commands[k], ">" if commands[k][0] not in text and i // len(commands) % 3 == 2 else "-o"
        moment, status = random.uniform(0, 1.1 * seconds[k]), 0
        for _ in range(20):  # a signal that is too late is sent again after half of the time
            clear()
            child = start(command, way)
            time.sleep(moment)
            child.send_signal(number)
            status = child.wait()
            what, name = result(), f"{' '.join(command)} {way}, {signal.Signals(number).name}, {i}"
            others = [f for f in os.listdir("out") if f != "r"]
            if status == 0 and what != whole[k]:
                wrong.append(f"{name}: status 0 and not the whole result")
            if status not in (0, -number):
                wrong.append(f"{name}: status {status}")
            if way == "-o" and what not in (None, whole[k]):
                wrong.append(f"{name}: half a result under its name")
            if way == ">" and number != signal.SIGKILL and what not in (b"", whole[k]):
                wrong.append(f"{name}: half a result in a file of the shell's")
            if others and number != signal.SIGKILL:
                wrong.append(f"{name}: left {others}")
            if status and way == "-o" and what is not None and number != signal.SIGKILL:
                wrong.append(f"{name}: a result, and status {status}")
            if status:
                break
            late += 1
            moment /= 2
        if not status:
            wrong.append(f"{name}: the signal never came in time")
        left += bool(others)
    print(f"# {kills} signals in time, {late} too late; after SIGKILL {left} temporary files were left")
    print("\n".join(wrong[:20]))
    sys.exit(bool(wrong))


def mixed_tokens():
    with h5py.File("mixed.h5", "w") as f:
        f.attrs["ptq_kind"], f.attrs["ptq_version"], f["tokens"], f["modality"] = (
            "tokens",
            "1",
            np.arange(1 << 20, dtype="i4") % 256,
            np.arange(1 << 20, dtype="u1") // 64 % 2,
        )
