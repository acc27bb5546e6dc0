"""progress.py -- Python of tests/progress.t"""

import os
import re
import signal
import subprocess
import sys
import time


def terminal(pattern, *command):
    """Runs a command with its standard error on a terminal, until it has printed a line that matches."""
    wanted, command = pattern, command
    mine, its = os.openpty()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=its)
    os.close(its)
    said, begin, found = b"", time.time(), None
    while time.time() - begin < 300 and not found:
        try:
            got = os.read(mine, 4096)
        except OSError:
            got = b""
        if not got:
            break
        said += got
        found = re.search(wanted.encode(), said)
    child.send_signal(signal.SIGTERM)
    child.wait()
    if not found or time.time() - begin < float(os.environ.get("LATER", 0)):
        sys.exit(f"{time.time() - begin} s: {said[-300:]!r}")
