/* The lanes while somebody zooms or pans. Plotly takes 40 ms or more to draw them, however little has changed. So what it
   drew is moved and stretched along the time axis, and drawn anew when the movement rests. */

/** @typedef {{x0: number, x1: number}} Interval in ns */
/** @typedef {{left: number, width: number}} Place where the lanes lie in the plot, in pixels */
/**
 * What depends on time. In pixels from where the lanes begin: where something is that keeps its size; where the
 * coordinates begin of something that is stretched.
 * @typedef {{node: SVGElement, at: number}} Part
 * @typedef {{stretched: Part[], fixed: Part[], beside: Part[]}} Parts those beside the lanes are not cut off where these end
 */

/* When nothing has moved for so long, in ms, the lanes are drawn. */
const STILL = 100;
/* During a long movement, for each ms that the lanes took to be drawn, so many pass before they are drawn again. */
const TIMES_APART = 6;

/** When the lanes are drawn: when a movement rests, and, in a long one, as often as takes little of the time. */
export class Rhythm {
  constructor() {
    /** How long the last drawing took, in ms. */
    this.took = 0;
    /** When the movement began, or went on after a drawing. @type {number | null} */
    this.since = null;
    this.still = 0;
  }

  /**
   * @param {number} began
   * @param {number} ended
   */
  drew(began, ended) {
    Object.assign(this, { took: ended - began, since: null });
    clearTimeout(this.still);
  }

  /**
   * Whether a step of a movement is to be drawn.
   * @param {number} now
   */
  due(now) {
    this.since ??= now;
    return now - this.since > TIMES_APART * this.took;
  }

  /** @param {() => void} draw */
  whenStill(draw) {
    clearTimeout(this.still);
    this.still = window.setTimeout(draw, STILL);
  }
}

/**
 * How what was drawn for one interval becomes another: in times of its width, and in pixels.
 * @param {Interval} drawn
 * @param {Interval} view
 * @param {number} width
 */
export function movement(drawn, view, width) {
  const span = view.x1 - view.x0;
  return { scale: (drawn.x1 - drawn.x0) / span, by: ((drawn.x0 - view.x0) / span) * width };
}

/** What Plotly drew, moved to where it is now. */
export class Moving {
  /** @param {PlotlyElement} plot */
  constructor(plot) {
    this.plot = plot;
    /** @type {Interval} */
    this.drawn = { x0: 0, x1: 1 };
    /** Looked for when something moves. @type {Parts | null} */
    this.parts = null;
  }

  /**
   * Plotly's elements that depend on time; what it has to draw at an instant has the number of that in its layout.
   * @param {Place} place
   * @returns {Parts}
   */
  find({ left, width }) {
    const { plot, drawn } = this;
    const all = (/** @type {string} */ selector) => /** @type {SVGElement[]} */ ([...plot.querySelectorAll(selector)]);
    const x = (/** @type {number} */ at) => ((at - drawn.x0) / (drawn.x1 - drawn.x0)) * width;
    const translated = (/** @type {Element} */ node) => Number(/\(([^,)]+)/.exec(node.getAttribute("transform") || "")?.[1] ?? 0);
    const listed = (/** @type {string} */ kind, /** @type {string} */ selector) => all(selector).map((node) => ({ node, one: plot.layout[kind][Number(node.dataset.index)] })).filter(({ one }) => one?.xref === "x");
    const shapes = listed("shapes", ".shapelayer path[data-index]");
    const notes = listed("annotations", ".annotation[data-index]");
    return {
      stretched: [
        ...all(".scatterlayer .fills").map((node) => ({ node, at: 0 })),
        ...shapes.filter(({ one }) => one.x0 !== one.x1).map(({ node }) => ({ node, at: -left })),
      ],
      fixed: [
        ...all(".scatterlayer .point").map((node) => ({ node, at: translated(node) })),
        ...all(".scatterlayer .textpoint").map((node) => ({ node, at: Number(node.firstElementChild?.getAttribute("x")) })),
        ...shapes.filter(({ one }) => one.x0 === one.x1).map(({ node, one }) => ({ node, at: x(one.x0) })),
      ],
      beside: [
        ...all(".xgrid, path.xtick, .xtick text").map((node) => ({ node, at: translated(node) - left })),
        ...notes.map(({ node, one }) => ({ node, at: x(one.x) })),
      ],
    };
  }

  /**
   * Show another interval.
   * @param {Interval} view
   * @param {Place} place
   */
  show(view, place) {
    this.parts ||= this.find(place);
    const { stretched, fixed, beside } = this.parts;
    const { scale, by } = movement(this.drawn, view, place.width);
    // As styles, because attributes are Plotly's.
    for (const { node, at } of stretched) node.style.transform = `translate(${by + at * (scale - 1)}px) scale(${scale}, 1)`;
    for (const { node, at } of [...fixed, ...beside]) node.style.translate = `${at * (scale - 1) + by}px`;
    for (const { node, at } of beside) node.style.visibility = at * scale + by < 0 || at * scale + by > place.width ? "hidden" : "";
  }

  /**
   * Plotly is about to draw: everything is where Plotly put it.
   * @param {Interval} view what will be drawn
   */
  end({ x0, x1 }) {
    if (this.parts) for (const { node } of Object.values(this.parts).flat()) Object.assign(node.style, { transform: "", translate: "", visibility: "" });
    this.parts = null;
    this.drawn = { x0, x1 };
  }
}
