<?php
// A shop's pages, by a worker that keeps a connection to each of its stores. The cookie's number is repeated in a comment of each
// statement and in a second key of each command: no table of conchart shows it.
preg_match('/n=\d{6};/', $_SERVER['HTTP_COOKIE'] . ';', $found);
$n = $found[0];
[, $kind, $id] = explode('/', explode('?', $_SERVER['REQUEST_URI'])[0]);
$id = (int) $id;
$kept = getenv('KEPT') === 'yes';
mysqli_report(MYSQLI_REPORT_ERROR);
$shop = new mysqli(($kept ? 'p:' : '') . getenv('DATABASE'), 'shop', 'hunter2', 'shop', (int) getenv('DATABASE_PORT'));
$cache = new Redis();
[$host, $port] = [getenv('CACHE'), (int) getenv('CACHE_PORT')];
$kept ? $cache->pconnect($host, $port) : $cache->connect($host, $port);

function think(float $ms): void
{
    usleep((int) (-1000 * $ms * log(mt_rand(1, 1000) / 1000)));
}

function ask(string $text): void
{
    global $shop, $n;
    $answer = $shop->query("$text /* $n */");
    if ($answer instanceof mysqli_result) {
        $answer->fetch_all();
    }
}

think(2);
if ($kind === 'item') {
    $cache->mget(["page:$id", "$n"]);
    if ($id % 3) {
        ask("SELECT name, price, SLEEP(0.003) FROM product WHERE id = $id");
        think(1);
        ask("SELECT count(*) FROM stock WHERE product = $id");
        think(1);
        $cache->mset(["page:$id" => 'x', "$n" => 'x']);
    }
} elseif ($kind === 'list') {
    ask("SELECT id FROM product WHERE id > $id ORDER BY id LIMIT 6");
    for ($each = 0; $each < 3 + $id % 5; $each++) {
        ask("SELECT name FROM product WHERE id = " . ($id + $each));
        think(0.5);
    }
} else {
    $shop->query('START TRANSACTION');
    ask("INSERT INTO stock VALUES ($id, 1)");
    think(1);
    ask("UPDATE product SET price = price + 1 WHERE id = $id");
    $shop->query('COMMIT');
    $cache->unlink(["page:$id", "$n"]);
}
think(1);
echo str_repeat('x', 300 + 100 * ($id % 7));
