#!/usr/bin/env python3
"""Draw the images and write the questions of the two small vision-language models.

An image is 64 x 64 pixels of RGB, drawn with numpy alone.  It has a plain grey ground and noise in
some pixels.  It shows discs, squares, crosses and rings in five colours, and signs: 15 letters and
5 digits of 5 x 7 dots (the table GLYPHS).  An episode is one image, or two, with questions and their
answers.  The tasks:

  easy  glyph   one large sign                           which sign of four
        colour  one shape, or two                        which colour of four
        count   1 to 3 equal shapes                      how many
        side    two shapes                               which is left, right, on top, below
        where   one shape                                which quarter
        pair    two images of one shape                  which shows a shape
  hard  string  3 or 4 small signs in noise              which string of four
        faint   one small sign of little contrast        which sign of four
        many    4 to 9 equal shapes among others         how many, of four
        more    two images of many shapes                which has more
        which   two images of two small signs in noise   which shows a sign

All random numbers are generated from one seed.  The streams of training, held-out questions and
calibration are different children of it.  train.py compares the images that it draws with every
held-out image.

Usage:
  python3 draw.py [--seed 1811] [--questions 48] [--out .]
writes questions.jsonl with the folder pictures (held out) and calibration.jsonl with the folder
calibration.  Each line is a JSON object with task, context, choices, gold and images (names of PNG
files).  <image> marks the place of an image in the context.
"""
import argparse
import hashlib
import json
import os
import struct
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
MOST = 10  # largest number of things of one kind and colour in an image, plus 1
EASY = ("glyph", "colour", "count", "side", "where", "pair")
HARD = ("string", "faint", "many", "more", "which")
INTROS = ("Look: ", "Picture: ", "Here is a picture: ", "See ")
ROWS, COLUMNS = np.mgrid[0:SIZE, 0:SIZE]

# ---------------------------------------------------------------- drawing


class Picture:
    """An image: pixels [64, 64, 3] uint8, and things: the class (from 1), row and column of each centre."""

    def __init__(self, rng):
        self.ground = int(rng.integers(15, 75))
        self.pixels = np.full((SIZE, SIZE, 3), self.ground, np.uint8)
        self.things = []
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
        self.things.append((1 + len(SIGNS) + SHAPES.index(kind) * len(COLOURS) + list(COLOURS).index(colour),
                            row, column))

    def sign(self, c, row, column, scale, value):
        """Draw the sign with its upper left dot at (row, column)."""
        mask = np.repeat(np.repeat(DOTS[c], scale, 0), scale, 1)
        h, w = mask.shape
        self.pixels[row:row + h, column:column + w][mask] = value
        self.things.append((1 + SIGNS.index(c), row + h // 2, column + w // 2))

    def free(self, rng, radius, tries=200):
        """Return a free centre for one more shape of this radius, or None."""
        for _ in range(tries):
            row, column = (int(v) for v in rng.integers(radius + 1, SIZE - radius - 1, 2))
            if all((row - a) ** 2 + (column - b) ** 2 > (radius + c + 2) ** 2 and
                   (row // PATCH, column // PATCH) != (a // PATCH, b // PATCH) for a, b, c in self.placed):
                return row, column
        return None

    def noise(self, rng, share, values=NOISE):
        mask = rng.random((SIZE, SIZE)) < share
        self.pixels[mask] = values[rng.integers(len(values), size=int(mask.sum()))]

    def labels(self):
        """Return the labels [4, patches] of the thing with its centre in each patch.

        The labels are its class (0: no thing), the number of things of this class in the image, the number of
        things farther left, and the number of things farther up.  -1 means no label."""
        side = SIZE // PATCH
        out = np.full((4, side * side), -1, np.int64)
        out[0] = 0
        for kind, row, column in self.things:
            few = len(self.things) < 5
            out[:, row // PATCH * side + column // PATCH] = (
                kind, sum(t[0] == kind for t in self.things),
                sum(t[2] < column for t in self.things) if few else -1,
                sum(t[1] < row for t in self.things) if few else -1)
        return out

    def digest(self):
        return hashlib.blake2b(self.pixels.tobytes(), digest_size=16).digest()


def pick(rng, items, count=None):
    if count is None:
        return items[int(rng.integers(len(items)))]
    return [items[int(i)] for i in rng.permutation(len(items))[:count]]


def corner(rng, height, width):
    """Return the upper left corner for a sign of this size: multiples of 4 pixels, half a patch."""
    return 4 * int(rng.integers((SIZE - height) // 4 + 1)), 4 * int(rng.integers((SIZE - width) // 4 + 1))


def options(rng, answer, others, count):
    """Return the answer and count - 1 of the others, in random order."""
    choices = [answer] + pick(rng, [o for o in others if o != answer], count - 1)
    return pick(rng, choices, len(choices))


# --------------------------------------------------------------- episodes
# The arguments of each function are (rng, level), with level from 0 (easy) to 1 (hard).
# Each function returns (images, questions).  A question is (task, text, answer, choices).
# The first question belongs to the task of the episode.

def write_sign(rng, level):
    picture, c = Picture(rng), pick(rng, SIGNS)
    scale = int(rng.integers(3, 5))
    picture.sign(c, *corner(rng, 7 * scale, 5 * scale), scale, COLOURS[pick(rng, list(COLOURS))])
    picture.noise(rng, 0.05 * level)
    return [picture], [("glyph", "what is written?", c, options(rng, c, SIGNS, 4))]


def write_faint(rng, level):
    picture, c = Picture(rng), pick(rng, SIGNS)
    step = int(70 - 45 * level)
    picture.sign(c, *corner(rng, 14, 10), 2, picture.ground + step)
    grey = np.array([picture.ground + v for v in (-10, step // 2, step, step + 30)], np.uint8)
    picture.noise(rng, 0.04 + 0.26 * level, np.repeat(grey[:, None], 3, 1))
    return [picture], [("faint", "what is written?", c, options(rng, c, SIGNS, 4))]


def lay_string(rng, level, count):
    picture, text = Picture(rng), "".join(pick(rng, SIGNS) for _ in range(count))
    row, column = corner(rng, 14, 12 * count - 2)
    for i, c in enumerate(text):
        picture.sign(c, row, column + 12 * i, 2, COLOURS[pick(rng, list(COLOURS))])
    picture.noise(rng, 0.02 + 0.28 * level)
    return picture, text


def write_string(rng, level):
    picture, text = lay_string(rng, level, int(rng.integers(3, 5)) if level > 0.2 else int(rng.integers(2, 4)))
    others = []
    while len(others) < 3:  # a wrong choice differs from the string in one sign
        i = int(rng.integers(len(text)))
        other = text[:i] + pick(rng, SIGNS) + text[i + 1:]
        if other != text and other not in others:
            others.append(other)
    questions = [("string", "what is written?", text, options(rng, text, others, 4))]
    for i in pick(rng, range(len(text)), 2):
        questions.append(("sign", f"what is sign {i + 1}?", text[i], options(rng, text[i], SIGNS, 4)))
    return [picture], questions


QUARTERS = [f"{a} {b}" for a in ("top", "bottom") for b in ("left", "right")]


def ask_where(rng, kind, row, column):
    quarter = QUARTERS[2 * (row > SIZE // 2) + (column > SIZE // 2)]
    return "where", f"where is the {kind}?", quarter, options(rng, quarter, QUARTERS, 4)


def ask_colour(rng, kind, colour):
    return "colour", f"what colour is the {kind}?", colour, options(rng, colour, list(COLOURS), 4)


def lay_one(rng, level, kind):
    """Draw one shape away from the middle lines; return the image and the shape's colour, row and column."""
    picture, colour = Picture(rng), pick(rng, list(COLOURS))
    radius, at = int(rng.integers(5, 12)), [SIZE // 2, SIZE // 2]
    for i in range(2):
        while abs(at[i] - SIZE // 2) < 12 - 8 * level:
            at[i] = int(rng.integers(radius + 1, SIZE - radius - 1))
    picture.shape(kind, colour, *at, radius)
    picture.noise(rng, 0.05 * level)
    return picture, colour, *at


def one_shape(rng, level):
    kind = pick(rng, SHAPES)
    picture, colour, *at = lay_one(rng, level, kind)
    return [picture], [ask_where(rng, kind, *at), ask_colour(rng, kind, colour),
                       ("shape", "what is shown?", kind, options(rng, kind, SHAPES, 4))]


def two_ones(rng, level):
    kinds, ranks = pick(rng, SHAPES, 2), ("first", "second")
    laid = [lay_one(rng, level, kind) for kind in kinds]
    shown = int(rng.integers(2))
    questions = [("pair", f"which shows the {kinds[i]}?", ranks[i], options(rng, ranks[i], ranks, 2))
                 for i in (shown, 1 - shown)]
    for kind, rank, (_, colour, *at) in zip(kinds, ranks, laid):
        questions += [ask_where(rng, kind, *at), ask_colour(rng, kind, colour),
                      ("shape", f"what is in the {rank}?", kind, options(rng, kind, SHAPES, 4))]
    return [p for p, *_ in laid], questions


def two_shapes(rng, level):
    picture, kinds = Picture(rng), pick(rng, SHAPES, 2)
    colours = pick(rng, list(COLOURS), 2)
    across, apart = bool(rng.integers(2)), 22 - 14 * level
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
    for way, words, far in ((across, ("on the left", "on the right"), dx), (not across, ("on top", "below"), dy)):
        flip = int(rng.integers(2))
        for i in (flip, 1 - flip):
            answer = kinds[int((far < 0) != i)]
            if abs(far) >= apart:
                questions.append((way, ("side", f"what is {words[i]}?", answer, options(rng, answer, kinds, 2))))
    questions = [q for _, q in sorted(questions, key=lambda q: not q[0])]
    which = int(rng.integers(2))
    for i in (which, 1 - which):
        questions.append(ask_colour(rng, kinds[i], colours[i]))
        if min(abs(v - SIZE // 2) for v in at[i]) >= 4:
            questions.append(ask_where(rng, kinds[i], *at[i]))
    return [picture], questions


def colour_first(rng, level):
    """Return an episode of one_shape or two_shapes with the questions about colours first."""
    pictures, questions = pick(rng, (one_shape, two_shapes))(rng, level)
    return pictures, sorted(questions, key=lambda q: q[0] != "colour")


def lay_crowd(rng, level, count, others, small, kind=None):
    """Draw count shapes of one kind and colour among others of other colours.

    Without enough room, fewer others are drawn.  Return the image, the kind, and the number of shapes of each
    colour; the colour of the count shapes is the first."""
    picture, kind = Picture(rng), kind or pick(rng, SHAPES)
    colour, *rest = pick(rng, list(COLOURS), 3)
    drawn = {colour: count}
    for i in range(count + others):
        radius = int(rng.integers(3, 6) if small else rng.integers(5, 9))
        at = picture.free(rng, radius)
        while at is None and i < count:
            radius = max(3, radius - 1)
            at = picture.free(rng, radius, 2000)
        if at:
            shown = colour if i < count else pick(rng, rest)
            drawn[shown] = drawn.get(shown, 0) + (i >= count)
            picture.shape(kind, shown, *at, radius)
    picture.noise(rng, 0.05 * level)
    return picture, kind, drawn


def count_few(rng, level):
    count = int(rng.integers(1, 4))
    picture, kind, drawn = lay_crowd(rng, level, count, 0, False)
    answer = str(count)
    return [picture], [("count", f"how many {PLURALS[kind]}?", answer, options(rng, answer, "123", 3)),
                       ask_colour(rng, PLURALS[kind], *drawn)]


def count_many(rng, level):
    count, others = int(rng.integers(4, 10)), int(rng.integers(0, 2 + int(3 * level)))
    picture, kind, drawn = lay_crowd(rng, level, count, others, True)
    questions = []
    for colour, count in drawn.items():
        low = min(max(1, count - int(rng.integers(4))), 6)
        near = [str(n) for n in range(low, low + 4)]
        questions.append(("many", f"how many {colour} {PLURALS[kind]}?", str(count),
                          options(rng, str(count), near, 4)))
    return [picture], questions


def two_crowds(rng, level):
    kind = pick(rng, SHAPES)
    least = int(rng.integers(1 + int(3 * level), 8))
    counts = [least, min(9, least + 1 + int(rng.integers(0, 3 - int(1.5 * level))))]
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
    ranks, questions = ("first", "second"), []
    for i in (answer, 1 - answer):
        questions.append(("which", f"which shows {pick(rng, laid[i][1])}?", ranks[i], options(rng, ranks[i], ranks, 2)))
    for i, name in enumerate(ranks):
        questions.append(("read", f"what is in the {name}?", laid[i][1], [laid[i][1]]))
    return [p for p, _ in laid], questions


EPISODES = {"glyph": write_sign, "colour": colour_first, "count": count_few, "side": two_shapes, "where": one_shape,
            "pair": two_ones, "string": write_string, "faint": write_faint, "many": count_many, "more": two_crowds,
            "which": two_strings}


def introduction(rng, pictures):
    """Return the texts before and between the images.  A line feed follows each image."""
    return (pick(rng, INTROS),) if pictures == 1 else ("First: ", "Second: ")


def context(intro, question):
    return "".join(f"{text}<image>\n" for text in intro) + f"Q: {question}\nA:"


def stream(seed, child):
    return np.random.default_rng(np.random.SeedSequence([seed, child]))


TRAINING, HELD_OUT, CALIBRATION, TRIAL = range(4)


# ------------------------------------------------------------------ files

def png(pixels):
    """Return an RGB PNG file of 8 bits: all rows with the filter "up" or with none, whichever is smaller."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width, _ = pixels.shape
    flat = pixels.reshape(height, -1)
    up = np.vstack([flat[:1], flat[1:] - flat[:-1]])
    packed = min((zlib.compress(np.hstack([np.full((height, 1), kind, np.uint8), rows]).tobytes(), 9)
                  for kind, rows in ((0, flat), (2, up))), key=len)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", packed) + chunk(b"IEND", b""))


def ask(seed, child, count, levels, folder=""):
    """Return count questions of each task, task by task, as (JSON object, images)."""
    rng, out = stream(seed, child), []
    for task in EASY + HARD:
        for i in range(count):
            pictures, questions = EPISODES[task](rng, rng.uniform(*levels[task]))
            _, text, answer, choices = questions[0]
            names = [os.path.join(folder, f"{task}-{i:02d}{'ab'[j] if len(pictures) > 1 else ''}.png")
                     for j in range(len(pictures))]
            out.append(({"task": task, "context": context(introduction(rng, len(pictures)), text),
                         "choices": [" " + c for c in choices], "gold": choices.index(answer), "images": names},
                        pictures))
    return out


LEVELS = dict.fromkeys(EASY, (0.0, 0.4)) | dict.fromkeys(HARD, (0.4, 1.0))


def write(out, name, rows):
    with open(os.path.join(out, name), "w") as f:
        for row, _ in rows:
            f.write(json.dumps(row) + "\n")
    for row, pictures in rows:
        for file, picture in zip(row["images"], pictures):
            os.makedirs(os.path.join(out, os.path.dirname(file)), exist_ok=True)
            with open(os.path.join(out, file), "wb") as f:
                f.write(png(picture.pixels))


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    ap = argparse.ArgumentParser(description="Write the held-out and the calibration questions; see the file's head.")
    ap.add_argument("--seed", type=int, default=1811)
    ap.add_argument("--questions", type=int, default=48, help="of each task, held out")
    ap.add_argument("--calibration", type=int, default=12, help="of each task, for calibration")
    ap.add_argument("--out", default=here)
    a = ap.parse_args()
    held = ask(a.seed, HELD_OUT, a.questions, LEVELS, "pictures")
    seen = ask(a.seed, CALIBRATION, a.calibration, LEVELS, "calibration")
    digests = [{p.digest() for _, pictures in rows for p in pictures} for rows in (held, seen)]
    if digests[0] & digests[1]:
        raise SystemExit("a picture for calibration is a held-out one: take another seed")
    write(a.out, "questions.jsonl", held)
    write(a.out, "calibration.jsonl", seen)


if __name__ == "__main__":
    main()
