/* The language of the search box. In: a text. Out: its conditions, and in words what was not understood. */

/** @typedef {"lanes" | "exchanges" | "handshakes" | "stalls" | "findings"} Place where a field is looked for */
/** @typedef {{name: string, words: string, measure: "text" | "address" | "answer" | "port" | "time" | "size" | "count", place: Place, columns: string[]}} Field */
/**
 * One condition of a search. Of a comparison, `operator` and `value` are set; of a time or size, `number` too.
 * @typedef {{kind: "word" | "field" | "stream" | "failed", source: string, not: boolean, text: string, field?: Field, operator: string, number: number}} Term
 */

/** @type {(name: string, measure: Field["measure"], place: Place, columns: string[], words: string) => Field} */
const fieldOf = (name, measure, place, columns, words) => ({ name, measure, place, columns, words });

/** The fields, in the order in which help lists them. Of several columns, one must match. */
export const FIELDS = [
  fieldOf("ip", "address", "lanes", ["client_ip", "server_ip"], "the address of either end; also a network: ip:10.0.0.0/8"),
  fieldOf("client", "address", "lanes", ["client_ip"], "who opened the connection, as ip"),
  fieldOf("server", "address", "lanes", ["server_ip"], "who accepted it, as ip"),
  fieldOf("port", "port", "lanes", ["client_port", "server_port"], "the port of either end: port:443"),
  fieldOf("name", "text", "lanes", ["name"], "the connection's name: its SNI, or the Host of its first request"),
  fieldOf("state", "text", "lanes", ["state"], "complete, open, refused, unanswered, reset, midstream, abandoned"),
  fieldOf("app", "text", "lanes", ["app"], "the protocol: app:http/1.1"),
  fieldOf("duration", "time", "lanes", ["duration"], "from the first to the last packet: duration > 50ms"),
  fieldOf("opened", "time", "lanes", ["opened"], "when it was opened, after the start: opened > 1.5s"),
  fieldOf("waited", "time", "lanes", ["waited_ns"], "how long its user waited"),
  fieldOf("stalled", "time", "lanes", ["stalled"], "how long the next byte did not come although it could have"),
  fieldOf("requests", "count", "lanes", ["requests"], "how many requests it carried: requests >= 2"),
  fieldOf("bytes", "size", "lanes", ["bytes_client", "bytes_server"], "both ways together: bytes > 1MB"),
  fieldOf("packets", "count", "lanes", ["packets_client", "packets_server"], "both ways together"),
  fieldOf("resent", "count", "lanes", ["retransmits_client", "retransmits_server", "syn_retransmits"], "segments that were sent again"),
  fieldOf("status", "answer", "exchanges", ["answer"], "of a request: status:503, status:5xx, status >= 500"),
  fieldOf("path", "text", "exchanges", ["target"], "of a request: path:/login"),
  fieldOf("host", "text", "exchanges", ["host"], "of a request"),
  fieldOf("method", "text", "exchanges", ["method"], "of a request: method:POST"),
  fieldOf("wait", "time", "exchanges", ["wait_ns"], "of a request, from its last byte to the first of its response: wait > 20ms"),
  fieldOf("took", "time", "exchanges", ["request_ns", "wait_ns", "transfer_ns"], "of a request, from its first byte to the last of its response"),
  fieldOf("sni", "text", "handshakes", ["sni"], "of a TLS handshake"),
  fieldOf("version", "text", "handshakes", ["version"], "of a TLS handshake: version:TLSv1.3"),
  fieldOf("cipher", "text", "handshakes", ["cipher"], "of a TLS handshake"),
  fieldOf("alpn", "text", "handshakes", ["alpn"], "of a TLS handshake"),
  fieldOf("handshake", "text", "handshakes", ["kind", "outcome"], "full, session-id, ticket, psk, psk-0rtt; complete, failed, incomplete"),
  fieldOf("stall", "text", "stalls", ["kind"], "what kept the next byte from coming: stall:held, stall:nagle"),
  fieldOf("finding", "text", "findings", ["name", "title"], "a finding by its name or title: finding:server-closes-each-response"),
];

/** @type {Record<string, Record<string, number>>} */
const UNITS_OF = {
  time: { ns: 1, us: 1e3, "µs": 1e3, "μs": 1e3, ms: 1e6, s: 1e9, min: 6e10 },
  size: { "": 1, b: 1, kb: 1e3, mb: 1e6, gb: 1e9, kib: 2 ** 10, mib: 2 ** 20, gib: 2 ** 30 },
  count: { "": 1 },
  port: { "": 1 },
  answer: { "": 1 },
};
const EXAMPLES = { time: "50ms", size: "1MB", count: "2", port: "443", answer: "503" };
const OPERATORS = [">=", "<=", "!=", "==", "=", "<", ">"];
/** A longer text is nobody's search. */
export const MAX_SEARCH = 2000;

const STREAM = /^(tcp|udp)\.stream\s*(?:eq|==|=|:)\s*(\d+)(?!\S)/i;
const COMPARISON = /^(phase:)?([a-z]+)\s*(>=|<=|!=|==|=|<|>)\s*("[^"]*"?|[^\s"]+(?:\s+(?:ns|us|[µμ]s|ms|s|min|b|[kmg]i?b)(?!\S))?)?/i;
const MATCH = /^([a-z]+):("[^"]*"?|[^\s"]*)/i;
const QUOTED = /^"([^"]*)"?/;

/**
 * @param {string} text
 * @returns {string}
 */
const unquoted = (text) => (text.startsWith("\"") ? text.slice(1).replace(/"$/, "") : text);

/**
 * A number with a unit of a measure; undefined where it is none.
 * @param {string} measure
 * @param {string} text
 */
function amount(measure, text) {
  const told = /^([+-]?\d+(?:\.\d*)?|\.\d+)\s*([a-zµμ]*)$/i.exec(text);
  if (!told) return undefined;
  const unit = UNITS_OF[measure][told[2].toLowerCase()];
  const number = Number(told[1]);
  // Nought is nought in any unit.
  return unit === undefined ? (number === 0 && !told[2] ? 0 : undefined) : number * unit;
}

/**
 * Read a search: its conditions, and what is wrong with it, a sentence each. What is wrong is left out.
 * @param {string} text
 * @param {string[]} phases names of the kinds of phase
 * @returns {{terms: Term[], errors: string[]}}
 */
export function parseSearch(text, phases) {
  /** @type {Map<string, Field>} */
  const fields = new Map(FIELDS.map((one) => [one.name, one]));
  const phase = (/** @type {string} */ name) => (phases.includes(name) ? fieldOf(name, "time", "lanes", [`phase:${name}`], "") : undefined);
  /** @type {Term[]} */
  const terms = [];
  /** @type {string[]} */
  const errors = [];
  let rest = text.slice(0, MAX_SEARCH);
  for (;;) {
    rest = rest.trimStart();
    if (!rest) break;
    const not = /^-[^\s-]/.test(rest);
    const here = not ? rest.slice(1) : rest;
    /** @type {Term} */
    const term = { kind: "word", source: "", not, text: "", operator: ":", number: NaN };
    let wrong = "";
    let length = 0;
    const [stream, quoted, number, compared, matched] = [STREAM.exec(here), QUOTED.exec(here), /^#(\d+)(?!\S)/.exec(here), COMPARISON.exec(here), MATCH.exec(here)];
    const known = compared && (compared[1] ? phase(compared[2].toLowerCase()) : fields.get(compared[2].toLowerCase()) || phase(compared[2].toLowerCase()));
    const named = matched && fields.get(matched[1].toLowerCase());
    if (stream) {
      length = stream[0].length;
      Object.assign(term, { kind: "stream", text: stream[1].toLowerCase(), number: Number(stream[2]) });
    } else if (quoted) {
      length = quoted[0].length;
      term.text = quoted[1];
    } else if (number) {
      length = number[0].length;
      Object.assign(term, { kind: "stream", number: Number(number[1]) });
    } else if (compared && known) {
      length = compared[0].length;
      Object.assign(term, { kind: "field", field: known, operator: compared[3] === "==" ? "=" : compared[3], text: unquoted(compared[4] || "") });
      wrong = complaint(term, known);
    } else if (matched && named) {
      length = matched[0].length;
      Object.assign(term, { kind: "field", field: named, text: unquoted(matched[2]) });
      wrong = complaint(term, named);
    } else {
      length = /** @type {RegExpExecArray} */ (/^\S+/.exec(here))[0].length;
      const word = here.slice(0, length);
      Object.assign(term, word.toLowerCase() === "failed" ? { kind: "failed" } : { text: word });
      if (compared && (compared[1] || /^[a-z]+\s*[<>]/i.test(here))) {
        length = compared[0].length;
        wrong = compared[1] ? `no phase is called “${compared[2]}”: ${phases.join(", ")}` : `there is no field “${compared[2]}”`;
      } else if (/^phase:?$/i.test(word)) wrong = "a phase is compared with a time: phase:tls > 20ms";
      else if (/^phase:/i.test(word)) wrong = `“${word}” is compared with a time: ${word} > 20ms`;
      else if (OPERATORS.includes(word)) wrong = `“${word}” stands between a field and a value`;
      else if (matched && /^[a-z]{2,}:(?![:/])/i.test(word) && !/^[0-9a-f:.%]+$/i.test(word)) errors.push(`there is no field “${matched[1]}”: looked for as text`);
    }
    term.source = (not ? "-" : "") + here.slice(0, length);
    rest = here.slice(length);
    if (wrong) errors.push(wrong);
    else if (term.kind !== "word" || term.text) terms.push(term);
  }
  return { terms, errors };
}

/**
 * What is wrong with the value of a field; empty where nothing is. A number is read on the way.
 * @param {Term} term
 * @param {Field} told
 */
function complaint(term, { name, measure }) {
  const { text, operator } = term;
  const numeric = measure in EXAMPLES;
  const example = EXAMPLES[/** @type {keyof typeof EXAMPLES} */ (measure)];
  const ordered = /[<>]/.test(operator);
  if (!text) return `“${name}” lacks what it is compared with${numeric ? `: ${name} ${operator === ":" ? ">" : operator} ${example}` : ""}`;
  if (measure === "address" && text.includes("/")) return readNetwork(text) ? "" : `“${text}” is no network: 10.0.0.0/8`;
  if (!numeric) return ordered ? `“${name}” is a text: ${name}:${text}` : "";
  term.number = amount(measure, text) ?? NaN;
  if (!Number.isNaN(term.number)) return "";
  if (measure === "answer") return ordered ? `“${text}” is no status: status ${operator} 500` : "";
  if (measure === "time" && amount("count", text) !== undefined) return `“${name}” needs a unit: ${text}ms`;
  return `“${text}” is no ${measure === "count" ? "number" : measure}: ${example}`;
}

/**
 * The bytes of an IPv4 or IPv6 address (RFC 4291 section 2.2), or null.
 * @param {string} text
 * @returns {number[] | null}
 */
export function readAddress(text) {
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (four) {
    const bytes = four.slice(1).map(Number);
    return bytes.every((byte) => byte < 256) ? bytes : null;
  }
  if (!text.includes(":") || !/^[0-9a-f:]+$/i.test(text)) return null;
  const halves = text.split("::");
  if (halves.length > 2) return null;
  const [left, right] = [halves[0], halves[1] ?? ""].map((half) => (half ? half.split(":") : []));
  const missing = 8 - left.length - right.length;
  if (halves.length === 2 ? missing < 1 : missing !== 0) return null;
  const groups = [...left, ...Array(missing).fill("0"), ...right];
  return groups.every((group) => /^[0-9a-f]{1,4}$/i.test(group)) ? groups.flatMap((group) => [parseInt(group, 16) >> 8, parseInt(group, 16) & 255]) : null;
}

/**
 * An address and how many of its bits count (RFC 4632), or null.
 * @param {string} text
 */
function readNetwork(text) {
  const [address, bits, ...more] = text.split("/");
  const bytes = readAddress(address);
  return bytes && !more.length && /^\d{1,3}$/.test(bits) && Number(bits) <= 8 * bytes.length ? { bytes, bits: Number(bits) } : null;
}

/**
 * Whether an address is the one looked for: in a network, the same, or, as long as somebody is still typing, a part.
 * @param {string} wanted in lower case
 * @returns {(address: string) => boolean}
 */
export function matchAddress(wanted) {
  const network = wanted.includes("/") ? readNetwork(wanted) : null;
  if (network) {
    return (address) => {
      const bytes = readAddress(address);
      return Boolean(bytes) && bytes?.length === network.bytes.length && bytes.every((byte, i) => {
        const counted = Math.min(8, Math.max(0, network.bits - 8 * i));
        return (byte ^ network.bytes[i]) >> (8 - counted) === 0;
      });
    };
  }
  const whole = readAddress(wanted);
  return whole ? (address) => String(readAddress(address)) === String(whole) : (address) => address.includes(wanted);
}

/**
 * An address with a port: `10.0.0.1:443`, `[::1]:443`; null where there is no port.
 * @param {string} text
 */
export function readEndpoint(text) {
  const told = /^(?:\[([0-9a-f:.]+)\]|([0-9a-z.-]+)):(\d{1,5})$/i.exec(text);
  return told ? { ip: told[1] || told[2], port: Number(told[3]) } : null;
}

/** @type {Record<string, (a: number, b: number) => boolean>} */
export const COMPARE = {
  ":": (a, b) => a === b, "=": (a, b) => a === b, "!=": (a, b) => a !== b,
  ">": (a, b) => a > b, ">=": (a, b) => a >= b, "<": (a, b) => a < b, "<=": (a, b) => a <= b,
};

/**
 * How a term tells whether a text, in lower case, is meant.
 * @param {Term} term
 * @returns {(text: string) => boolean}
 */
export function matchText({ field: told, text, operator, number }) {
  const wanted = text.toLowerCase();
  if (told?.measure === "answer") {
    const family = /^([1-5])xx$/.exec(wanted);
    const is = (/** @type {string} */ answer) => (family ? /^\d{3}$/.test(answer) && answer[0] === family[1] : answer === wanted);
    if (operator === "!=") return (answer) => !is(answer);
    return /[<>]/.test(operator) ? (answer) => COMPARE[operator](Number(answer), number) : is;
  }
  const is = told?.measure === "address" ? matchAddress(wanted) : (/** @type {string} */ value) => (operator === ":" ? value.includes(wanted) : value === wanted);
  return operator === "!=" ? (value) => !is(value) : is;
}
