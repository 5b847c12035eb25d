"""A shop of PHP: nginx, PHP-FPM behind a Unix socket, and MariaDB, which it asks for each page in one of several ways.

    python3 php_shop.py ADDRESS STORE WAY

each        the orders of a buyer, then the lines of each order with a statement of its own
join        the same with one statement
connect     one statement, on a connection that is opened for it
keep        the same on a connection that PHP keeps between requests
prepare     three statements of the same text through PDO, which prepares each
emulate     the same with PDO::ATTR_EMULATE_PREPARES
all         every review, of which ten are shown
ten         ten reviews
"""

import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ADDRESS, STORE, WAY = sys.argv[1:]
PHP = """<?php
$way = '@WAY@';
$options = [PDO::ATTR_PERSISTENT => $way != 'connect', PDO::ATTR_EMULATE_PREPARES => $way != 'prepare'];
$shop = new PDO('mysql:host=@STORE@;dbname=shop', 'shop', 'shop', $options);
function rows($statement, ...$values) {
    global $shop;
    $prepared = $shop->prepare($statement);
    $prepared->execute($values);
    return $prepared->fetchAll(PDO::FETCH_NUM);
}
$buyer = (int) substr($_SERVER['REQUEST_URI'], 1);
$orders = 'SELECT id, what FROM sold WHERE buyer = ? ORDER BY id';
$lines = 'SELECT name, price FROM line WHERE sold = ? ORDER BY place';
$found = [];
if ($way == 'each') {
    foreach (rows($orders, $buyer) as $order) {
        $found[] = rows($lines, $order[0]);
    }
} elseif ($way == 'join') {
    $found = rows('SELECT id, what, name, price FROM sold JOIN line ON sold = id WHERE buyer = ?', $buyer);
} elseif ($way == 'connect' || $way == 'keep') {
    $found = rows($orders, $buyer);
} elseif ($way == 'prepare' || $way == 'emulate') {
    $found = [rows($lines, $buyer), rows($lines, $buyer + 5), rows($lines, $buyer + 10)];
} elseif ($way == 'all') {
    $found = array_slice(rows('SELECT * FROM review ORDER BY id'), 0, 10);
} else {
    $found = rows('SELECT * FROM review ORDER BY id LIMIT 10');
}
echo json_encode($found);
"""
FPM = """[global]
error_log = @FOLDER@/error.log
daemonize = no
[www]
user = www-data
group = www-data
listen = @FOLDER@/fpm.sock
listen.mode = 0666
pm = static
pm.max_children = 1
"""
NGINX = """daemon off;
pid @FOLDER@/nginx.pid;
error_log @FOLDER@/nginx-error.log;
events {}
http {
    access_log off;
    client_body_temp_path @FOLDER@/body; proxy_temp_path @FOLDER@/proxy; fastcgi_temp_path @FOLDER@/fastcgi;
    uwsgi_temp_path @FOLDER@/uwsgi; scgi_temp_path @FOLDER@/scgi;
    server {
        listen @ADDRESS@:80;
        location / {
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME @FOLDER@/index.php;
            fastcgi_pass unix:@FOLDER@/fpm.sock;
        }
    }
}
"""


def leave(*_: object) -> None:
    """End as if somebody had pressed Ctrl-C: servers and folder go."""
    raise SystemExit


signal.signal(signal.SIGTERM, leave)
running = []
with tempfile.TemporaryDirectory() as folder:
    Path(folder).chmod(0o777)
    for name, text in (("index.php", PHP), ("fpm.conf", FPM), ("nginx.conf", NGINX)):
        for place, what in (("FOLDER", folder), ("ADDRESS", ADDRESS), ("STORE", STORE), ("WAY", WAY)):
            text = text.replace(f"@{place}@", what)
        Path(folder, name).write_text(text)
    try:
        running.append(subprocess.Popen(["php-fpm8.2", "-F", "-y", f"{folder}/fpm.conf"]))
        while not Path(folder, "fpm.sock").exists():
            time.sleep(0.05)
        running.append(subprocess.Popen(["nginx", "-e", f"{folder}/nginx-error.log", "-c", f"{folder}/nginx.conf"]))
        signal.pause()
    finally:
        for server in running:
            server.terminate()
            server.wait(10)
