"""report.py -- Python of tests/report.t"""

import csv
import json
import math

import numpy as np

from lib.h5 import create


def one_table(kind):
    """Standard error, a file of lines and JSON have the same table; numbers of `all` follow from its rows."""
    number = lambda s: None if s in ("", "-") else float(s)
    seen = [l.rstrip("\n").split("\t") for l in open("seen") if ": " not in l.split("\t")[0]]
    lines, j = list(csv.reader(open("t.tsv"), delimiter="\t")), json.load(open("t.json"))
    head, rows, last = lines[0], lines[1:-1], lines[-1]
    assert last[0] == "all" and list(j) == ["rows", "all"] and len(rows) == len(j["rows"]) > 0
    assert seen[0] == head and len(seen) == len(lines) - (not any(last[1:])), (len(seen), len(lines))
    timed = head.index("seconds") if "seconds" in head else None  # differs in each run
    for s, l in zip(seen[1:], lines[1:]):
        assert s[0] == l[0]
        for i, (a, b) in enumerate(zip(s[1:], l[1:]), 1):
            a, b = number(a), number(b)
            assert (a is None) == (b is None) and (a is None or i == timed or abs(a - b) <= 1e-5 * abs(b)), (s, l)
    for l, r in zip(rows, j["rows"]):
        assert list(r) == head and r[head[0]] == l[0]
        for n, v in zip(head[1:], l[1:]):
            assert n == "seconds" or r[n] == number(v), (r, l)
    assert list(j["all"]) == head[1:] and [j["all"][n] for n in head[1:]] == [number(v) for v in last[1:]]
    columns = {n: [r[n] for r in j["rows"] if r[n] is not None] for n in head[1:]}
    found = set()
    for n, v in j["all"].items():
        x = columns[n]
        if v is None:
            continue
        of = {
            "sum": sum(x),
            "most": max(x),
            "least": min(x),
            "mean": math.exp(sum(map(math.log, y)) / len(y)) if (y := [c for c in x if c > 0]) else None,
        }
        found |= {k for k, y in of.items() if y is not None and abs(y - v) <= 1e-12 * abs(v)}
        assert any(y is not None and abs(y - v) <= 1e-12 * abs(v) for y in of.values()), (n, v, of)
    assert kind in found or kind == "none", found


def tokens(path):
    with create(path, "tokens") as f:
        d = f.create_dataset("tokens", data=np.random.default_rng(1).integers(3, 61, 300).astype("i4"))
        d.attrs["bos_id"], d.attrs["add_bos"] = 1, 1


def without_table():
    print(json.load(open("none.json")))


def rows_kept():
    a, b = json.load(open("whole.json")), json.load(open("resumed.json"))
    for r in a["rows"] + b["rows"]:
        del r["seconds"]
    assert a == b


def json_name():
    json.load(open(".json"))["rows"]
