"""PHP-FPM on a port, with one page: `/page.php`, as PHP-FPM sees its folder.

python3 fpm.py ADDRESS PORT
"""

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

ADDRESS, PORT = sys.argv[1:]
FPM = """[global]
error_log = /dev/null
daemonize = no
[www]
user = www-data
group = www-data
listen = {address}:{port}
chroot = {folder}
pm = static
pm.max_children = 4
"""
PAGE = "<?php usleep(2000); echo 'page ', $_SERVER['REQUEST_URI'];"


def leave(*_: object) -> None:
    """End as if somebody had pressed Ctrl-C: server and folder go."""
    raise SystemExit


signal.signal(signal.SIGTERM, leave)
with tempfile.TemporaryDirectory() as folder:
    Path(folder).chmod(0o755)
    Path(folder, "fpm.conf").write_text(FPM.format(address=ADDRESS, port=PORT, folder=folder))
    Path(folder, "page.php").write_text(PAGE)
    server = subprocess.Popen(["php-fpm8.2", "-n", "-F", "-y", f"{folder}/fpm.conf"])
    try:
        signal.pause()
    finally:
        server.terminate()
        server.wait(10)
