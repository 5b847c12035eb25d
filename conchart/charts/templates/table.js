/* The table of connections: sorted by any column, grown by hand so that thousands of rows never stand in the page at once. */

const FIRST_ROWS = 200;
const MORE_ROWS = 500;

function tableColumns(model) {
  const used = (name) => model.lanes.some((lane) => lane.costs[name]);
  const number = (title, help, value, show) => ({ title, help, value, show, numeric: true });
  const text = (title, help, value, clipped) => ({ title, help, value, show: (v) => v || "", clipped });
  return [
    number("#", "number of the connection in this file", (l) => l.stream, String),
    text("Client", "who opened the connection", (l) => l.client, true),
    text("Server", "who accepted it", (l) => l.server, true),
    ...(model.lanes.some((l) => l.name) ? [text("Name", "SNI, or the Host of the first request", (l) => l.name, true)] : []),
    text("Protocol", "", (l) => l.app),
    number("Opened", "ms since the start of the capture", (l) => l.opened, inMs),
    number("Waited", "from the first SYN or a request to the last byte of its response, ms", (l) => l.waited_ns, inMs),
    number("Total", "from its first to its last packet, ms", (l) => l.duration, inMs),
    ...model.kinds.filter((kind) => used(kind.name)).map((kind) => ({ ...number(kind.name, `${kind.title}, ms`, (l) => l.costs[kind.name] || 0, (v) => (v ? inMs(v) : "")), kind: kind.name })),
    ...(model.lanes.some((l) => l.stalled_ns) ? [number("Stalled", "time in which the next byte did not come although it could have; part of the phases, ms", (l) => l.stalled_ns, (v) => (v ? inMs(v) : ""))] : []),
    number("Reqs", "requests", (l) => l.requests, count),
    text("Handshake", "kind of TLS handshake", (l) => l.handshake),
    number("Bytes", "both ways, without repetitions", (l) => l.bytes, bytes),
    number("Resent", "retransmitted segments", (l) => l.retransmits, (v) => (v ? count(v) : "")),
    text("State", "", (l) => l.state),
  ];
}

class Table {
  constructor(model, { onChoose }) {
    Object.assign(this, { model, onChoose, columns: tableColumns(model), by: 0, down: false, limit: FIRST_ROWS, chosen: null });
    this.node = document.getElementById("table");
    this.more = document.getElementById("more");
    this.note = document.getElementById("table-note");
    this.more.addEventListener("click", () => {
      this.limit += MORE_ROWS;
      this.fill();
    });
    this.head();
    this.show(model.lanes);
  }

  head() {
    const cells = this.columns.map((column, i) => {
      const button = el("button", { type: "button", title: column.help || null, class: column.kind ? `k-${column.kind}` : null }, column.title);
      button.addEventListener("click", () => this.sortBy(i));
      return el("th", { scope: "col", class: column.numeric ? "n" : null }, button);
    });
    this.node.tHead.replaceChildren(el("tr", {}, cells));
  }

  /* A second click turns the order round; numbers start with the largest, which is what one looks for. */
  sortBy(index) {
    this.down = this.by === index ? !this.down : Boolean(this.columns[index].numeric) && index > 0;
    this.by = index;
    this.limit = FIRST_ROWS;
    this.show(this.lanes);
  }

  show(lanes) {
    this.lanes = lanes;
    const { value, numeric } = this.columns[this.by];
    const sign = this.down ? -1 : 1;
    const order = numeric ? (a, b) => value(a) - value(b) : (a, b) => String(value(a) || "").localeCompare(String(value(b) || ""), "en", { numeric: true });
    this.sorted = [...lanes].sort((a, b) => sign * order(a, b) || a.stream - b.stream);
    for (const [i, cell] of [...this.node.tHead.rows[0].cells].entries()) {
      const now = i === this.by;
      cell.setAttribute("aria-sort", now ? (this.down ? "descending" : "ascending") : "none");
      cell.firstChild.textContent = this.columns[i].title + (now ? (this.down ? " ▼" : " ▲") : "");
    }
    this.fill();
  }

  fill() {
    const shown = this.sorted.slice(0, this.limit);
    this.node.tBodies[0].replaceChildren(...shown.map((lane) => this.row(lane)));
    this.more.hidden = shown.length === this.sorted.length;
    this.note.textContent = this.more.hidden ? "" : `${count(shown.length)} of ${count(this.sorted.length)} rows`;
  }

  row(lane) {
    const cells = this.columns.map((column) => {
      const shown = column.show(column.value(lane));
      return el("td", { class: column.numeric ? "n" : column.clipped ? "clip" : null, title: column.clipped ? shown : null }, shown);
    });
    const node = el("tr", { "data-stream": lane.stream, tabindex: 0, class: lane.stream === this.chosen ? "chosen" : null }, cells);
    node.addEventListener("click", () => this.onChoose(lane, { zoom: true, scroll: true }));
    node.addEventListener("keydown", (event) => event.key === "Enter" && this.onChoose(lane, { zoom: true, scroll: true }));
    return node;
  }

  /* Mark a row (or none); with `reveal`, scroll the table (not the page) to it. */
  choose(lane, reveal) {
    this.chosen = lane ? lane.stream : null;
    const index = this.sorted.indexOf(lane);
    if (reveal && index >= this.limit) {
      this.limit = index + 1;
      this.fill();
    }
    for (const row of this.node.tBodies[0].rows) {
      row.classList.toggle("chosen", Number(row.dataset.stream) === this.chosen);
      if (reveal && row.classList.contains("chosen")) {
        const box = document.getElementById("table-box");
        box.scrollTop = row.offsetTop - box.clientHeight / 2;
      }
    }
  }
}
