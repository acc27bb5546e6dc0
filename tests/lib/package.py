"""package.py -- Python of tests/package.sh: links of installed pages"""

from lib import readme


def dead_links(folder):
    """Dead links, except links to sources, which are not installed."""
    readme.dead_links(folder, "../lib/")
