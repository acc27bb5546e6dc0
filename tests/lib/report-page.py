"""report-page.py -- Python of tests/report-page.t: the contents of the page of pipelines/all.sh"""

import os
import re
from html.parser import HTMLParser
from urllib.parse import unquote

VOID = {"meta", "img", "col", "wbr", "br"}


class Page(HTMLParser):
    """Collects rows of tables, sections, links, ids, and errors of nesting."""

    def __init__(self, path):
        super().__init__()
        self.open, self.bad, self.ids, self.links, self.titles = [], [], [], [], []
        self.rows, self.missing, self.failed = [], [], []
        with open(path, encoding="utf8") as file:
            self.feed(file.read())
        if self.open:
            self.bad.append(f"not closed: {self.open}")

    def handle_starttag(self, tag, pairs):
        if tag == "colgroup":  # a browser adds its end tag
            tag = "col"
        values = dict(pairs)
        if "id" in values:
            self.ids.append(values["id"])
        for name in "href", "src":
            if name in values:
                self.links.append(values[name])
        if tag == "script" or any(name.startswith("on") for name in values):
            self.bad.append("a script")
        if tag == "img" and not values.get("alt"):
            self.bad.append("an image without text")
        if tag == "th" and "scope" not in values:
            self.bad.append("a head without scope")
        if tag == "h3":
            self.titles.append("")
        if tag == "tr":
            self.rows.append((values.get("class"), []))
        if tag in ("td", "th"):
            self.rows[-1][1].append({"text": "", "steps": 0, **values})
        if tag == "li" and self.rows and "tr" in self.open:
            self.rows[-1][1][-1]["steps"] += 1
        if tag not in VOID | {"col"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag == "colgroup":
            return
        if not self.open or self.open.pop() != tag:
            self.bad.append(f"</{tag}> at {self.getpos()}")

    def handle_data(self, data):
        if "h3" in self.open:
            self.titles[-1] += data
        if ("td" in self.open or "th" in self.open) and "details" not in self.open:
            self.rows[-1][1][-1]["text"] += data
        if self.open[-2:] == ["p", "a"] or self.open[-1:] == ["p"]:
            for kind in "Missing", "Failed":
                if data.startswith(kind + ": "):
                    self.kind = kind
            if self.open[-1] == "a" and "header" in self.open:
                (self.missing if self.kind == "Missing" else self.failed).append(data)


def missing(path):
    return " ".join(Page(path).missing)


def failed(path):
    return " ".join(Page(path).failed)


def titles(path):
    return "\n".join(Page(path).titles)


def wrong(path):
    page = Page(path)
    for link in page.links:
        file, _, anchor = link.partition("#")
        if link.startswith("data:"):
            continue
        if re.match(r"\w+:", link):
            page.bad.append(f"{link}: elsewhere")
        elif file and not os.path.exists(os.path.join(os.path.dirname(path), unquote(file))):
            page.bad.append(f"{link}: is not there")
        elif not file and anchor not in page.ids:
            page.bad.append(f"{link}: no such id")
    page.bad += {f"{i}: twice" for i in page.ids if page.ids.count(i) > 1}
    return "\n".join(page.bad)


def numbers(path, table):
    """The differences between each row of TABLE and the row of the page with the same first cell."""
    with open(table, encoding="utf8") as file:
        names, *lines = [line.rstrip("\n").split("\t") for line in file]
    page = Page(path)
    heads = [c["text"].replace(" ± se", "") for _, cells in page.rows if cells[0]["text"] == names[0] for c in cells]
    rows = {cells[0]["text"]: cells for kind, cells in page.rows if kind != "how"}
    bad = []
    if sorted(heads) != sorted(n for n in names if not n.endswith("_se")):
        bad.append(f"columns {heads}")
    for line in lines:
        value = dict(zip(names, line))
        for name, cell in zip(heads, rows[line[0]]):
            exact = value[name]
            if value.get(name + "_se"):
                exact += " ± " + value[name + "_se"]
            if cell.get("title", cell["text"]) != exact:
                bad.append(f"{line[0]}, {name}: {cell}, not {exact}")
            for shown, number in zip(cell["text"].split(" ± "), exact.split(" ± ")):
                if re.match(r"-?\d", number) and abs(float(shown.replace("−", "-")) / (float(number) or 1) - 1) > 0.02:
                    if float(number) != float(shown.replace("−", "-")):
                        bad.append(f"{line[0]}, {name}: {shown}, not {number}")
    return "\n".join(bad)


def theirs(path):
    return " ".join(
        c["text"] for _, cells in Page(path).rows for c in cells if c.get("class") == "theirs" and "colspan" not in c
    ).replace("  ", " ")


def commands(path):
    rows = Page(path).rows
    for (_, cells), (kind, (how, *_)) in zip(rows, rows[1:]):
        if kind == "how":
            print(f'{cells[0]["text"]}: {how["steps"]}')
