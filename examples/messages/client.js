// Calls two methods of the service in calls.py over TLS, by grpc-js; writes a line of JSON per message.
"use strict";
const fs = require("node:fs");
const grpc = require("@grpc/grpc-js");

const [certificate, address] = process.argv.slice(2);
const now = () => Math.round((performance.timeOrigin + performance.now()) * 1e6);
const tell = (what, exchange, sender, bytes) =>
  process.stdout.write(`${JSON.stringify({ what, exchange, sender, bytes, at: now() })}\n`);
const same = (bytes) => bytes;
const client = new grpc.Client(address, grpc.credentials.createSsl(fs.readFileSync(certificate)));

function about(exchange) {
  const metadata = new grpc.Metadata();
  metadata.set("call", String(exchange));
  return metadata;
}

function watch() {
  tell("sending", 0, "client", 3);
  const call = client.makeServerStreamRequest("/shop.Orders/Watch", same, same, Buffer.from("all"), about(0));
  call.on("data", () => tell("received", 0, "server"));
  call.on("end", chat);
}

function chat() {
  const call = client.makeBidiStreamRequest("/shop.Orders/Chat", same, same, about(1));
  const lines = ["one", "two", "three"];
  const say = () => {
    const line = lines.shift();
    if (line === undefined) return call.end();
    tell("sending", 1, "client", line.length);
    call.write(Buffer.from(line));
  };
  call.on("data", () => {
    tell("received", 1, "server");
    setTimeout(say, 40);
  });
  call.on("end", () => client.close());
  say();
}

watch();
