#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""parquet.py FILE... -- prints the rows of Parquet files as JSON lines, for questions-import

It needs pyarrow, which no tool needs otherwise: pip install pyarrow. Rows are read in batches, so that large files fit.
"""
import json
import math
import sys


def stop(message):
    sys.exit(f"parquet.py: {message}")


def rows(path, parquet, error):
    try:
        with parquet.ParquetFile(path) as f:
            names = f.schema_arrow.names
            if len(set(names)) < len(names):
                stop(f"{path}: has two columns of one name, of which JSON would keep the last")
            for batch in f.iter_batches():
                yield from batch.to_pylist()
    except (FileNotFoundError, IsADirectoryError, PermissionError) as e:
        stop(f"{path}: {e.strerror or e}")
    except (OSError, error) as e:  # also a file without its end, where the directory of a Parquet file is
        stop(f"{path}: is not a Parquet file, or is cut short: {str(e).splitlines()[0]}")


def plain(value):
    """The value without NaN and infinities, which JSON has not: they become null."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value


def main(paths):
    if not paths or paths[0].startswith("-"):
        stop("usage: parquet.py FILE... >items.jsonl")
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError:
        stop(f"{sys.executable} has no pyarrow, which reads Parquet files: pip install pyarrow")
    if sys.stdout is None:
        stop("<stdout>: is closed")
    sys.stdout.reconfigure(encoding="utf-8")
    try:
        for path in paths:
            for row in rows(path, parquet, ArrowInvalid):
                print(json.dumps(plain(row), ensure_ascii=False, allow_nan=False))
        sys.stdout.flush()
    except (TypeError, ValueError) as e:
        stop(f"{path}: has values that JSON cannot store: {e}")
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except OSError as e:
        sys.stdout = None  # Python would flush it again at exit
        stop(f"<stdout>: cannot be written: {e.strerror}")


main(sys.argv[1:])
