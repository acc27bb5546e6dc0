"""eval-compare.py -- Python of tests/eval-compare.t"""

import csv
import json

import h5py
import numpy as np

from lib.h5 import copied, create

NUMBERS = "mean", "se", "df", "se_draws", "se_windows"


def record(path, window, nll, target=None):
    with create(path, "result") as f:
        f["target"] = np.array(range(len(nll)) if target is None else target, "i4")
        f["nll_of_target"] = np.array(nll, "f8")
        if window is not None:
            f["window"] = np.array(window, "i4")


TASKS = np.array(["arc_easy", "arc_challenge", "piqa"])[np.arange(40) % 3]


def questions(path, acc, digest="same", tasks=None):
    with create(path, "result") as f:
        if digest:
            f.attrs["questions_sha256"] = digest
        if tasks is not None:
            f["question/task"] = tasks
        f["question/acc"] = np.array(acc, "f8")
        f["question/acc_norm"] = 1 - np.array(acc, "f8")


def make():
    r = np.random.default_rng(1)
    for path, n in ("t.h5", 200), ("c.h5", 3000):
        with create(path, "tokens") as f:
            d = f.create_dataset("tokens", data=r.integers(3, 60, n).astype("i4"))
            d.attrs["bos_id"], d.attrs["add_bos"], d.attrs["vocab"] = 1, 1, 61
    w = [0, 0, 1, 1, 2, 2]
    record("hand-1.h5", w, [0, 2, 1, 3, 3, 3])
    record("hand-2.h5", w, [2, 2, 4, 4, 7, 5])
    record("zero.h5", w, np.zeros(6))
    record("other.h5", w, np.zeros(6), range(1, 7))
    record("moved.h5", [0, 0, 0, 1, 2, 2], np.zeros(6))
    record("short.h5", w[:5], np.zeros(5))
    record("back.h5", [0, 1, 0, 1, 2, 2], np.zeros(6))
    record("old.h5", None, np.zeros(6))
    for k in 1, 2, 3:
        # strings of fixed and of variable length
        questions("right-%d.h5" % k, r.integers(0, 2, 40), tasks=TASKS.astype("S"))
        questions("base-%d.h5" % k, r.integers(0, 2, 40), tasks=TASKS.astype("O"))
    questions("less.h5", np.zeros(39))
    questions("others.h5", np.zeros(40), "other")
    questions("unknown.h5", np.zeros(40), None)
    questions("few-tasks.h5", np.zeros(40), tasks=TASKS[:39].astype("S"))
    questions("numbers.h5", np.zeros(40), tasks=np.arange(40))


def generated(calibrated=None):
    for k in 1, 2:
        with copied("right-1.h5", "gen-%d.h5" % k) as f:
            f["token/id"] = np.arange(7, dtype="i4")
            if calibrated:
                f.attrs["calibration"] = h5py.File("full-1.h5").attrs["calibration"]


def inherited():
    """full-1, full-2 and a method that no draw changes, of a model that is calibrated itself"""
    first = "0" * 64 + " 0 20"
    for source, name in ("full-1.h5", "of-1.h5"), ("full-2.h5", "of-2.h5"), ("none-1.h5", "of-rtn.h5"):
        with copied(source, name) as f:
            own = f.attrs["calibration"]
            f.attrs["calibration"] = first if name == "of-rtn.h5" else first + "\n" + own


def another():
    with copied("itself.h5", "another.h5") as f:
        f["nll_of_reference"][0] += 1


def not_finite():
    for name, record in ("nll_of_target", "plain"), ("kl", "itself"):
        with copied(record + ".h5", "nan-%s.h5" % record) as f:
            f[name][1] = np.nan


def read(order, k, *names):
    with h5py.File("%s-%d.h5" % (order, k)) as f:
        return [f[name][...] for name in names]


def lengths():
    n = np.bincount(read("full", 1, "window")[0])
    print(n[0], n[-1])


def layout(d, n):
    """The layout of d [draws, windows], whose windows have n targets, by dense matrices."""
    a, b = d.shape
    mean = (d * n).sum() / (a * n.sum())
    z = ((d - mean) * n * b / n.sum()).ravel()
    of_rows, of_columns = np.full((a, a), 1 / a), np.full((b, b), 1 / b)
    rows, columns = np.kron(np.eye(a), of_columns) @ z, np.kron(of_rows, np.eye(b)) @ z
    fa, fb = a - 1, b - 1
    A, B = rows @ rows / fa, columns @ columns / fb
    R = ((z - rows - columns) ** 2).sum() / (fa * fb)
    total = A + B - R
    df = max(1, total**2 / (A**2 / fa + B**2 / fb + R**2 / (fa * fb)))
    variance, df = max((A, fa), (B, fb), (total, df))
    return {
        "mean": mean,
        "se": (variance / (a * b)) ** 0.5,
        "df": df,
        "se_draws": (A / (a * b)) ** 0.5,
        "se_windows": (B / (a * b)) ** 0.5,
    }


def expected():
    window, reference = read("full", 1, "window", "nll_of_reference")
    n = np.bincount(window)

    def of(function):
        return layout(np.array([np.bincount(window, function(k)) / n for k in range(1, 6)]), n)

    def number(order, name):
        return lambda k: read(order, k, name)[0]

    nll, before = number("full", "nll_of_target"), number("none", "nll_of_target")
    kl, kl_before = number("full", "kl"), number("none", "kl")
    return {
        "nll": of(nll),
        "nll_rise": of(lambda k: nll(k) - reference),
        "kl": of(kl),
        "nll_delta": of(lambda k: nll(k) - before(k)),
        "kl_delta": of(lambda k: kl(k) - kl_before(k)),
    }


def questions_as(first="right", second="base", begin=""):
    def of(name):
        return np.array([read(name, k, "question/acc")[0][some] for k in (1, 2, 3)])

    some = np.char.startswith(TASKS, begin)
    right, base, n = of(first), of(second), np.ones(some.sum())
    with open("a") as f:
        rows = {r["number"]: r for r in csv.DictReader(f, delimiter="\t")}
    want = {"acc": right, "acc_delta": right - base, "acc_norm": 1 - right, "acc_norm_delta": base - right}
    for name, d in want.items():
        for column, w in layout(d, n).items():
            assert abs(float(rows[name][column]) - w) <= 1e-5 * abs(w), (name, column)
        assert rows[name]["windows"] == str(some.sum()) and rows[name]["draws"] == "3"


def student_tail(t, df):
    """P(|T| > t), by the integral of the density over t = √df · tan(u)."""
    edge = np.arctan(t / df**0.5)
    u = np.linspace(0, np.pi / 2, 2_000_001)
    y = np.cos(u) ** (df - 1)
    whole = np.trapezoid(y, u) if hasattr(np, "trapezoid") else np.trapz(y, u)
    inside = np.linspace(0, edge, 2_000_001)
    y = np.cos(inside) ** (df - 1)
    part = np.trapezoid(y, inside) if hasattr(np, "trapezoid") else np.trapz(y, inside)
    return 1 - part / whole


def compare(rows, digits):
    want = expected()
    assert [r["number"] for r in rows] == list(want)
    for r in rows:
        for name in NUMBERS:
            w = want[r["number"]][name]
            assert abs(float(r[name]) - w) <= digits * abs(w) + 1e-12, (r["number"], name, r[name], w)
        tail = student_tail(float(r["quantile"]), float(r["df"]))
        assert abs(tail - 0.05) < 2e-4, (r["number"], tail)
        if r["separated"] != "-":
            beyond = abs(float(r["mean"])) > float(r["quantile"]) * float(r["se"])
            assert r["separated"] == ("yes" if beyond else "no")
        assert int(r["draws"]) == 5 and int(r["windows"]) == len(np.bincount(read("full", 1, "window")[0]))


def numbers():
    with open("a") as f:
        compare(list(csv.DictReader(f, delimiter="\t")), 1e-5)


def as_json():
    with open("j") as f:
        compare(json.load(f)["rows"], 1e-9)


def result():
    with h5py.File("r.h5") as f:
        assert f.attrs["ptq_kind"] in ("result", b"result")
        names = [n.decode() for n in f["number"][...]]
        want = expected()
        assert names == list(want)
        for i, name in enumerate(names):
            for column in NUMBERS:
                w = want[name][column]
                assert abs(f[column][i] - w) <= 1e-9 * abs(w) + 1e-12
        assert "history:record10" in f.attrs and "history:record11" not in f.attrs
