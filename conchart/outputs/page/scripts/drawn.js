/* Phases as they are drawn: between messages, time in which somebody had something to send is no idling, and is drawn as
   the kind of stall that explains it, as "where the time went" tells it. */

import { firstAfter } from "./detail.js";

/** @typedef {import("./detail.js").Phases} Phases */
/** @typedef {import("./model.js").Kind} Kind */
/** @typedef {Record<string, any>} Row */
/**
 * @typedef {{from: ArrayLike<number>, start: ArrayLike<number>, end: ArrayLike<number>, kind: ArrayLike<number>}} Stalls
 */

/**
 * Kinds of phase, and after them the words of stalls; of each kind of stall, which of these it is drawn as.
 * @param {Kind[]} kinds
 * @param {Row[]} stallKinds
 */
export function kindsDrawn(kinds, stallKinds) {
  const idle = kinds.findIndex((kind) => kind.name === "idle");
  const words = [...new Set(stallKinds.map((kind) => kind.word))];
  const drawn = words.map((word) => {
    const colour = stallKinds.find((kind) => kind.word === word)?.colour;
    return { name: word, title: word[0].toUpperCase() + word.slice(1), colour: colour || kinds[idle]?.colour, waited: true, look: `k-idle w-${word} whole` };
  });
  return { idle, kinds: [...kinds, ...drawn], as: stallKinds.map((kind) => kinds.length + words.indexOf(kind.word)) };
}

/**
 * @param {Phases} phases
 * @param {Stalls} stalls in the order of their ends, as far as they are of one side
 * @param {{idle: number, as: number[]}} kinds
 * @param {(kind: number) => boolean} owed whether somebody owed a byte where this kind of stall lies over idling
 * @returns {Phases} the same ones where no stall lies over idling
 */
export function phasesDrawn(phases, stalls, { idle, as }, owed) {
  if (!stalls.start.length) return phases;
  const lanes = phases.from.length - 1;
  const from = new Uint32Array(lanes + 1);
  /** @type {Record<"start" | "end" | "kind" | "inferred", number[]>} */
  const drawn = { start: [], end: [], kind: [], inferred: [] };
  const add = (/** @type {number} */ start, /** @type {number} */ end, /** @type {number} */ kind, /** @type {number} */ inferred) => {
    drawn.start.push(start);
    drawn.end.push(end);
    drawn.kind.push(kind);
    drawn.inferred.push(inferred);
  };
  for (let lane = 0; lane < lanes; lane += 1) {
    from[lane] = drawn.start.length;
    const last = stalls.from[lane + 1];
    for (let i = phases.from[lane]; i < phases.from[lane + 1]; i += 1) {
      let at = phases.start[i];
      const end = phases.end[i];
      if (phases.kind[i] === idle)
        for (let s = firstAfter(stalls.end, at, stalls.from[lane], last); s < last && stalls.start[s] < end; s += 1) {
          const [begin, until] = [Math.max(at, stalls.start[s]), Math.min(end, stalls.end[s])];
          if (until <= begin || !owed(stalls.kind[s])) continue;
          if (begin > at) add(at, begin, idle, phases.inferred[i]);
          add(begin, until, as[stalls.kind[s]], 0);
          at = until;
        }
      if (at < end || phases.start[i] === end) add(at, end, phases.kind[i], phases.inferred[i]);
    }
  }
  from[lanes] = drawn.start.length;
  return { from, start: Float64Array.from(drawn.start), end: Float64Array.from(drawn.end), kind: Uint8Array.from(drawn.kind), inferred: Uint8Array.from(drawn.inferred) };
}
