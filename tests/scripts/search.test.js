import assert from "node:assert/strict";
import { test } from "node:test";

import { Column, Table } from "../../conchart/outputs/page/scripts/decode.js";
import { FIELDS, parseSearch, readAddress } from "../../conchart/outputs/page/scripts/language.js";
import { Search } from "../../conchart/outputs/page/scripts/search.js";
import { story } from "./story.js";

const PHASES = ["syn", "tls", "request", "wait", "transfer", "idle", "close", "unseen"];
const search = new Search(story());

/* The lanes that a search keeps. */
const found = (/** @type {string} */ text) => [...search.find(text).lanes].flatMap((isFound, lane) => (isFound ? [lane] : []));
const errors = (/** @type {string} */ text) => parseSearch(text, PHASES).errors;

test("nothing is asked, and all is found", () => {
  assert.deepEqual(found(""), [0, 1, 2, 3]);
  assert.deepEqual(found("   "), [0, 1, 2, 3]);
});

for (const [text, lanes] of /** @type {[string, number[]][]} */ ([
  ["10.0.0.5", [0]], ["10.0.0.", [0, 1, 2, 3]], ["10.0.0.50", [1]], ["51001", [1]], ["5100", []], ["443", [0, 1, 3]], ["10.0.0.50:51001", [1]],
  ["[2001:db8::7]:51002", [2]], ["[2001:db8::7]:80", []], ["SHOP", [0, 1, 3]], ["login", [1]], ["503", [1]], ["refused", [3]], ["failed", [0, 3]], ["\"failed\"", [0]], ["Connections are", [0, 2]],
  ["\"Connections are\"", [0, 2]], ["slow-opening", [0, 2]], ["-10.0.0.5", [1, 2, 3]], ["-shop -refused", [2]], ["#7", [1]], ["#1", []],
  ["tcp.stream eq 2", [2]], ["udp.stream eq 2", []], ["tcp.stream==2", [2]], ["shop -login", [0, 3]],
])) test(`words: ${text}`, () => assert.deepEqual(found(text), lanes));

for (const [text, lanes] of /** @type {[string, number[]][]} */ ([
  ["duration > 50ms", [0, 1]], ["duration>50ms", [0, 1]], ["duration > 50 ms", [0, 1]], ["duration >= 0.1s", [0]], ["duration < 1us", [3]], ["-duration > 50ms", [2, 3]],
  ["wait > 20ms", [1]], ["phase:wait > 20ms", [1]], ["phase:tls > 20ms", [0]], ["tls > 20ms", [0]], ["requests >= 2", [1]], ["requests = 0", [3]], ["requests:0", [3]],
  ["bytes > 1MB", [2]], ["bytes > 1MiB", []], ["bytes >= 1000", [0, 1, 2]], ["status:503", [1]], ["status:5xx", [1]], ["status >= 500", [1]], ["status != 200", [1]], ["-status:200", [3]],
  ["path:/LOGIN", [1]], ["path=/login", []], ["path=\"/login?a=b c\"", [1]], ["host:example", [1, 2]], ["sni:shop", [0, 1]], ["state:refused", [3]], ["state=ref", []], ["state!=complete", [3]],
  ["ip:10.0.0.0/26", [0, 1, 2, 3]], ["client:10.0.0.0/29", [0]], ["client:10.0.0.5", [0]], ["ip:2001:db8::/32", [2]], ["ip:2001:DB8:0::7", [2]], ["server:shop", [0, 1, 3]], ["server:10.0.0.9:443", [0, 1, 3]],
  ["port:443", [0, 1, 3]], ["port != 443", [2]], ["port > 51002", [3]], ["finding:slow-opening", [0, 2]], ["finding:CONNECTIONS", [0, 2]], ["stall:held", [2]], ["stall:nagle", [2]], ["stall:lost", []],
  ["stalled > 1ms", [2]], ["handshake:failed", [0]], ["resent > 0", [3]], ["took > 25ms", [1]],
])) test(`fields: ${text}`, () => assert.deepEqual(found(text), lanes));

test("conditions on requests hold together on one of them", () => {
  assert.deepEqual(found("status:200 wait > 20ms"), [], "the one that waited was answered 503");
  assert.deepEqual(found("status:503 wait > 20ms"), [1]);
});

test("rows are those of kept connections for which the conditions on rows hold", () => {
  const rows = (/** @type {string} */ text) => {
    const one = search.find(text);
    return [...one.rows("exchanges", one.lanes)];
  };
  assert.deepEqual(rows(""), [1, 1, 1, 1]);
  assert.deepEqual(rows("status >= 500"), [0, 0, 1, 0]);
  assert.deepEqual(rows("login"), [0, 0, 1, 0], "the word stands in one request");
  assert.deepEqual(rows("10.0.0.50"), [0, 1, 1, 0], "the word is the connection's");
  assert.deepEqual(rows("handshake:failed"), [1, 0, 0, 0]);
});

test("shapes of queries are kept with the requests that asked them", () => {
  const model = story();
  model.tables.queries = new Table([], 3, new Uint8Array());
  // Of the third shape, no request is on the page; the last request asked no store.
  model.tables.exchanges.columns.set("query", new Column("query", Int32Array.of(1, 0, 1, 0), Uint8Array.of(1, 1, 1, 0), null));
  const other = new Search(model);
  const queries = (/** @type {string} */ text) => {
    const one = other.find(text);
    return [...one.queries(one.lanes)];
  };
  assert.deepEqual(queries(""), [1, 1, 1]);
  assert.deepEqual(queries("status >= 500"), [0, 1, 0]);
  assert.deepEqual(queries("10.0.0.50"), [1, 1, 0]);
  assert.deepEqual(queries("api.example"), [0, 0, 0]);
});

test("findings are kept with their connections, or by their own words", () => {
  const finds = (/** @type {string} */ text) => {
    const one = search.find(text);
    return [0, 1, 2].filter((number) => one.finds(number, search.lanesOf(number), one.lanes));
  };
  assert.deepEqual(finds(""), [0, 1, 2]);
  assert.deepEqual(finds("finding:slow-opening"), [0]);
  assert.deepEqual(finds("slow-opening"), [0]);
  assert.deepEqual(finds("10.0.0.5"), [0]);
  assert.deepEqual(finds("login"), [1]);
});

for (const [text, words] of /** @type {[string, string | null][]} */ ([
  ["duration >", "“duration” lacks what it is compared with: duration > 50ms"], ["duration > 50", "“duration” needs a unit: 50ms"], ["duration > fast", "“fast” is no time: 50ms"],
  ["bytes > 3 apples", null], ["bytes > 3apples", "“3apples” is no size: 1MB"], ["status > ok", "“ok” is no status: status > 500"], ["speed > 3", "there is no field “speed”"],
  ["phase:lunch > 3ms", `no phase is called “lunch”: ${PHASES.join(", ")}`], ["phase:tls", "“phase:tls” is compared with a time: phase:tls > 20ms"], ["speed:3", "there is no field “speed”: looked for as text"],
  ["state > open", "“state” is a text: state:open"], ["ip:10.0.0.0/64", "“10.0.0.0/64” is no network: 10.0.0.0/8"], ["state:", "“state” lacks what it is compared with"], ["> 3ms", "“>” stands between a field and a value"],
])) test(`what is wrong is named: ${text}`, () => assert.deepEqual(errors(text), words === null ? [] : [words]));

for (const text of ["http://x/?a=b", "a:b", "[::1]:443", "fe80::1", "-", "--", "\"", "-\"", "#", "ab::cd", "x=y", "😀", "\\"])
  test(`no complaint about ${text}`, () => assert.deepEqual(errors(text), []));

test("what is not understood is left out, and the rest holds", () => {
  const one = search.find("duration > fast login");
  assert.deepEqual([...one.lanes], [0, 1, 0, 0]);
  assert.deepEqual(one.understood, ["login"]);
});

test("whatever is typed is read to its end", () => {
  const letters = "ab1.:-\"#><=! /phase:tls>2ms".split("");
  let seed = 7;
  const random = (/** @type {number} */ n) => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed % n;
  };
  for (let i = 0; i < 3000; i += 1) {
    const text = Array.from({ length: random(24) }, () => letters[random(letters.length)]).join("");
    assert.ok(search.find(text).lanes.length === 4, text);
  }
});

test("addresses are read as RFC 4291 writes them", () => {
  assert.deepEqual(readAddress("10.0.0.255"), [10, 0, 0, 255]);
  assert.deepEqual(readAddress("::1")?.at(-1), 1);
  assert.equal(readAddress("::")?.length, 16);
  for (const wrong of ["10.0.0", "10.0.0.256", ":::1", "1::2::3", "1:2:3", "12345::", "x::1", ""]) assert.equal(readAddress(wrong), null, wrong);
});

test("every field is found in its table", () => {
  for (const { name, measure } of FIELDS) {
    const value = measure === "time" ? "1ms" : ["size", "count", "port", "answer"].includes(measure) ? "200" : "x";
    assert.deepEqual(errors(`${name}:${value}`), [], name);
    assert.ok(found(`${name}:${value}`), name);
  }
});
