/* Connections that the page does not draw: how many were in which phase when, and how their times are distributed. */

/** @typedef {import("./model.js").Model} Model */

/* As left_out.py has it: equal parts of the capture, and steps of a logarithmic scale in a decade. */
const PARTS = 500;
const LEFT_PER_DECADE = 100;

/**
 * A duration in the middle of a step.
 * @param {number} step
 */
const ofStep = (step) => (step ? Math.round(10 ** ((step - 0.5) / LEFT_PER_DECADE)) : 0);

export class LeftOut {
  /** @param {Model} model */
  constructor(model) {
    this.model = model;
    const { left_levels: levels, left_times: times } = model.tables;
    /** How long a part is, in ns. */
    this.part = Math.max(1, Math.ceil(model.span / PARTS));
    /** By kind of phase: connections, on average, in each part. */
    this.levels = model.kinds.map(() => new Float64Array(PARTS));
    const [kind, part, ns] = ["kind", "part", "ns"].map((name) => levels.values(name));
    for (let row = 0; row < levels.length; row += 1) this.levels[kind[row]][part[row]] = ns[row] / this.part;
    this.times = { measure: times.column("measure"), group: times.column("group"), step: times.values("step"), count: times.values("count"), length: times.length };
  }

  /**
   * Do they count beside these lanes? Where some were chosen, nobody knows which of the others would have been; seen from
   * an end, their times are others.
   * @param {ArrayLike<number>} lanes
   */
  counts(lanes) {
    return lanes.length === this.model.count && this.model.viewpoint === "capture";
  }

  /**
   * Durations of a measure, of each server or of all together; right to about 1 %.
   * @param {string} key
   * @returns {Map<number | null, Float64Array>} by group; those of the servers that are not told apart are in null's
   */
  durations(key) {
    const { measure, group, step, count, length } = this.times;
    /** @type {Map<number | null, number>} */
    const sizes = new Map();
    const rows = Array.from({ length }, (_, row) => row).filter((row) => measure.get(row) === key);
    for (const row of rows) sizes.set(group.get(row), (sizes.get(group.get(row)) ?? 0) + count[row]);
    const made = new Map([...sizes].map(([of, size]) => [of, new Float64Array(size)]));
    const filled = new Map([...sizes.keys()].map((of) => [of, 0]));
    for (const row of rows) {
      const at = filled.get(group.get(row)) ?? 0;
      made.get(group.get(row))?.fill(ofStep(step[row]), at, at + count[row]);
      filled.set(group.get(row), at + count[row]);
    }
    return made;
  }
}
