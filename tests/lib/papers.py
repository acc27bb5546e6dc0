"""papers.py -- Python of tests/papers.t"""

import glob
import os
import re
import unicodedata


def read(*path):
    with open(os.path.join(*path), encoding="utf8") as file:
        return file.read().replace("−", "-")


def links(text):
    return re.findall(r"\]\(([^)#]*)#?([^)]*)\)", text)


def anchor(heading):
    return "".join(c for c in heading.lower() if c in " -_" or unicodedata.category(c)[0] in "LN").replace(" ", "-")


def look(page, top):
    FOLDERS = ("bin/", "data/", "docs/", "lib/", "pipelines/", "tests/")
    NUMBERED = {
        "DPQ": {"table": 4, "figure": 7, "eq.": 14, "algorithm": 1},
        "FPE2M2": {"table": 4, "figure": 9, "eq.": 2, "algorithm": 1},
        "FBQuant": {"table": 2, "figure": 7, "eq.": 19, "algorithm": 1},
        "MQuant": {"table": 10, "figure": 10, "eq.": 21, "algorithm": 3},
    }

    text, members = read(page), read(top, "docs/format.md")
    tools = {f[:-5]: dict(re.findall(r"^ +(?:-\w, +)?--([\w-]+)=?(\S*)", read(f), re.M)) for f in glob.glob("*.help")}
    bad = []

    # In backticks: paths, tools with their options, members of files.
    for span in re.findall(r"`([^`]*)`", text):
        tool, *words = span.split()
        if span.startswith(FOLDERS):
            if not os.path.exists(os.path.join(top, span)):
                bad.append(f"{span}: no such file")
        elif tool in tools:
            option = None
            for word in words:
                value = tools[tool].get(option, "")  # "FORMAT", "no|yes"
                if word.startswith("--"):
                    option = word[2:]
                    if option not in tools[tool]:
                        bad.append(f"{tool}: no option {word}")
                elif not value or value.islower() and word not in value.split("|"):
                    bad.append(f"{tool}: --{option} does not take {word}")
        elif f"`{span}`" not in members:
            bad.append(f"{span}: neither a path nor a tool nor a member of a file")

    for path, at in links(text):
        if not os.path.exists(os.path.join(top, "docs", path)):
            bad.append(f"{path}: no such page")
        elif at and at not in map(anchor, re.findall(r"^#+ (.*)$", read(top, "docs", path), re.M)):
            bad.append(f"{path}#{at}: no such heading")

    for paper, numbered in NUMBERED.items():
        section = re.search(rf"^## {paper}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        seen = {kind: [] for kind in numbered}
        for row in re.findall(r"^\|(.*)\|$", section[1], re.M)[2:]:
            cells = [cell.strip() for cell in row.split("|")]
            item, carried, _, status, pages = cells if len(cells) == 5 else cells[:1] + [""] * 4
            which = re.match(r"(table|figure|eq\.|algorithm) (\d+)(?:-(\d+))?: ", item)
            if which:
                seen[which[1]] += range(int(which[2]), int(which[3] or which[2]) + 1)
            if len(cells) != 5 or not (which or re.match(r"(section|appendix) [\w.]+: ", item)):
                bad.append(f"{item}: not a row of five columns, the first an item")
            elif not re.match(r"(implemented|agrees|differs|not carried|not yet)\b", status):
                bad.append(f"{item}: {status or 'nothing'} is not a status")
            elif status == "not yet" and carried + pages:
                bad.append(f"{item}: not yet, and has a tool or results")
            elif status.startswith(("agrees", "differs")) and not pages:
                bad.append(f"{item}: {status.split()[0].rstrip(':')}, and no page shows it")
            elif re.sub(r"\[[^]]*\]\([^)]*\)|, ", "", pages):
                bad.append(f"{item}: the last cell is more than links to pages")
            elif re.search(r"\d\.\d", status):
                bad.append(f"{item}: a figure, which is for the page of results")
        for kind, n in numbered.items():
            if sorted(seen[kind]) != list(range(1, n + 1)):
                bad.append(f"{paper}: {kind} 1 to {n} wanted, there are {seen[kind]}")
    print(*bad, sep="\n")
