"""PHP-FPM behind nginx over TCP: pages, errors, an upload, a large page; connections kept and one for each request.

In: a folder to work in. Out: `requests.txt`, the access log of PHP-FPM: method, target, status, microseconds.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FRONT = 18080
PORT = 19000
PORTS = (FRONT, PORT)
LOOKUPS = 10

PAGES = {
    "index.php": "<?php echo 'secret';",
    "slow.php": "<?php usleep(200000); echo 'secret';",
    "missing.php": "<?php http_response_code(404); echo 'no such page';",
    "moved.php": "<?php header('Location: /index.php');",
    "wrong.php": "<?php error_log('secret'); throw new Exception('secret');",
    "upload.php": "<?php echo strlen(file_get_contents('php://input'));",
    "large.php": "<?php for ($i = 0; $i < 64; $i++) { echo str_repeat('x', 1024); }",
}
TARGETS = (
    "index.php?item=7", "slow.php", "missing.php", "moved.php", "wrong.php", "large.php", "fresh/index.php",
    "fresh/index.php",
)  # fmt: skip

FPM = """[global]
error_log = {folder}/error.log
daemonize = no
[www]
user = www-data
group = www-data
listen = 127.0.0.1:{port}
pm = static
pm.max_children = 2
access.log = {folder}/access.log
access.format = "%m %r%Q%q %s %{{microseconds}}d"
php_admin_flag[log_errors] = on
php_admin_flag[display_errors] = off
"""
NGINX = """daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx-error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
    upstream application {{ server 127.0.0.1:{port}; keepalive 2; }}
    server {{
        listen 127.0.0.1:{front};
        client_max_body_size 10m;
        location / {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param HTTP_X_REQUEST_ID $request_id;
            fastcgi_param SCRIPT_FILENAME {folder}/pages$uri;
            fastcgi_pass application;
            fastcgi_keep_conn on;
        }}
        location ~ ^/fresh(/.*)$ {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param HTTP_X_REQUEST_ID $request_id;
            fastcgi_param SCRIPT_FILENAME {folder}/pages$1;
            fastcgi_pass 127.0.0.1:{port};
        }}
    }}
}}
"""


def run(folder: Path, output: Path) -> None:
    """Start both servers, ask for pages, and write down what PHP-FPM logged."""
    with servers(folder):
        get(*(page for page in TARGETS))
        get("index.php", *("--data-binary", "x" * 50, "-H", "Cookie: session=hunter2"))
        (folder / "upload").write_bytes(b"hunter2" * 5_000)
        get("upload.php", "--data-binary", f"@{folder / 'upload'}")
        get(*(f"index.php?item={number}" for number in range(LOOKUPS)))
        get("slow.php", "--max-time", "0.1")
        time.sleep(0.5)
    (output / "requests.txt").write_text((folder / "access.log").read_text())


def get(*words: str) -> None:
    """Ask for pages, on one connection, with curl's options behind them."""
    pages = [word for word in words if ".php" in word]
    options = [word for word in words if word not in pages]
    urls = [f"http://127.0.0.1:{FRONT}/{page}" for page in pages]
    subprocess.run(["curl", "-s", *options, *urls], check=False, stdout=subprocess.DEVNULL, timeout=30)


@contextmanager
def servers(folder: Path) -> Iterator[None]:
    """Run PHP-FPM with two workers, and nginx in front of it."""
    folder.chmod(0o777)
    pages = folder / "pages"
    pages.mkdir()
    for name, text in PAGES.items():
        (pages / name).write_text(text)
    (folder / "fpm.conf").write_text(FPM.format(folder=folder, port=PORT))
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=PORT, front=FRONT))
    started = [
        subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for words in (
            ["php-fpm8.2", "-n", "-F", "-y", str(folder / "fpm.conf")],
            ["nginx", "-e", str(folder / "nginx-error.log"), "-c", str(folder / "nginx.conf")],
        )
    ]
    try:
        time.sleep(1)
        yield
        time.sleep(0.5)
    finally:
        for process in started:
            process.terminate()
            process.wait(timeout=30)
