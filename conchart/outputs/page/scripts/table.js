/* A table below the lanes, and the tabs that choose which. Only rows in view stand in the page, so that 200,000 scroll as six
   do. */

import { copyButton } from "./copy.js";
import { count, el } from "./format.js";
import { connectionsTable, filterOf, findingsTable, handshakesTable, queriesTable, requestsTable, sortRows } from "./listings.js";

/** @typedef {import("./model.js").Model} Model */
/** @typedef {import("./search.js").Search} Search */
/** @typedef {import("./search.js").Found} Found */
/** @typedef {import("./listings.js").Shown} Shown */
/** @typedef {import("./listings.js").Listing} Listing */

/* Rows above and below what is in view, so that scrolling by a few shows no gap. */
const SPARE = 12;
/* Browsers lay out no more than some millions of pixels: beyond, a pixel scrolls further than a pixel. */
const MOST_PIXELS = 8e6;
/* Rows of which the width of a column is taken, and the most letters that it gets. */
const SAMPLE = 300;
const MOST_LETTERS = 34;
/* Room for the button that copies, in the first column of rows that are about a connection. */
const COPY_LETTERS = 5;
const PRINTED_ROWS = 200;

export class TableView {
  /**
   * @param {Model} model
   * @param {Search} search
   * @param {import("./state.js").State} state
   * @param {{onChoose: (lane: number, how: object) => void, onFinding: (finding: Record<string, any>) => void}} told
   */
  constructor(model, search, state, { onChoose, onFinding }) {
    this.model = model;
    this.search = search;
    this.state = state;
    this.onChoose = onChoose;
    this.onFinding = onFinding;
    this.findings = [...model.findings.values()].sort((a, b) => a.number - b.number);
    this.listings = [connectionsTable(model), requestsTable(model), queriesTable(model), handshakesTable(model), findingsTable(model, this.findings)].filter(({ rows }) => rows > 0);
    /** By table: what it was sorted by when it was last open. @type {Map<string, {column: string, down: boolean}>} */
    this.sorts = new Map();
    /** By table and what it is sorted by: all its rows. @type {Map<string, Uint32Array>} */
    this.orders = new Map();
    /** By table: 1 for each row that is kept. @type {Map<string, Uint8Array>} */
    this.masks = new Map();
    /** By table: how wide columns are, in letters. @type {Map<string, number[]>} */
    this.widths = new Map();
    /** The row that has the focus, or would have it. */
    this.at = 0;
    /** @type {Uint32Array} */
    this.sorted = new Uint32Array(0);
    this.rowHeight = 24;
    this.box = /** @type {HTMLElement} */ (document.getElementById("table-box"));
    this.room = /** @type {HTMLElement} */ (document.getElementById("table-room"));
    this.node = /** @type {HTMLTableElement} */ (document.getElementById("table"));
    this.note = /** @type {HTMLElement} */ (document.getElementById("table-note"));
    this.tabs = this.makeTabs();
    /** The one that is open. @type {Listing} */
    this.listing = this.listings[0];
    this.head();
    this.listen();
  }

  /** The times of the model are others. */
  forget() {
    this.orders.clear();
  }

  makeTabs() {
    const list = /** @type {HTMLElement} */ (document.getElementById("tabs"));
    const tabs = this.listings.map((listing) => {
      const tab = el("button", { type: "button", role: "tab", id: `tab-${listing.id}`, "aria-controls": "table-panel" }, `${listing.title} `, el("span", {}));
      tab.addEventListener("click", () => this.open(listing.id));
      return tab;
    });
    list.replaceChildren(...tabs);
    list.addEventListener("keydown", (event) => {
      const now = this.listings.indexOf(this.listing);
      const last = tabs.length - 1;
      const next = { ArrowRight: now === last ? 0 : now + 1, ArrowLeft: now === 0 ? last : now - 1, Home: 0, End: last }[event.key];
      if (next === undefined) return;
      event.preventDefault();
      this.open(this.listings[next].id);
      tabs[next].focus();
    });
    return tabs;
  }

  /**
   * Open a table by its name; one that is not there is not opened.
   * @param {string} id
   */
  open(id) {
    const listing = this.listings.find((one) => one.id === id);
    if (!listing || listing === this.listing) return;
    this.state.change(this.possible(id, this.sorts.get(id) || null));
  }

  /** What the open table is sorted by. */
  get sort() {
    return this.state.shown.sort || { column: this.listing.first, down: false };
  }

  /** The lane of the chosen connection. */
  get chosen() {
    const { chosen } = this.state.shown;
    return chosen === null ? null : (this.model.laneOf.get(chosen) ?? null);
  }

  /**
   * What of a link's table and order is here.
   * @param {string} tab empty for the first table
   * @param {{column: string, down: boolean} | null} sort
   */
  possible(tab, sort) {
    const [first] = this.listings;
    const listing = this.listings.find(({ id }) => id === tab) || first;
    return { tab: listing === first ? "" : listing.id, sort: sort && listing.columns.some(({ id }) => id === sort.column) ? sort : null };
  }

  /**
   * Show what has changed.
   * @param {Set<import("./state.js").Name>} changed
   */
  follow(changed) {
    const { tab, sort } = this.state.shown;
    if (changed.has("chosen")) this.mark();
    if (!changed.has("tab") && !changed.has("sort")) return;
    const listing = this.listings.find(({ id }) => id === tab) || this.listings[0];
    if (sort) this.sorts.set(listing.id, sort);
    else this.sorts.delete(listing.id);
    this.at = 0;
    this.box.scrollTop = 0;
    if (listing !== this.listing) {
      this.listing = listing;
      this.head();
    }
    this.arrange();
  }

  /* The titles, as wide as what stands below them; a column keeps its width when other rows come into view. */
  head() {
    const { columns, id, rows } = this.listing;
    const cells = columns.map((column) => {
      const button = el("button", { type: "button", title: column.help || null, class: column.swatch ? `k-${column.swatch}` : null }, column.title);
      button.addEventListener("click", () => this.sortBy(column));
      return el("th", { scope: "col", class: column.numeric ? "n" : null }, button);
    });
    this.node.tHead?.replaceChildren(el("tr", { "aria-rowindex": 1 }, cells));
    const step = Math.max(1, rows / SAMPLE);
    const widths = this.widths.get(id) || columns.map(({ title, show }, i) => {
      let most = title.length + 1 + (i === 0 && this.listing.lane ? COPY_LETTERS : 0);
      for (let row = 0; row < rows; row += step) most = Math.max(most, show(Math.floor(row)).length);
      return Math.min(MOST_LETTERS, most) + 1.5;
    });
    this.widths.set(id, widths);
    this.node.querySelector("colgroup")?.replaceChildren(...widths.map((letters) => el("col", { style: `width:${letters}ch` })));
    this.node.style.minWidth = `${widths.reduce((sum, letters) => sum + letters, 0)}ch`;
    for (const [i, tab] of this.tabs.entries()) {
      const open = this.listings[i] === this.listing;
      tab.setAttribute("aria-selected", String(open));
      tab.tabIndex = open ? 0 : -1;
      if (open) document.getElementById("table-panel")?.setAttribute("aria-labelledby", tab.id);
    }
  }

  /**
   * A second click turns the order round; numbers start with the largest, which is what one looks for.
   * @param {Shown} column
   */
  sortBy({ id, numeric }) {
    const now = this.sort;
    this.state.change({ sort: { column: id, down: now.column === id ? !now.down : numeric && id !== this.listing.first } });
  }

  /**
   * Keep these lanes, and what a search found of the other tables.
   * @param {Uint8Array} filtered by lane
   * @param {Found} found
   */
  show(filtered, found) {
    for (const [i, { id, rows }] of this.listings.entries()) {
      const mask = id === "connections" ? filtered
        : id === "findings" ? Uint8Array.from(this.findings, ({ number }) => Number(found.finds(number, this.search.lanesOf(number), filtered)))
          : id === "queries" ? found.queries(filtered)
            : found.rows(id === "requests" ? "exchanges" : "handshakes", filtered);
      this.masks.set(id, mask);
      const shown = mask.reduce((sum, one) => sum + one, 0);
      const [number] = this.tabs[i].children;
      number.textContent = shown === rows ? count(rows) : `${count(shown)} of ${count(rows)}`;
    }
    this.at = 0;
    this.box.scrollTop = 0;
    this.arrange();
  }

  /**
   * All rows of the open table, sorted; what is equal, as it would be from the start.
   * @param {string} column
   * @param {boolean} down
   * @returns {Uint32Array}
   */
  orderBy(column, down) {
    const { id, columns, rows, first } = this.listing;
    const key = `${id} ${column} ${down}`;
    let order = this.orders.get(key);
    if (!order) {
      const { keys } = columns.find((one) => one.id === column) || columns[0];
      const from = column === first ? Uint32Array.from({ length: rows }, (_, row) => row) : this.orderBy(first, false);
      order = sortRows(from, keys(), down);
      this.orders.set(key, order);
    }
    return order;
  }

  /* Put the kept rows into their order. */
  arrange() {
    const { id, columns, rows } = this.listing;
    const { column, down } = this.sort;
    const order = this.orderBy(column, down);
    const mask = this.masks.get(id);
    this.sorted = mask ? order.filter((row) => mask[row]) : order;
    for (const [i, cell] of [...(this.node.tHead?.rows[0].cells || [])].entries()) {
      const now = columns[i].id === column;
      cell.setAttribute("aria-sort", now ? (down ? "descending" : "ascending") : "none");
      if (cell.firstChild) cell.firstChild.textContent = columns[i].title + (now ? (down ? " ▼" : " ▲") : "");
    }
    this.note.textContent = this.sorted.length ? (this.sorted.length === rows ? "" : `${count(this.sorted.length)} of ${count(rows)} rows`) : "No row has all that is looked for.";
    this.node.setAttribute("aria-rowcount", String(this.sorted.length + 1));
    this.node.tBodies[0].replaceChildren();
    this.fill();
  }

  /* Height of what can be scrolled, without the heading. */
  get depth() {
    return Math.min(MOST_PIXELS, this.sorted.length * this.rowHeight);
  }

  /* How many rows are in view at once. */
  get page() {
    const heading = this.node.tHead?.offsetHeight || 0;
    return Math.max(1, (this.box.clientHeight - heading) / this.rowHeight);
  }

  /* Which row is at the top of the view, with its fraction. */
  get top() {
    const rows = this.sorted.length;
    const most = this.depth - this.page * this.rowHeight;
    return most <= 0 ? 0 : Math.min(1, this.box.scrollTop / most) * (rows - this.page);
  }

  set top(row) {
    const rows = this.sorted.length;
    if (rows > this.page) this.box.scrollTop = (row / (rows - this.page)) * (this.depth - this.page * this.rowHeight);
  }

  /* Fill in the rows in view. */
  fill() {
    const heading = this.node.tHead?.offsetHeight || 0;
    this.room.style.height = `${heading + this.depth}px`;
    const top = this.top;
    const from = Math.max(0, Math.floor(top) - SPARE);
    this.put(from, Math.min(this.sorted.length, Math.ceil(top + this.page) + SPARE));
    this.node.style.marginTop = `${Math.max(0, this.box.scrollTop - (top - from) * this.rowHeight)}px`;
    const height = this.node.tBodies[0].rows[0]?.getBoundingClientRect().height;
    if (height && Math.abs(height - this.rowHeight) > 0.01) {
      this.rowHeight = height;
      this.fill();
    }
  }

  /**
   * Have these rows in the page. Those that stand there already stay, so that a click or the focus is not lost with them.
   * @param {number} from
   * @param {number} to
   */
  put(from, to) {
    const [body] = this.node.tBodies;
    const focused = body.contains(document.activeElement);
    const place = (/** @type {HTMLTableRowElement} */ row) => Number(row.dataset.at);
    for (const row of [...body.rows]) if (place(row) < from || place(row) >= to) row.remove();
    const [here, until] = body.rows.length ? [place(body.rows[0]), place(body.rows[body.rows.length - 1]) + 1] : [to, to];
    const make = (/** @type {number} */ first, /** @type {number} */ last) => Array.from(this.sorted.subarray(first, Math.max(first, last)), (row, i) => this.row(row, first + i));
    body.prepend(...make(from, here));
    body.append(...make(until, to));
    const reached = this.at >= from && this.at < to ? this.at : from;
    for (const row of body.rows) row.tabIndex = place(row) === reached ? 0 : -1;
    if (focused && !body.contains(document.activeElement)) this.box.focus({ preventScroll: true });
  }

  /**
   * @param {number} row
   * @param {number} at its place in the order
   */
  row(row, at) {
    const { columns, lane: laneOf } = this.listing;
    const { model } = this;
    const lane = laneOf && laneOf(row);
    const cells = columns.map((column) => {
      const shown = column.show(row);
      return el("td", { class: column.numeric ? "n" : "clip", title: column.clipped ? shown : null }, shown);
    });
    if (lane !== null) {
      const filter = filterOf(model, lane);
      const copy = copyButton(`Copy ${filter}`, () => filter, "copy");
      copy.tabIndex = -1;
      cells[0].prepend(copy);
    }
    return el("tr", {
      "data-at": at, "data-stream": lane === null ? null : model.streams[lane], "data-finding-row": laneOf ? null : this.findings[row].number,
      "aria-rowindex": at + 2, class: lane !== null && lane === this.chosen ? "chosen" : null,
    }, cells);
  }

  listen() {
    let pending = false;
    const refill = () => {
      if (pending) return;
      pending = true;
      requestAnimationFrame(() => {
        pending = false;
        this.fill();
      });
    };
    this.box.addEventListener("scroll", refill);
    new ResizeObserver(refill).observe(this.box);
    const placeOf = (/** @type {Event} */ event) => {
      const row = event.target instanceof Element ? event.target.closest("tbody tr") : null;
      return row instanceof HTMLElement ? Number(row.dataset.at) : null;
    };
    this.box.addEventListener("click", (event) => {
      const at = placeOf(event);
      if (at !== null && !getSelection()?.toString()) this.enter(at);
    });
    this.box.addEventListener("focusin", (event) => { this.at = placeOf(event) ?? this.at; });
    this.box.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || (event.target instanceof Element && event.target.closest("thead, button"))) return;
      const page = Math.max(1, Math.floor(this.page) - 1);
      const next = { ArrowDown: this.at + 1, ArrowUp: this.at - 1, PageDown: this.at + page, PageUp: this.at - page, Home: 0, End: this.sorted.length - 1 }[event.key];
      if (event.key === "Enter") this.enter(this.at);
      else if (next !== undefined) this.go(next);
      else return;
      event.preventDefault();
    });
    // Paper does not scroll.
    window.addEventListener("beforeprint", () => {
      this.room.style.height = "";
      this.node.style.marginTop = "";
      this.put(0, Math.min(this.sorted.length, PRINTED_ROWS));
    });
    window.addEventListener("afterprint", () => this.fill());
  }

  /**
   * Choose what a row is about.
   * @param {number} at
   */
  enter(at) {
    if (at >= this.sorted.length) return;
    this.at = at;
    const row = this.sorted[at];
    if (!this.listing.lane) {
      this.onFinding(this.findings[row]);
      return;
    }
    const lane = this.listing.lane(row);
    if (lane !== null) this.onChoose(lane, { zoom: true });
  }

  /**
   * Give a row the focus, and bring it into view.
   * @param {number} at
   */
  go(at) {
    if (!this.sorted.length) return;
    this.at = Math.min(this.sorted.length - 1, Math.max(0, at));
    this.bring(this.at);
    /** @type {HTMLElement | null} */ (this.node.querySelector(`tr[data-at="${this.at}"]`))?.focus({ preventScroll: true });
  }

  /**
   * Scroll the table (not the page) to a row, if it is out of view.
   * @param {number} at
   */
  bring(at) {
    const { top, page } = this;
    if (at < top) this.top = at;
    else if (at + 1 > top + page) this.top = at + 1 - page;
    this.fill();
  }

  /* From the keyboard to the table. */
  focus() {
    this.box.scrollIntoView({ block: "nearest" });
    if (this.sorted.length) this.go(this.at);
    else this.box.focus();
  }

  /* Scroll to the first row of the chosen connection. */
  bringChosen() {
    const { chosen, listing: { lane: laneOf } } = this;
    const at = chosen !== null && laneOf ? this.sorted.findIndex((row) => laneOf(row) === chosen) : -1;
    if (at < 0) return;
    this.at = at;
    this.bring(at);
  }

  /* Mark the rows of the chosen connection. */
  mark() {
    const stream = String(this.state.shown.chosen);
    for (const row of this.node.tBodies[0].rows) row.classList.toggle("chosen", row.dataset.stream === stream);
  }
}
