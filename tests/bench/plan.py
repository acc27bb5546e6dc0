#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requirements of Llamas of 1 to 70 billion parameters: bytes, operations, hours, peak memory, on cores and on nodes.

    plan.py KERNELS BENCH.tsv [FILE.md...]

KERNELS is the program build/tests/bench/kernels, which prints the bytes of the solver's workspace. Rates are those of
BENCH.tsv. Prints tables, or writes them to files: of the tables sizes, nodes and plan (of 70 billion parameters) each
file has those for which it has lines <!-- NAME --> and <!-- /NAME -->.
"""
import csv
import os
import pathlib
import subprocess
import sys

HIDDEN, BLOCKS, KV, INTERMEDIATE, GROUP = 8192, 80, 8 * 128, 28672, 128
VOCAB = {"Llama 2": 32000, "Llama 3": 128256}
WINDOWS, CTX = 128, 2048                        # calibration as the papers have it
TOKENS = WINDOWS * CTX
LAYERS = [("q", HIDDEN, HIDDEN), ("k", KV, HIDDEN), ("v", KV, HIDDEN), ("o", HIDDEN, HIDDEN),
          ("gate", INTERMEDIATE, HIDDEN), ("up", INTERMEDIATE, HIDDEN), ("down", HIDDEN, INTERMEDIATE)]
SITES = [("q, k, v", HIDDEN), ("o", HIDDEN), ("gate, up", HIDDEN), ("down", INTERMEDIATE)]
SMALL = dict(hidden=768, blocks=12, intermediate=2048, vocab=32000)     # the model of the bench


page = []                                       # lines


def gb(bytes_):
    return f"{bytes_ / 1e9:.2f} GB"


def hours(seconds):
    return f"{seconds / 3600:.2f} h" if seconds >= 360 else f"{seconds:.0f} s"


def table(head, rows):
    page.extend(["| " + " | ".join(head) + " |", "|" + "---|" * len(head)])
    page.extend("| " + " | ".join(map(str, r)) + " |" for r in rows)
    page.append("")


PIECE, THREADS, SIDE_BY_SIDE = 512, 2, 4 << 30         # lib/forward/forward.c
kernels = sys.argv[1]
bench = pathlib.Path(sys.argv[2])
lines = [x for x in bench.read_text().splitlines() if x[:1] != "#"] if bench.exists() else []
ours = {r["row"]: float(r["ours"]) for r in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)}
work = {r[0]: int(r[2]) for r in (x.split("\t") for x in subprocess.run([kernels, "work"], env=os.environ | {"OMP_NUM_THREADS": str(THREADS)}, check=True, capture_output=True, text=True).stdout.splitlines())}

small = 2 * (SMALL["blocks"] * (4 * SMALL["hidden"]**2 + 3 * SMALL["hidden"] * SMALL["intermediate"]) + SMALL["hidden"] * SMALL["vocab"])
small += SMALL["blocks"] * 4 * SMALL["hidden"] * (2048 + 1) / 2
f32_file = SMALL["blocks"] * (4 * SMALL["hidden"]**2 + 3 * SMALL["hidden"] * SMALL["intermediate"]) * 4 + 2 * SMALL["vocab"] * SMALL["hidden"] * 4
# Rates per second, from the rows that were measured
rate = {}
for row, amount in {"eval-ppl-2048": small, "hessian-f32": 1e9}.items():
    rate[row] = ours[row] * amount if row in ours else None
for row, amount in {"dpq-mse-4096x4096": 4096**3 + 4096**3 / 3, "model-import": f32_file, "rtn": f32_file}.items():
    rate[row] = amount / ours[row] if row in ours else None

weights = sum(m * n for _, m, n in LAYERS)
quantized = sum(m * n + m * -(-n // GROUP) * 5 for _, m, n in LAYERS)
sums = sum(n * n for _, n in SITES)

page.append("### Bytes\n\nThe parts of the stream in their order, and the files that are stored in addition:\n")
rows = [(f"embeddings, head (each), {name}", f"vocab · hidden · 2 = {v} · {HIDDEN} · 2", gb(v * HIDDEN * 2)) for name, v in VOCAB.items()]
rows += [("one block, bf16", f"{weights} weights · 2", gb(weights * 2)),
         ("all 80 blocks, bf16", "", gb(weights * 2 * BLOCKS)),
         ("one block, quantized", "codes of 1 byte, scale of 4 and zero point of 1 per group of 128", gb(quantized)),
         ("all 80 blocks, quantized", "", gb(quantized * BLOCKS)),
         ("Hessian of the attention, output, gate-up inputs (each)", f"{HIDDEN}² · 4", gb(HIDDEN**2 * 4)),
         ("Hessian of the down projection's input", f"{INTERMEDIATE}² · 4", gb(INTERMEDIATE**2 * 4)),
         ("Hessians of one block", "three of 8192 and one of 28672", gb(sums * 4)),
         ("Hessians of all blocks", "", gb(sums * 4 * BLOCKS)),
         (f"hidden states of {WINDOWS} windows of {CTX}", f"{TOKENS} · {HIDDEN} · 4, in $TMPDIR if above --memory", gb(TOKENS * HIDDEN * 4))]
table(["what", "bytes", "size"], rows)

forward = 2 * weights + 4 * HIDDEN * (CTX + 1) / 2
solve = sum(m * n * n for _, m, n in LAYERS) + sum(n**3 / 3 for _, n in SITES)
head = 2 * HIDDEN * VOCAB["Llama 2"]
model = weights * 2 * BLOCKS + 2 * VOCAB["Llama 2"] * HIDDEN * 2
steps = [                                       # what, operations or bytes, by the rate of which row
    ("model-import", f"{gb(model)} read", model, "model-import"),
    ("hessian-accum: forward", f"{forward:.3g} per token and block · {TOKENS} · {BLOCKS} = {forward * TOKENS * BLOCKS:.3g}",
     forward * TOKENS * BLOCKS, "eval-ppl-2048"),
    ("hessian-accum: Hessians", f"Σ n² · {TOKENS} · {BLOCKS} = {sums * TOKENS * BLOCKS:.3g}", sums * TOKENS * BLOCKS, "hessian-f32"),
    ("dpq-run, DPQ with search", f"(Σ m n² + Σ n³/3) · {BLOCKS} = {solve * BLOCKS:.3g}", solve * BLOCKS, "dpq-mse-4096x4096"),
    ("dpq-run --compensate none", f"{gb(model)} read", model, "rtn"),
    (f"eval-ppl, {TOKENS} tokens", f"({forward:.3g} · {BLOCKS} + {head:.3g}) · {TOKENS} = {(forward * BLOCKS + head) * TOKENS:.3g}",
     (forward * BLOCKS + head) * TOKENS, "eval-ppl-2048"),
]
page.append("### Time\n\nOperations or bytes, and time on one machine like that of bench.tsv:\n")
table(["step", "operations or bytes", "per second, from the row", "time"],
      [(a, b, f"{rate[row]:.3g} ({row})" if rate[row] else f"? ({row})", hours(amount / rate[row]) if rate[row] else "?")
       for a, b, amount, row in steps])

def unseen_of(n, middle, kv):
    """A chunk of states of eval-ppl."""
    return 4 * (2048 * n + max(2048 * (n + 2 * kv), PIECE * 2 * middle) + max(2048 * n, PIECE * middle))


def seen_of(n, middle, kv, threads):
    """Chunks of states of hessian-accum with the inputs of layers: one for each thread up to SIDE_BY_SIDE, else one."""
    chunk = unseen_of(n, middle, kv) + 4 * 2048 * (3 * n + middle)
    return chunk * threads if chunk * threads <= SIDE_BY_SIDE else chunk


block = weights * 4
# States between two products: normed, wide and middle, of 2048 tokens at once; the MLP in pieces
seen = seen_of(HIDDEN, INTERMEDIATE, KV, THREADS)
unseen = unseen_of(HIDDEN, INTERMEDIATE, KV)
page.append("### Memory\n\nPeak memory of a process. Pages of the files that it maps are not counted:\n")
table(["process", "is", "size"], [
    ("hessian-accum, a block", "weights in float; sums in double of all four inputs; chunks of states, with the inputs of layers",
     f"{gb(block)} + {gb(sums * 8)} + {gb(seen)} = {gb(block + sums * 8 + seen)}"),
    ("hessian-accum while it writes", "the same, and the largest sum in float",
     f"{gb(block + sums * 8 + seen)} + {gb(INTERMEDIATE**2 * 4)} = {gb(block + sums * 8 + seen + INTERMEDIATE**2 * 4)}"),
    ("hessian-accum --layers '*down_proj'", "the same for one input, while it writes",
     f"{gb(block + INTERMEDIATE**2 * 12 + seen)}"),
    ("hessian-accum --layers '!*down_proj'", "the same for the other three inputs, while it writes",
     f"{gb(block + HIDDEN**2 * (3 * 8 + 4) + seen)}"),
    ("dpq-run, a block", "codes and scales; work space of the solver with the factors of all four Hessians; the Hessians are mapped",
     f"{gb(quantized)} + {gb(work['work-70b-block'])} = {gb(quantized + work['work-70b-block'])}"),
    ("dpq-run on a pipe, in addition", "one quantized block, built in memory", gb(quantized)),
    ("eval-ppl, a block", f"weights in float; a chunk of states for each of {THREADS} threads; hidden states up to --memory (512 MiB)",
     f"{gb(block)} + {gb(THREADS * unseen)} + {gb(1 << 29)} = {gb(block + THREADS * unseen + (1 << 29))}"),
])
plan, page = page, []

# Llama 3 in four sizes: hidden, blocks, intermediate, keys
SIZES = {"1 billion": (2048, 16, 8192, 512), "3 billion": (3072, 28, 8192, 1024), "8 billion": (4096, 32, 14336, 1024),
         "70 billion": (8192, 80, 28672, 1024)}
CORES, MEASURED_ON = (2, 16, 64), 2
NODES, OF_NODE, SHARDS, DISK = (1, 2, 4, 8, 16), 16, (16, 4), 1e9      # cores of a node, PTQ_SHARDS, bytes per second


def number(x):
    return f"{x:.1f}" if x < 9.95 else f"{x:.0f}"


def joined(values):
    """Numbers with units, each unit once: 5.5 h / 41 / 10 min."""
    values = list(values)
    return " / ".join(x + (f" {unit}" if i + 1 == len(values) or values[i + 1][1] != unit else "") for i, (x, unit) in enumerate(values))


def spans(seconds):
    units = (("h", 3600, 3600), ("min", 90, 60), ("s", 0, 1))
    return joined((number(t / unit), name) for t in seconds for name, least, unit in [next((u for u in units if t >= u[1]), units[-1])])


def sizes(values):
    units = (("TB", 1e12), ("GB", 0))
    return joined((number(b / (unit or 1e9)), name) for b in values for name, unit in [next(u for u in units if b >= u[1])])


rows, of_nodes = [], []
for name, (n, blocks, middle, kv) in SIZES.items():
    of_block = 2 * n * n + 2 * n * kv + 3 * n * middle
    of_token = 2 * of_block + 2 * n * (CTX + 1)
    hessians = 3 * n * n + middle**2
    solved = (2 * n + 2 * kv + 2 * middle) * n * n + n * middle**2 + n**3 + middle**3 / 3
    times = [(of_token * blocks * TOKENS, "eval-ppl-2048"), (hessians * blocks * TOKENS, "hessian-f32"), (solved * blocks, "dpq-mse-4096x4096"),
             ((of_token * blocks + 2 * n * VOCAB["Llama 3"]) * TOKENS, "eval-ppl-2048")]
    t = [amount / rate[row] if rate[row] else float("nan") for amount, row in times]
    calibrate, quantize, evaluate = (x * MEASURED_ON for x in (t[0] + t[1], t[2], t[3]))  # on one core
    summed = 4 * of_block + 8 * hessians + 4 * middle**2
    peak = [max(summed + seen_of(n, middle, kv, c), 4 * of_block + c * unseen_of(n, middle, kv) + (1 << 29)) for c in CORES]
    plain = 2 * VOCAB["Llama 3"] * n * 2
    whole, result, squares = blocks * of_block * 2 + plain, blocks * of_block * (1 + 5 / GROUP) + plain, 4 * hessians * blocks
    disk = 2 * whole + squares + result + 2 * TOKENS * n * 4
    rows.append((name, " / ".join(map(str, CORES)), *(spans(x / c for c in CORES) for x in (calibrate, quantize, evaluate)),
                 sizes(peak), sizes([disk])))
    # Each shard reads the model for its digest and to run it, and writes Hessians, which are read and summed. Each shard of
    # blocks reads model and Hessians for their digests; together they read both again, and write the result. The join
    # reads and writes it, the evaluation reads both models.
    traffic = [k * (2 * whole + squares) + (k + 1) * squares + k * (whole + squares) + whole + squares + result
               + 2 * result + whole + result for k in SHARDS]
    of_nodes.append((name, spans(calibrate / OF_NODE / k for k in NODES), spans(quantize / OF_NODE / k for k in NODES),
                     spans([evaluate / OF_NODE]), sizes(k * squares for k in SHARDS), sizes(traffic), spans(x / DISK for x in traffic),
                     spans((calibrate + quantize) / OF_NODE / k + evaluate / OF_NODE + traffic[0] / DISK for k in NODES)))
table(["parameters", "cores", "calibrate", "quantize, DPQ with search", "evaluate", "memory", "disk"], rows)
tables = {"sizes": page}
page = []
table(["parameters", "calibrate", "quantize", "evaluate", "Hessians of 16 / 4 shards", "read and written", "time at 1 GB/s, 16 / 4 shards", "in all, 16 shards"],
      of_nodes)
tables["nodes"] = page

took = [hours(amount / rate[row]) if rate[row] else "?" for _, _, amount, row in steps]
plan.insert(0, f"On one machine like that of [bench.tsv](results/bench.tsv), the calibration of Llama 2 70B on {TOKENS}\n"
            f"tokens takes {took[1]} for the forward pass and {took[2]} for the Hessians. DPQ takes {took[3]},\n"
            f"round-to-nearest {took[4]}. The peak memory is {gb(block + sums * 8 + seen + INTERMEDIATE**2 * 4)}, in `hessian-accum`.\n")
tables["plan"] = plan
texts = {name: "\n".join(lines).rstrip("\n") for name, lines in tables.items()}
for file in sys.argv[3:]:
    path = pathlib.Path(file)
    old = path.read_text()
    for name, text in texts.items():
        begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        if begin in old:
            old = old.split(begin)[0] + begin + text + "\n" + end + old.split(end)[1]
    path.write_text(old)
if len(sys.argv) == 3:
    print("\n\n".join(texts.values()))
