#!/usr/bin/env python3
"""Draw the pictures and ask the questions of the two small vision-language models.

A picture is 64 x 64 pixels of RGB, drawn with numpy alone: discs, squares,
crosses and rings in five colours, and signs (15 letters and 5 digits of 5 x 7
dots, the table GLYPHS) on a plain grey ground, with some pixels replaced by
noise.  An episode is one picture, or two, with questions whose answers the
drawing knows.  The tasks:

  easy  glyph   one large sign                           which sign of four
        colour  one shape, or two                        which colour of four
        count   1 to 3 equal shapes                      how many
        side    two shapes                               which is left, right, on top, below
        where   one shape                                which quarter
  hard  string  3 or 4 small signs in noise              which string of four
        faint   one small sign of little contrast        which sign of four
        many    4 to 9 equal shapes among others         how many, of four
        more    two pictures of many shapes              which has more
        which   two pictures of two small signs in noise which shows a sign

Everything follows from a seed.  The streams of training, held-out questions and
calibration are different children of it, and what is drawn for training is
compared with every held-out picture (see train.py).

Usage:
  python3 draw.py [--seed 1811] [--questions 64] [--out .]
writes questions.jsonl and pictures.tar.gz (held out), calibration.jsonl and
calibration.tar.gz: one JSON object a line with task, context, choices, gold and
images, the names of PNG files in the archive; <image> stands in the context
where a picture stands.
"""
import argparse
import gzip
import hashlib
import io
import json
import os
import struct
import tarfile
import zlib

import numpy as np

SIZE, PATCH = 64, 8
COLOURS = {"red": (220, 50, 40), "green": (50, 180, 70), "blue": (60, 90, 230), "yellow": (235, 210, 50),
           "white": (240, 240, 240)}
SHAPES = ("disc", "square", "cross", "ring")
PLURALS = {"disc": "discs", "square": "squares", "cross": "crosses", "ring": "rings"}
NOISE = np.array(list(COLOURS.values()) + [(20, 20, 20), (100, 100, 100), (160, 160, 160)], np.uint8)
GLYPHS = {  # rows of five dots from the top, one number a row
    "A": (14, 17, 17, 31, 17, 17, 17), "C": (14, 17, 16, 16, 16, 17, 14), "E": (31, 16, 16, 30, 16, 16, 31),
    "F": (31, 16, 16, 30, 16, 16, 16), "H": (17, 17, 17, 31, 17, 17, 17), "J": (7, 2, 2, 2, 2, 18, 12),
    "K": (17, 18, 20, 24, 20, 18, 17), "L": (16, 16, 16, 16, 16, 16, 31), "P": (30, 17, 17, 30, 16, 16, 16),
    "R": (30, 17, 17, 30, 20, 18, 17), "T": (31, 4, 4, 4, 4, 4, 4), "U": (17, 17, 17, 17, 17, 17, 14),
    "X": (17, 17, 10, 4, 10, 17, 17), "Y": (17, 17, 10, 4, 4, 4, 4), "Z": (31, 1, 2, 4, 8, 16, 31),
    "2": (14, 17, 1, 2, 4, 8, 31), "3": (30, 1, 1, 14, 1, 1, 30), "4": (2, 6, 10, 18, 31, 2, 2),
    "6": (14, 16, 16, 30, 17, 17, 14), "7": (31, 1, 2, 4, 4, 8, 8),
}
SIGNS = "".join(GLYPHS)
DOTS = {c: np.array([[row >> (4 - i) & 1 for i in range(5)] for row in rows], bool) for c, rows in GLYPHS.items()}
CLASSES = 1 + len(SIGNS) + len(SHAPES) * len(COLOURS)
EASY = ("glyph", "colour", "count", "side", "where")
HARD = ("string", "faint", "many", "more", "which")
INTROS = ("Look: ", "Picture: ", "Here is a picture: ", "See ")
ROWS, COLUMNS = np.mgrid[0:SIZE, 0:SIZE]

# ---------------------------------------------------------------- drawing


class Picture:
    """pixels [64, 64, 3] uint8, and label [8, 8]: what has its centre in the patch, 0 for nothing."""

    def __init__(self, rng):
        self.ground = int(rng.integers(15, 75))
        self.pixels = np.full((SIZE, SIZE, 3), self.ground, np.uint8)
        self.label = np.zeros((SIZE // PATCH, SIZE // PATCH), np.int64)
        self.placed = []  # row, column, radius

    def shape(self, kind, colour, row, column, radius):
        dy, dx = abs(ROWS - row), abs(COLUMNS - column)
        if kind == "square":
            mask = np.maximum(dy, dx) <= radius - 1
        elif kind == "cross":
            mask = (np.minimum(dy, dx) <= radius // 4) & (np.maximum(dy, dx) <= radius)
        else:
            square = dy * dy + dx * dx
            mask = square <= radius * radius
            if kind == "ring":
                mask &= square > (radius - max(2, radius // 3)) ** 2
        self.pixels[mask] = COLOURS[colour]
        self.placed.append((row, column, radius))
        self.label[row // PATCH, column // PATCH] = (1 + len(SIGNS) + SHAPES.index(kind) * len(COLOURS)
                                                     + list(COLOURS).index(colour))

    def sign(self, c, row, column, scale, value):
        """The sign with its upper left dot at (row, column)."""
        mask = np.repeat(np.repeat(DOTS[c], scale, 0), scale, 1)
        h, w = mask.shape
        self.pixels[row:row + h, column:column + w][mask] = value
        self.label[(row + h // 2) // PATCH, (column + w // 2) // PATCH] = 1 + SIGNS.index(c)

    def free(self, rng, radius, tries=200):
        """A centre for one more shape of this radius, or nothing."""
        for _ in range(tries):
            row, column = (int(v) for v in rng.integers(radius + 1, SIZE - radius - 1, 2))
            if all((row - a) ** 2 + (column - b) ** 2 > (radius + c + 2) ** 2 and
                   (row // PATCH, column // PATCH) != (a // PATCH, b // PATCH) for a, b, c in self.placed):
                return row, column
        return None

    def noise(self, rng, share, values=NOISE):
        mask = rng.random((SIZE, SIZE)) < share
        self.pixels[mask] = values[rng.integers(len(values), size=int(mask.sum()))]

    def digest(self):
        return hashlib.blake2b(self.pixels.tobytes(), digest_size=16).digest()


def pick(rng, items, count=None):
    if count is None:
        return items[int(rng.integers(len(items)))]
    return [items[int(i)] for i in rng.permutation(len(items))[:count]]


def corner(rng, height, width):
    """Where a sign of this size begins: a multiple of 4 pixels, half a patch."""
    return 4 * int(rng.integers((SIZE - height) // 4 + 1)), 4 * int(rng.integers((SIZE - width) // 4 + 1))


def options(rng, answer, others, count):
    """The answer and count - 1 of the others, in random order."""
    choices = [answer] + pick(rng, [o for o in others if o != answer], count - 1)
    return pick(rng, choices, len(choices))


# --------------------------------------------------------------- episodes
# Each takes (rng, level) with level 0 easy to 1 hard and returns (pictures, questions);
# a question is (task, text, answer, choices), the first one that of the episode's task.

def write_sign(rng, level):
    picture, c = Picture(rng), pick(rng, SIGNS)
    scale = int(rng.integers(3, 5))
    picture.sign(c, *corner(rng, 7 * scale, 5 * scale), scale, COLOURS[pick(rng, list(COLOURS))])
    picture.noise(rng, 0.05 * level)
    return [picture], [("glyph", "what is written?", c, options(rng, c, SIGNS, 4))]


def write_faint(rng, level):
    picture, c = Picture(rng), pick(rng, SIGNS)
    step = int(90 - 50 * level)
    picture.sign(c, *corner(rng, 14, 10), 2, picture.ground + step)
    grey = np.array([picture.ground + v for v in (-10, step // 2, step, step + 30)], np.uint8)
    picture.noise(rng, 0.03 + 0.22 * level, np.repeat(grey[:, None], 3, 1))
    return [picture], [("faint", "what is written?", c, options(rng, c, SIGNS, 4))]


def lay_string(rng, level, count):
    picture, text = Picture(rng), "".join(pick(rng, SIGNS) for _ in range(count))
    row, column = corner(rng, 14, 12 * count - 2)
    for i, c in enumerate(text):
        picture.sign(c, row, column + 12 * i, 2, COLOURS[pick(rng, list(COLOURS))])
    picture.noise(rng, 0.02 + 0.23 * level)
    return picture, text


def write_string(rng, level):
    picture, text = lay_string(rng, level, int(rng.integers(3, 5)) if level > 0.2 else int(rng.integers(2, 4)))
    others = []
    while len(others) < 3:  # one sign of the string is another one
        i = int(rng.integers(len(text)))
        other = text[:i] + pick(rng, SIGNS) + text[i + 1:]
        if other != text and other not in others:
            others.append(other)
    questions = [("string", "what is written?", text, options(rng, text, others, 4))]
    for i in pick(rng, range(len(text)), 2):
        questions.append(("sign", f"what is sign {i + 1}?", text[i], options(rng, text[i], SIGNS, 4)))
    return [picture], questions


def one_shape(rng, level):
    picture, kind, colour = Picture(rng), pick(rng, SHAPES), pick(rng, list(COLOURS))
    radius = int(rng.integers(5, 12))
    rows = [int(v) for v in rng.integers(radius + 1, SIZE - radius - 1, 2)]
    for i in range(2):  # not on the middle lines
        while abs(rows[i] - SIZE // 2) < 6 - 3 * level:
            rows[i] = int(rng.integers(radius + 1, SIZE - radius - 1))
    picture.shape(kind, colour, rows[0], rows[1], radius)
    picture.noise(rng, 0.05 * level)
    quarters = [f"{a} {b}" for a in ("top", "bottom") for b in ("left", "right")]
    quarter = quarters[2 * (rows[0] > SIZE // 2) + (rows[1] > SIZE // 2)]
    return [picture], [("where", f"where is the {kind}?", quarter, options(rng, quarter, quarters, 4)),
                       ("colour", f"what colour is the {kind}?", colour, options(rng, colour, list(COLOURS), 4)),
                       ("shape", "what is shown?", kind, options(rng, kind, SHAPES, 4))]


def two_shapes(rng, level):
    picture, kinds = Picture(rng), pick(rng, SHAPES, 2)
    colours = pick(rng, list(COLOURS), 2)
    across, apart = bool(rng.integers(2)), 16 - 10 * level
    radius = [int(v) for v in rng.integers(5, 9, 2)]
    while True:
        at = [[int(v) for v in rng.integers(r + 1, SIZE - r - 1, 2)] for r in radius]
        dy, dx = at[1][0] - at[0][0], at[1][1] - at[0][1]
        if abs(dx if across else dy) >= apart and dy * dy + dx * dx > (sum(radius) + 2) ** 2:
            break
    for k, c, (row, column), r in zip(kinds, colours, at, radius):
        picture.shape(k, c, row, column, r)
    picture.noise(rng, 0.05 * level)
    questions = []
    for way, low, high, far in ((across, "on the left", "on the right", dx), (not across, "on top", "below", dy)):
        if way or abs(far) >= apart:
            flip = int(rng.integers(2))
            answer = kinds[int((far < 0) != flip)]
            questions.append((way, ("side", f"what is {(low, high)[flip]}?", answer, options(rng, answer, kinds, 2))))
    questions = [q for _, q in sorted(questions, key=lambda q: not q[0])]
    which = int(rng.integers(2))
    questions.append(("colour", f"what colour is the {kinds[which]}?", colours[which],
                      options(rng, colours[which], list(COLOURS), 4)))
    return [picture], questions


def colour_first(rng, level):
    """one_shape or two_shapes with the question for the colour in front."""
    pictures, questions = pick(rng, (one_shape, two_shapes))(rng, level)
    return pictures, sorted(questions, key=lambda q: q[0] != "colour")


def lay_crowd(rng, level, count, others, small, kind=None):
    """count shapes of one kind and colour among others of other colours; fewer others where there is no room."""
    picture, kind = Picture(rng), kind or pick(rng, SHAPES)
    colour, *rest = pick(rng, list(COLOURS), 3)
    for i in range(count + others):
        radius = int(rng.integers(3, 6) if small else rng.integers(5, 9))
        at = picture.free(rng, radius)
        while at is None and i < count:
            radius = max(3, radius - 1)
            at = picture.free(rng, radius, 2000)
        if at:
            picture.shape(kind, colour if i < count else pick(rng, rest), *at, radius)
    picture.noise(rng, 0.05 * level)
    return picture, kind, colour


def count_few(rng, level):
    count = int(rng.integers(1, 4))
    picture, kind, _ = lay_crowd(rng, level, count, 0, False)
    answer = str(count)
    return [picture], [("count", f"how many {PLURALS[kind]}?", answer, options(rng, answer, "123", 3))]


def count_many(rng, level):
    count, others = int(rng.integers(4, 10)), int(rng.integers(0, 2 + int(3 * level)))
    picture, kind, colour = lay_crowd(rng, level, count, others, True)
    answer = str(count)
    low = max(2, min(count - int(rng.integers(4)), 7))
    near = [str(n) for n in range(low, min(low + 4, 10))]
    near = near if len(near) == 4 else [str(n) for n in range(6, 10)]
    questions = [("many", f"how many {colour} {PLURALS[kind]}?", answer, options(rng, answer, near, 4))]
    return [picture], questions


def two_crowds(rng, level):
    kind = pick(rng, SHAPES)
    least = int(rng.integers(1, 8))
    counts = [least, min(9, least + 1 + int(rng.integers(0, 4 - int(2 * level))))]
    counts = counts[::-1] if rng.integers(2) else counts
    pictures = [lay_crowd(rng, level, n, 0, True, kind)[0] for n in counts]
    answer = ("first", "second")[int(counts[1] > counts[0])]
    questions = [("more", f"which has more {PLURALS[kind]}?", answer, options(rng, answer, ("first", "second"), 2))]
    for i, name in enumerate(("first", "second")):
        questions.append(("number", f"how many in the {name}?", str(counts[i]), [str(counts[i])]))
    return pictures, questions


def two_strings(rng, level):
    while True:
        laid = [lay_string(rng, level, 2) for _ in range(2)]
        if not set(laid[0][1]) & set(laid[1][1]):
            break
    answer = int(rng.integers(2))
    questions = [("which", f"which shows {pick(rng, laid[answer][1])}?", ("first", "second")[answer],
                  options(rng, ("first", "second")[answer], ("first", "second"), 2))]
    for i, name in enumerate(("first", "second")):
        questions.append(("read", f"what is in the {name}?", laid[i][1], [laid[i][1]]))
    return [p for p, _ in laid], questions


EPISODES = {"glyph": write_sign, "colour": colour_first, "count": count_few, "side": two_shapes, "where": one_shape,
            "string": write_string, "faint": write_faint, "many": count_many, "more": two_crowds,
            "which": two_strings}


def introduction(rng, pictures):
    """The text before and between the pictures, each of which is followed by a line feed."""
    return (pick(rng, INTROS),) if pictures == 1 else ("First: ", "Second: ")


def context(intro, question):
    return "".join(f"{text}<image>\n" for text in intro) + f"Q: {question}\nA:"


def stream(seed, child):
    return np.random.default_rng(np.random.SeedSequence([seed, child]))


TRAINING, HELD_OUT, CALIBRATION, TRIAL = range(4)


# ------------------------------------------------------------------ files

def png(pixels):
    """An RGB PNG file of 8 bits, every row filtered by the one above or not at all, whichever is smaller."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    flat = pixels.reshape(height, -1)
    up = np.vstack([flat[:1], flat[1:] - flat[:-1]])
    packed = min((zlib.compress(np.hstack([np.full((height, 1), kind, np.uint8), rows]).tobytes(), 9)
                  for kind, rows in ((0, flat), (2, up))), key=len)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def ask(seed, child, count, levels):
    """count questions of each task: (JSON object, pictures), task by task."""
    rng, out = stream(seed, child), []
    for task in EASY + HARD:
        for i in range(count):
            pictures, questions = EPISODES[task](rng, rng.uniform(*levels[task]))
            _, text, answer, choices = questions[0]
            names = [f"{task}-{i:02d}{'ab'[j] if len(pictures) > 1 else ''}.png" for j in range(len(pictures))]
            out.append(({"task": task, "context": context(introduction(rng, len(pictures)), text),
                         "choices": [" " + c for c in choices], "gold": choices.index(answer), "images": names},
                        pictures))
    return out


LEVELS = dict.fromkeys(EASY, (0.0, 0.4)) | dict.fromkeys(HARD, (0.4, 1.0))


def write(folder, name, archive, rows):
    with open(os.path.join(folder, name), "w") as f:
        for row, _ in rows:
            f.write(json.dumps(row) + "\n")
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for row, pictures in rows:
            for file, picture in zip(row["images"], pictures):
                data = png(picture.pixels)
                info = tarfile.TarInfo(file)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
    with open(os.path.join(folder, archive), "wb") as f, gzip.GzipFile("", "wb", 9, f, mtime=0) as z:
        z.write(raw.getvalue())


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description="Write the held-out and the calibration questions; see the file's head.")
    ap.add_argument("--seed", type=int, default=1811)
    ap.add_argument("--questions", type=int, default=64, help="of each task, held out")
    ap.add_argument("--calibration", type=int, default=13, help="of each task, for calibration")
    ap.add_argument("--out", default=here)
    a = ap.parse_args()
    write(a.out, "questions.jsonl", "pictures.tar.gz", ask(a.seed, HELD_OUT, a.questions, LEVELS))
    write(a.out, "calibration.jsonl", "calibration.tar.gz", ask(a.seed, CALIBRATION, a.calibration, LEVELS))


if __name__ == "__main__":
    main()
