<?php
// Asked before the capture begins: PHP reads and compiles the page once, and opens no connection to the database.
opcache_compile_file(__DIR__ . '/orders.php');
