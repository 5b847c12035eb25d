/* How much is drawn of what: bars where they are wide enough to be seen, and below that what takes most of the time. */

/**
 * Phases of many connections as columns; those of lane i are from[i] to from[i + 1].
 * @typedef {{from: ArrayLike<number>, start: ArrayLike<number>, end: ArrayLike<number>, kind: ArrayLike<number>, inferred: ArrayLike<number>}} Phases
 */

/**
 * Index of the first of some ends, from `low` to `high`, that is later than an instant.
 * @param {ArrayLike<number>} ends
 * @param {number} at
 * @param {number} low
 * @param {number} high
 */
export function firstAfter(ends, at, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (ends[middle] > at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/**
 * Of connections that follow each other on a lane, those that are open in a window.
 * @param {number[]} lanes one after the other
 * @param {{opened: ArrayLike<number>, closed: ArrayLike<number>}} model
 * @param {{x0: number, x1: number}} window
 * @param {(lane: number) => number} shift what is subtracted from a lane's times
 */
export function during(lanes, { opened, closed }, { x0, x1 }, shift) {
  const first = (/** @type {(lane: number) => boolean} */ is) => {
    let [low, high] = [0, lanes.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (is(lanes[middle])) high = middle;
      else low = middle + 1;
    }
    return low;
  };
  return lanes.slice(first((lane) => closed[lane] - shift(lane) >= x0), first((lane) => opened[lane] - shift(lane) > x1));
}

/**
 * The bars of a lane: (kind, inferred, start, end) each. Phases too narrow to be seen alone are drawn together, in the
 * colour of the kind that has most of their time.
 * @param {Phases} phases
 * @param {number[]} lanes one after the other
 * @param {{x0: number, x1: number}} window
 * @param {number} pixel the least width of a bar, in ns
 * @param {(lane: number) => number} shift what is subtracted from a lane's times
 * @param {(kind: number, inferred: number, start: number, end: number) => void} draw
 */
export function bars(phases, lanes, window, pixel, shift, draw) {
  const times = new Float64Array(16);
  let from = NaN;
  let until = 0;
  const flush = () => {
    if (Number.isNaN(from)) return;
    let most = 0;
    for (let kind = 1; kind < times.length; kind += 1) if (times[kind] > times[most]) most = kind;
    draw(most, 0, from, until);
    times.fill(0);
    from = NaN;
  };
  for (const lane of lanes) {
    const by = shift(lane);
    const first = phases.from[lane];
    const last = phases.from[lane + 1];
    // Of most connections all phases are in the window: nothing is to be looked for.
    for (let i = phases.start[first] - by >= window.x0 ? first : firstAfter(phases.end, window.x0 + by, first, last); i < last; i += 1) {
      const start = phases.start[i] - by;
      if (start >= window.x1) break;
      const end = phases.end[i] - by;
      if (end - start >= pixel) {
        flush();
        draw(phases.kind[i], phases.inferred[i], Math.max(start, window.x0), Math.min(end, window.x1));
        continue;
      }
      if (end - from >= pixel) flush();
      if (Number.isNaN(from)) from = start;
      until = end;
      times[phases.kind[i]] += end - start || 1;
    }
  }
  flush();
}

/**
 * How many connections are in which phase, on average, in each of so many equal parts of a window.
 * @param {Phases} phases
 * @param {ArrayLike<number>} lanes
 * @param {{x0: number, x1: number}} window
 * @param {number} parts
 * @param {number} kinds
 * @param {(lane: number) => number} shift
 * @returns {Float64Array[]} by kind
 */
export function density(phases, lanes, window, parts, kinds, shift) {
  const { x0, x1 } = window;
  const scale = parts / (x1 - x0);
  // Sums of what begins less what ends, so that a long phase costs no more than a short one.
  const counts = Array.from({ length: kinds }, () => new Float64Array(parts + 1));
  for (let n = 0; n < lanes.length; n += 1) {
    const lane = lanes[n];
    const by = shift(lane);
    const last = phases.from[lane + 1];
    const first = phases.from[lane];
    if (first === last || phases.end[last - 1] - by <= x0 || phases.start[first] - by >= x1) continue;
    for (let i = firstAfter(phases.end, x0 + by, first, last); i < last; i += 1) {
      const start = phases.start[i] - by;
      if (start >= x1) break;
      const begin = Math.max(0, (start - x0) * scale);
      const finish = Math.min(parts, (phases.end[i] - by - x0) * scale);
      const counted = counts[phases.kind[i]];
      const [here, there] = [Math.floor(begin), Math.floor(finish)];
      if (here === there) {
        counted[here] += finish - begin;
        counted[here + 1] -= finish - begin;
        continue;
      }
      // Of the first and the last part it takes a share.
      const share = here + 1 - begin;
      counted[here] += share;
      counted[here + 1] += 1 - share;
      counted[there] += finish - there - 1;
      if (there < parts) counted[there + 1] -= finish - there;
    }
  }
  return counts.map((counted) => {
    let sum = 0;
    const levels = new Float64Array(parts);
    for (let i = 0; i < parts; i += 1) {
      sum += counted[i];
      levels[i] = Math.max(0, sum);
    }
    return levels;
  });
}

/**
 * How much time of a window which kind of phase takes, over all of some connections.
 * @param {Phases} phases
 * @param {ArrayLike<number>} lanes
 * @param {{x0: number, x1: number}} window
 * @param {number} kinds
 * @param {(lane: number) => number} shift
 */
export function attribute(phases, lanes, window, kinds, shift) {
  const sums = new Float64Array(kinds);
  let touched = 0;
  for (let n = 0; n < lanes.length; n += 1) {
    const lane = lanes[n];
    const by = shift(lane);
    const last = phases.from[lane + 1];
    let any = false;
    for (let i = firstAfter(phases.end, window.x0 + by, phases.from[lane], last); i < last; i += 1) {
      const start = Math.max(window.x0, phases.start[i] - by);
      if (start >= window.x1) break;
      any = true;
      sums[phases.kind[i]] += Math.min(window.x1, phases.end[i] - by) - start;
    }
    touched += Number(any);
  }
  return { sums, connections: touched };
}
