/* Numbers that look random and are the same in every run. */

/**
 * Integers from 0 up to, and not including, `below`.
 * @param {number} seed
 * @returns {(below: number) => number}
 */
export function generator(seed) {
  let state = seed >>> 0;
  return (below) => {
    // mulberry32
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/**
 * Connections that tile into phases, as the columns that scripts read.
 * @param {(below: number) => number} random
 * @param {{lanes: number, kinds: number, apart?: boolean}} wanted `apart`: one begins after the one before has ended
 */
export function connections(random, { lanes, kinds, apart = false }) {
  /** @type {{from: number[], start: number[], end: number[], kind: number[], inferred: number[]}} */
  const phases = { from: [0], start: [], end: [], kind: [], inferred: [] };
  /** @type {number[][]} */
  const [opened, closed] = [[], []];
  for (let lane = 0; lane < lanes; lane += 1) {
    let at = apart ? (closed[lane - 1] ?? 0) + random(30) : random(1000);
    opened.push(at);
    for (let left = 1 + random(12); left > 0; left -= 1) {
      phases.start.push(at);
      at += random(4) ? random(5) : random(200);
      phases.end.push(at);
      phases.kind.push(random(kinds));
      phases.inferred.push(random(2));
    }
    closed.push(at);
    phases.from.push(phases.start.length);
  }
  return { phases, opened, closed };
}
