// A shop's pages in one process that waits for nothing: a pool of PostgreSQL connections (pg), and one connection to Redis on which
// the commands of all requests follow each other (ioredis). Two statements of a page are asked at once.
const http = require('http');
const { Pool } = require('pg');
const Redis = require('ioredis');

const shop = new Pool({
  host: process.env.DATABASE, port: process.env.DATABASE_PORT, user: 'shop', password: 'hunter2', database: 'postgres', max: 12,
});
const cache = new Redis({ host: process.env.CACHE, port: process.env.CACHE_PORT });
const think = (ms) => new Promise((done) => setTimeout(done, -ms * Math.log(1 - Math.random())));

async function page(n, kind, id) {
  const ask = (text, client = shop) => client.query(`${text} /* ${n} */`, [id]);
  await think(2);
  if (kind === 'item') {
    await cache.mget(`page:${id}`, n);
    if (id % 3) {
      await Promise.all([
        ask('SELECT name, price, pg_sleep(0.003) FROM product WHERE id = $1'),
        ask('SELECT count(*) FROM stock WHERE product = $1'),
      ]);
      await think(1);
      await cache.mset(`page:${id}`, 'x', n, 'x');
    }
  } else if (kind === 'list') {
    await ask('SELECT id FROM product WHERE id > $1 ORDER BY id LIMIT 6');
    for (let each = 0; each < 3 + (id % 5); each++) {
      await ask('SELECT name FROM product WHERE id = $1');
      await think(0.5);
    }
  } else {
    const client = await shop.connect();
    await client.query('BEGIN');
    await ask('INSERT INTO stock VALUES ($1, 1)', client);
    await think(1);
    await ask('UPDATE product SET price = price + 1 WHERE id = $1', client);
    await client.query('COMMIT');
    client.release();
    await cache.unlink(`page:${id}`, n);
  }
  await think(1);
  return 'x'.repeat(300 + 100 * (id % 7));
}

http.createServer(async (request, response) => {
  const [, kind, id] = request.url.split('/');
  const body = await page(`${request.headers.cookie.match(/n=\d{6}/)[0]};`, kind, Number(id));
  response.setHeader('Content-Length', body.length);
  response.end(body);
}).listen(Number(process.env.PORT), process.env.HOST);
