<?php
$began = hrtime(true);
$shop = new PDO('mysql:host=10.95.2.40;dbname=shop;charset=utf8mb4', 'shop', 'hunter2');
$orders = $shop->query(
    'SELECT orders.id, name, town FROM orders JOIN buyer ON buyer.id = buyer ORDER BY placed DESC LIMIT 24'
)->fetchAll();
$asked = hrtime(true);

$rows = '';
foreach ($orders as $order) {
    $rows .= sprintf("<tr><td>%d<td>%s<td>%s\n", $order['id'], $order['name'], $order['town']);
}
header(sprintf('Server-Timing: store;dur=%.3f, page;dur=%.3f', ($asked - $began) / 1e6, (hrtime(true) - $began) / 1e6));
echo "<!DOCTYPE html><title>Orders</title>\n<table>\n$rows</table>\n";
