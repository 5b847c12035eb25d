/* What a search finds. In: its conditions, and the model. Out: which connections are kept, and which rows of the other
   tables. Texts are looked at once each; rows compare numbers. */

import { COMPARE, matchAddress, matchText, parseSearch, readAddress, readEndpoint } from "./language.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./decode.js").Column} Column */
/** @typedef {import("./language.js").Place} Place */
/** @typedef {import("./language.js").Field} Field */
/** @typedef {import("./language.js").Term} Term */
/**
 * Where a condition holds. By lane: at all, by what is known of the lane itself, and by anything but findings. By row of
 * other tables; `strict` names the one table that a condition is about.
 * @typedef {{lanes: Uint8Array, own: Uint8Array, besides: Uint8Array, strict: Place | null, rows: Partial<Record<Place, Uint8Array>>}} Hit
 */


/* What a word without a field is compared with; of a finding, its name, title and place. */
const WORD_COLUMNS = {
  exchanges: ["protocol", "method", "host", "target", "answer"],
  handshakes: ["version", "sni", "alpn", "kind", "outcome", "alert"],
};
/* Conditions whose places are kept: those of a search that is being typed. */
const MAX_REMEMBERED = 24;

/** What a search found. */
export class Found {
  /**
   * @param {Model} model
   * @param {string[]} errors
   * @param {{term: Term, hit: Hit}[]} parts
   */
  constructor(model, errors, parts) {
    this.model = model;
    this.errors = errors;
    /** What was understood, as it was written. */
    this.understood = parts.map(({ term }) => term.source);
    this.parts = parts.filter(({ term }) => !term.not);
    /** 1 for each lane that is kept. */
    this.lanes = new Uint8Array(model.count).fill(1);
    for (const { term, hit } of parts) {
      const { lanes } = hit;
      const wanted = term.not ? 0 : 1;
      for (let lane = 0; lane < lanes.length; lane += 1) this.lanes[lane] &= Number(lanes[lane] === wanted);
    }
    this.joinRows();
  }

  /** Conditions on the rows of one table must hold on the same row. */
  joinRows() {
    for (const place of /** @type {Place[]} */ (["exchanges", "handshakes", "stalls"])) {
      const masks = this.parts.filter(({ hit }) => hit.strict === place).map(({ hit }) => hit.rows[place]);
      if (masks.length < 2) continue;
      const [first, ...others] = /** @type {Uint8Array[]} */ (masks);
      const owner = this.model.tables[place].values("lane");
      const any = new Uint8Array(this.model.count);
      for (let row = 0; row < first.length; row += 1) if (first[row] && others.every((mask) => mask[row])) any[owner[row]] = 1;
      for (let lane = 0; lane < any.length; lane += 1) this.lanes[lane] &= any[lane];
    }
  }

  /**
   * The rows of a table that are kept: those of kept lanes for which every condition holds that concerns such rows.
   * @param {"exchanges" | "handshakes"} place
   * @param {Uint8Array} filtered by lane
   * @returns {Uint8Array} by row
   */
  rows(place, filtered) {
    const owner = this.model.tables[place].values("lane");
    const shown = new Uint8Array(owner.length);
    for (let row = 0; row < shown.length; row += 1) shown[row] = filtered[owner[row]];
    for (const { hit: { rows, strict, own } } of this.parts) {
      const mask = rows[place];
      if (!mask) continue;
      for (let row = 0; row < shown.length; row += 1) if (!mask[row] && (strict || !own[owner[row]])) shown[row] = 0;
    }
    return shown;
  }

  /**
   * The shapes of queries that are kept: those of kept requests. What was asked on connections that the page lacks is kept
   * if nothing is looked for.
   * @param {Uint8Array} filtered by lane
   * @returns {Uint8Array} by row of `queries`
   */
  queries(filtered) {
    const { queries, exchanges } = this.model.tables;
    const shown = new Uint8Array(queries.length);
    const rows = this.rows("exchanges", filtered);
    if (filtered.every(Boolean) && rows.every(Boolean)) return shown.fill(1);
    const { values, valid } = exchanges.column("query");
    for (let row = 0; row < rows.length; row += 1) if (rows[row] && (!valid || valid[row])) shown[values[row]] = 1;
    return shown;
  }

  /**
   * Whether a finding is kept: one of its connections is, and it is itself what is looked for, or they are.
   * @param {number} number
   * @param {ArrayLike<number>} lanes of the finding
   * @param {Uint8Array} filtered by lane
   */
  finds(number, lanes, filtered) {
    const some = (/** @type {Uint8Array} */ mask) => Array.prototype.some.call(lanes, (lane) => mask[lane]);
    const matches = this.parts.every(({ hit }) => !hit.rows.findings || hit.rows.findings[number] || (!hit.strict && some(hit.besides)));
    return matches && (lanes.length ? some(filtered) : !this.parts.some(({ hit }) => !hit.rows.findings?.[number]));
  }
}

/** Looks conditions up, and remembers the last ones. */
export class Search {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    this.phases = model.kinds.map((/** @type {{name: string}} */ kind) => kind.name);
    /** @type {Map<string, Hit>} */
    this.hits = new Map();
    /** @type {Map<string, ArrayLike<number>>} */
    this.sums = new Map();
    /** @type {Map<number, Uint32Array>} */
    this.findingLanes = new Map();
  }

  /** The times of the model are others. */
  forget() {
    this.hits.clear();
    this.sums.clear();
  }

  /** @param {string} text */
  find(text) {
    const { terms, errors } = parseSearch(text, this.phases);
    return new Found(this.model, errors, terms.map((term) => ({ term, hit: this.hit(term) })));
  }

  /**
   * The lanes of a finding that are drawn, in their order.
   * @param {number} number
   */
  lanesOf(number) {
    let lanes = this.findingLanes.get(number);
    if (!lanes) {
      const { streams } = this.model.findings.get(number) || { streams: [] };
      const { laneOf } = this.model;
      lanes = Uint32Array.from([...streams].filter((stream) => laneOf.has(stream)), (stream) => laneOf.get(stream) || 0).sort();
      this.findingLanes.set(number, lanes);
    }
    return lanes;
  }

  /** @param {Term} term */
  hit(term) {
    const key = JSON.stringify([term.kind, term.field?.columns, term.operator, term.text, term.number]);
    const cached = this.hits.get(key);
    if (cached) return cached;
    const hit = this.lookUp(term);
    if (this.hits.size >= MAX_REMEMBERED) this.hits.delete(/** @type {string} */ (this.hits.keys().next().value));
    this.hits.set(key, hit);
    return hit;
  }

  /**
   * @param {Term} term
   * @returns {Hit}
   */
  lookUp(term) {
    const { model } = this;
    const lanes = new Uint8Array(model.count);
    if (term.kind === "word") return this.word(term, lanes);
    const field = /** @type {Field} */ (term.field);
    if (term.kind === "stream") this.stream(term, lanes);
    else if (term.kind === "failed") this.failed(lanes);
    else if (field.place === "findings") return this.findingTerm(term, lanes);
    else if (field.place === "lanes") this.laneTerm(term, field, lanes);
    else return this.rowTerm(term, field, lanes);
    return { lanes, own: lanes, besides: lanes, strict: null, rows: {} };
  }

  /**
   * @param {Term} term
   * @param {Uint8Array} lanes
   */
  stream({ text, number }, lanes) {
    const { model } = this;
    if (!text) {
      const lane = model.laneOf.get(number);
      if (lane !== undefined) lanes[lane] = 1;
      return;
    }
    const streams = model.tables.lanes.values("transport_stream");
    for (let lane = 0; lane < lanes.length; lane += 1) if (streams[lane] === number && model.fact(lane, "transport") === text) lanes[lane] = 1;
  }

  /**
   * Who was not served: nobody answered, somebody refused, or the TLS handshake failed.
   * @param {Uint8Array} lanes
   */
  failed(lanes) {
    const { tables } = this.model;
    markTexts(tables.lanes.column("state"), (state) => state === "refused" || state === "unanswered", lanes);
    const rows = markTexts(tables.handshakes.column("outcome"), (outcome) => outcome === "failed", new Uint8Array(tables.handshakes.length));
    markOwners(tables.handshakes.values("lane"), rows, lanes);
  }

  /**
   * @param {Term} term
   * @param {Uint8Array} lanes
   * @returns {Hit}
   */
  findingTerm(term, lanes) {
    const match = matchText(term);
    const rows = this.findings(({ name, title }) => (term.operator === "!=" ? match(name) && match(title.toLowerCase()) : match(name) || match(title.toLowerCase())), lanes);
    return { lanes, own: lanes, besides: lanes, strict: "findings", rows: { findings: rows } };
  }

  /**
   * Findings that match, by number; their lanes are marked.
   * @param {(finding: Record<string, any>) => boolean} match
   * @param {Uint8Array} lanes
   */
  findings(match, lanes) {
    const { findings } = this.model;
    const rows = new Uint8Array(1 + [...findings.keys()].reduce((most, number) => Math.max(most, number), 0));
    for (const finding of findings.values()) {
      if (!match(finding)) continue;
      rows[finding.number] = 1;
      for (const lane of this.lanesOf(finding.number)) lanes[lane] = 1;
    }
    return rows;
  }

  /**
   * @param {Term} term
   * @param {Field} told
   * @param {Uint8Array} lanes
   */
  laneTerm(term, { name, measure, columns }, lanes) {
    const { model } = this;
    const table = model.tables.lanes;
    if (measure === "address") {
      const end = readEndpoint(term.text);
      const match = matchText({ ...term, text: end && !readAddress(term.text) ? end.ip : term.text });
      for (const column of columns) {
        const side = markTexts(table.column(column), match, new Uint8Array(lanes.length));
        const ports = table.values(column.replace("_ip", "_port"));
        for (let lane = 0; lane < lanes.length; lane += 1) lanes[lane] |= side[lane] && (!end || ports[lane] === end.port) ? 1 : 0;
      }
      if (name === "server" && !end && term.operator !== "!=") this.markGroups(matchText(term), lanes);
    } else if (measure === "text") {
      for (const column of columns) markTexts(table.column(column), matchText(term), lanes);
    } else if (measure === "port") {
      const [client, server] = columns.map((column) => table.values(column));
      const compare = COMPARE[term.operator];
      const both = term.operator === "!=";
      for (let lane = 0; lane < lanes.length; lane += 1) {
        const [one, other] = [compare(client[lane], term.number), compare(server[lane], term.number)];
        lanes[lane] = Number(both ? one && other : one || other);
      }
    } else {
      const values = this.laneSums(columns);
      markNumbers(values, null, term, lanes);
    }
  }

  /**
   * Numbers of each lane: a column, several added, or what is counted.
   * @param {string[]} columns
   */
  laneSums(columns) {
    const { model } = this;
    const key = columns.join();
    let values = this.sums.get(key);
    if (!values) {
      const [column] = columns;
      if (column.startsWith("phase:")) values = model.costs[this.phases.indexOf(column.slice("phase:".length))];
      else if (column === "requests") values = Uint32Array.from({ length: model.count }, (_, lane) => model.size(lane, "exchanges"));
      else if (column === "stalled") values = stalledTimes(model);
      else values = columns.length === 1 ? model.tables.lanes.values(column) : added(columns.map((name) => model.tables.lanes.values(name)));
      this.sums.set(key, values);
    }
    return values;
  }

  /**
   * A condition on the rows of another table.
   * @param {Term} term
   * @param {Field} told
   * @param {Uint8Array} lanes
   * @returns {Hit}
   */
  rowTerm(term, { measure, place, columns }, lanes) {
    const table = this.model.tables[place];
    const rows = new Uint8Array(table.length);
    if (place === "stalls") {
      const match = matchText(term);
      const kinds = this.model.stallKinds.map((/** @type {{name: string, word: string}} */ kind) => Number(term.operator === "!=" ? match(kind.name) && match(kind.word) : match(kind.name) || match(kind.word)));
      const kind = table.values("kind");
      for (let row = 0; row < rows.length; row += 1) rows[row] = kinds[kind[row]];
    } else if (measure === "time") {
      const values = columns.length === 1 ? table.values(columns[0]) : added(columns.map((name) => table.values(name)));
      const { valid } = table.column("wait_ns");
      markNumbers(values, valid, term, rows);
    } else for (const column of columns) markTexts(table.column(column), matchText(term), rows);
    markOwners(table.values("lane"), rows, lanes);
    return { lanes, own: lanes, besides: lanes, strict: place, rows: { [place]: rows } };
  }

  /**
   * A word is an address, a port, or a part of a text.
   * @param {Term} term
   * @param {Uint8Array} lanes
   * @returns {Hit}
   */
  word({ text }, lanes) {
    const { tables } = this.model;
    const wanted = text.toLowerCase();
    const match = (/** @type {string} */ value) => value.includes(wanted);
    for (const name of ["name", "app", "state"]) markTexts(tables.lanes.column(name), match, lanes);
    this.markGroups(match, lanes);
    const end = readAddress(wanted) ? null : readEndpoint(wanted);
    const address = matchAddress(end ? end.ip : wanted);
    const port = end ? end.port : /^\d{1,5}$/.test(wanted) ? Number(wanted) : null;
    for (const side of ["client", "server"]) {
      const ips = markTexts(tables.lanes.column(`${side}_ip`), address, new Uint8Array(lanes.length));
      const ports = tables.lanes.values(`${side}_port`);
      for (let lane = 0; lane < lanes.length; lane += 1) {
        const same = ports[lane] === port;
        if (end ? ips[lane] && same : ips[lane] || same) lanes[lane] = 1;
      }
    }
    const own = lanes.slice();
    /** @type {Partial<Record<Place, Uint8Array>>} */
    const rows = {};
    for (const [place, columns] of /** @type {[Place, string[]][]} */ (Object.entries(WORD_COLUMNS))) {
      const table = tables[place];
      const mask = new Uint8Array(table.length);
      for (const column of columns) markTexts(table.column(column), match, mask);
      markOwners(table.values("lane"), mask, lanes);
      rows[place] = mask;
    }
    const besides = lanes.slice();
    rows.findings = this.findings(({ name, title }) => match(name) || match(title.toLowerCase()), lanes);
    return { lanes, own, besides, strict: null, rows };
  }

  /**
   * Lanes of servers whose address with port, or title, matches.
   * @param {(text: string) => boolean} match
   * @param {Uint8Array} lanes
   */
  markGroups(match, lanes) {
    const { group, groups } = this.model;
    const meant = groups.map(({ title }) => Number(match((title || "").toLowerCase())));
    for (let lane = 0; lane < lanes.length; lane += 1) lanes[lane] |= meant[group[lane]];
  }
}

/* Texts of columns in lower case: there may be as many as rows. @type {WeakMap<string[], string[]>} */
const lowered = new WeakMap();

/** @param {string[]} texts */
function inLowerCase(texts) {
  let lower = lowered.get(texts);
  if (!lower) {
    lower = texts.map((text) => text.toLowerCase());
    lowered.set(texts, lower);
  }
  return lower;
}

/**
 * Mark the rows whose text, in lower case, matches: each text is looked at once.
 * @param {Column} column
 * @param {(text: string) => boolean} match
 * @param {Uint8Array} rows
 */
function markTexts({ values, valid, texts }, match, rows) {
  const meant = new Uint8Array(texts ? texts.length : 0);
  const lower = inLowerCase(texts || []);
  for (let code = 0; code < meant.length; code += 1) meant[code] = Number(match(lower[code]));
  if (!meant.includes(1)) return rows;
  for (let row = 0; row < rows.length; row += 1) if (meant[values[row]] && (!valid || valid[row])) rows[row] = 1;
  return rows;
}

/**
 * Mark the rows whose number compares; one that is not known does not.
 * @param {ArrayLike<number>} values
 * @param {Uint8Array | null} valid
 * @param {Term} term
 * @param {Uint8Array} rows
 */
function markNumbers(values, valid, { operator, number }, rows) {
  const compare = COMPARE[operator];
  for (let row = 0; row < rows.length; row += 1) if (compare(values[row], number) && (!valid || valid[row])) rows[row] = 1;
}

/**
 * Mark the lanes that marked rows belong to.
 * @param {ArrayLike<number>} owner
 * @param {Uint8Array} rows
 * @param {Uint8Array} lanes
 */
function markOwners(owner, rows, lanes) {
  for (let row = 0; row < rows.length; row += 1) if (rows[row]) lanes[owner[row]] = 1;
}

/**
 * Columns, row by row together.
 * @param {ArrayLike<number>[]} columns
 */
export function added(columns) {
  const sums = new Float64Array(columns[0].length);
  for (const values of columns) for (let row = 0; row < sums.length; row += 1) sums[row] += values[row];
  return sums;
}

/**
 * How long each lane was stalled.
 * @param {Model} model
 */
export function stalledTimes(model) {
  if (model.stalled) return model.stalled;
  const sums = new Float64Array(model.count);
  const { from, start, end } = model.stalls;
  for (let lane = 0; lane < model.count; lane += 1) for (let i = from[lane]; i < from[lane + 1]; i += 1) sums[lane] += end[i] - start[i];
  model.stalled = sums;
  return sums;
}
