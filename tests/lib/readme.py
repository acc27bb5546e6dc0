"""readme.py -- Python of tests/readme.t: links of the pages"""

import pathlib
import re


def anchors(page):
    """Anchors of headings, formed as by GitHub."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    heads = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", h) for h in re.findall(r"^#+ (.*)", text, re.M)]
    plain = [re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in heads]
    return {h if not plain[:i].count(h) else f"{h}-{plain[:i].count(h)}" for i, h in enumerate(plain)}


def dead_links(top, elsewhere=None):
    """Dead links, except those that begin with `elsewhere`."""
    top = pathlib.Path(top)
    for page in (top / "README.md", *sorted(top.glob("docs/**/*.md"))):
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
        for link in re.findall(r"\]\(([^)\s]+)\)|(?:href|src)=\"([^\"]+)\"", text):
            link = link[0] or link[1]
            if re.match(r"https?:", link) or (elsewhere and link.startswith(elsewhere)):
                continue
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
                print(f"{page.relative_to(top)}: {link}")
