/* Tables as they travel in the page: columns of byte planes (conchart/native/src/packing.rs), compressed, in base64. */

/**
 * What the page says of a column.
 * @typedef {{name: string, base: string | null, width: number, delta: boolean, least: number, valid: boolean, texts: string[] | null}} Declaration
 */
/* What columns of the lane that a row belongs to are called, where another column is counted from them. */
const OF_LANES = "lanes.";

/**
 * Undo base64 (RFC 4648 section 4). Letter by letter, as an iterator would give them, takes thirty times as long.
 * @param {string} text
 */
function decoded(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** A part of the page is not what conchart wrote: the file was cut, or changed on its way. */
export class Damaged extends Error {
  /** @param {string} part */
  constructor(part) {
    super(`part "${part}" cannot be read`);
    this.name = "Damaged";
  }
}

/**
 * Undo base64 and DEFLATE (RFC 1951).
 * @param {string} text
 * @returns {Promise<Uint8Array>}
 */
export async function inflate(text) {
  const stream = new Blob([decoded(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/**
 * Values of a column, each a number; of texts, the number of the text.
 * @param {Declaration} column
 * @param {Uint8Array} bytes
 * @param {number} at where its planes begin
 * @param {number} rows
 */
export function readValues(column, bytes, at, rows) {
  const values = column.base || column.width > 3 || column.delta || column.least < 0 || column.least > 2 ** 30 ? new Float64Array(rows) : new Int32Array(rows);
  const { width, delta, least } = column;
  let before = least;
  for (let row = 0; row < rows; row += 1) {
    let code = 0;
    for (let plane = width - 1; plane >= 0; plane -= 1) code = code * 256 + bytes[at + plane * rows + row];
    if (delta) before += code % 2 ? -(code + 1) / 2 : code / 2;
    else before = least + code;
    values[row] = before;
  }
  return values;
}

/** A column: numbers with what is known of them, or texts. */
export class Column {
  /**
   * @param {string} name
   * @param {Float64Array | Int32Array} values
   * @param {Uint8Array | null} valid 1 where there is a value; null where there is one everywhere
   * @param {string[] | null} texts
   */
  constructor(name, values, valid, texts) {
    Object.assign(this, { name });
    this.values = values;
    this.valid = valid;
    this.texts = texts;
  }

  /**
   * The value of a row: null where it is not known.
   * @param {number} row
   * @returns {any}
   */
  get(row) {
    if (this.valid && !this.valid[row]) return null;
    return this.texts ? this.texts[this.values[row]] : this.values[row];
  }
}

/**
 * Unpack an element of the page.
 * @param {Element | null} element
 * @param {string} part what it is called in messages
 */
async function unpack(element, part) {
  try {
    return await inflate(element?.textContent || "");
  } catch {
    throw new Damaged(part);
  }
}

/** Columns of the same length. */
export class Table {
  /**
   * @param {Declaration[]} declarations
   * @param {number} rows
   * @param {Uint8Array} bytes
   * @param {Table} [lanes]
   */
  constructor(declarations, rows, bytes, lanes) {
    this.length = rows;
    /** @type {Map<string, Column>} */
    this.columns = new Map();
    let at = 0;
    for (const column of declarations) {
      const values = readValues(column, bytes, at, rows);
      at += column.width * rows;
      const valid = column.valid ? bytes.subarray(at, at + rows) : null;
      at += column.valid ? rows : 0;
      if (column.base) this.count(values, column.base, lanes);
      this.columns.set(column.name, new Column(column.name, values, valid, column.texts));
    }
    if (at !== bytes.length) throw new Error(`${bytes.length} bytes in place of ${at}`);
  }

  /**
   * Values that were counted from another column, from nought: that of the same row, or of the row's lane.
   * @param {Float64Array | Int32Array} values
   * @param {string} base
   * @param {Table} [lanes]
   */
  count(values, base, lanes) {
    const of = base.startsWith(OF_LANES) ? this.values("lane") : null;
    const from = of && lanes ? lanes.column(base.slice(OF_LANES.length)) : this.column(base);
    for (let row = 0; row < values.length; row += 1) {
      const there = of ? of[row] : row;
      if (!from.valid || from.valid[there]) values[row] += from.values[there];
    }
  }

  /**
   * @param {string} name
   * @returns {Column}
   */
  column(name) {
    const column = this.columns.get(name);
    if (!column) throw new Error(`no column ${name}`);
    return column;
  }

  /**
   * The numbers of a column, as they are.
   * @param {string} name
   */
  values(name) {
    return this.column(name).values;
  }

  /**
   * Give these columns room for numbers of any size.
   * @param {string[]} names
   */
  widen(names) {
    for (const name of names) {
      const column = this.column(name);
      if (column.values instanceof Int32Array) column.values = Float64Array.from(column.values);
    }
  }

  /**
   * A row as an object.
   * @param {number} row
   * @returns {Record<string, any>}
   */
  row(row) {
    /** @type {Record<string, any>} */
    const object = {};
    for (const [name, column] of this.columns) object[name] = column.get(row);
    return object;
  }

  /**
   * Where the rows of each lane begin; the last number is where those of the last lane end. Rows stand in the order of
   * their lanes.
   * @param {number} lanes
   */
  offsets(lanes) {
    const offsets = new Uint32Array(lanes + 1);
    for (const lane of this.values("lane")) offsets[lane + 1] += 1;
    for (let lane = 0; lane < lanes; lane += 1) offsets[lane + 1] += offsets[lane];
    return offsets;
  }
}

/**
 * Read what the page says of the whole, or another part of it.
 * @param {Document} document
 * @returns {Promise<any>}
 */
export async function readHead(document, part = "data") {
  const bytes = await unpack(document.getElementById(part), part);
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    throw new Damaged(part);
  }
}

/**
 * Read the page's blocks: what is said of the whole, and the tables.
 * @param {Document} document
 * @returns {Promise<{data: any, tables: Record<string, Table>}>}
 */
export async function readBlocks(document) {
  const blocks = [...document.querySelectorAll("script[data-table]")];
  const names = blocks.map((block) => block.getAttribute("data-table") || "");
  const [data, ...packed] = await Promise.all([readHead(document), ...blocks.map((block, i) => unpack(block, names[i]))]);
  /** @type {Record<string, Table>} */
  const tables = {};
  blocks.forEach((block, i) => {
    const { rows, columns } = data.tables[names[i]];
    try {
      tables[names[i]] = new Table(columns, rows, packed[i], tables.lanes);
    } catch {
      throw new Damaged(names[i]);
    }
    block.remove();
  });
  return { data, tables };
}

/**
 * Run Plotly, which travels compressed, too: the page's policy knows it by its hash, and refuses any other script.
 * @param {Document} document
 */
export async function loadPlotly(document) {
  const script = document.createElement("script");
  script.textContent = new TextDecoder().decode(await unpack(document.getElementById("plotly"), "plotly"));
  document.head.append(script);
  if (typeof Plotly === "undefined") throw new Damaged("plotly");
}
