/* Time axes: their marks, and the dates on them. Places are nanoseconds since the origin; long silences are left out. */

import { exact, grouped, unitFor } from "./format.js";

/** Dates on a time axis from which long silences are left out. */
export class Calendar {
  /**
   * @param {bigint} startAt the date at which the axis begins, in ns since the epoch
   * @param {{at: number, ns: bigint, says: string}[]} folds where so much is left out
   */
  constructor(startAt, folds) {
    this.startAt = startAt;
    this.folds = folds;
  }

  /**
   * The date that stands at the origin of the piece of the axis in which a place lies.
   * @param {number} at
   */
  startFor(at) {
    return this.folds.reduce((date, fold) => (fold.at <= at ? date + fold.ns : date), this.startAt);
  }

  /**
   * The pieces between two places, each without a silence that is left out.
   * @param {number} from
   * @param {number} to
   * @returns {[number, number][]}
   */
  pieces(from, to) {
    const cuts = [from, ...this.folds.map((fold) => fold.at).filter((at) => at > from && at < to), to];
    return cuts.slice(1).map((end, i) => [/** @type {number} */ (cuts[i]), end]);
  }
}

const TICK_STEPS = [1, 2, 5];
/* Above a second, a clock counts in sixties. */
const CLOCK_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400].map((s) => s * 1e9);

/**
 * The least step of a round length that leaves no more than so many marks.
 * @param {number} span
 * @param {number} room
 * @param {boolean} clock
 */
export function tickStep(span, room, clock) {
  let step = 1;
  for (let i = 0; step * room < span; i += 1) step = TICK_STEPS[i % 3] * 10 ** Math.floor(i / 3);
  return clock && step > 1e9 ? CLOCK_STEPS.find((longer) => longer * room >= span) ?? step : step;
}

/**
 * Marks of the time axis.
 * @param {number} from
 * @param {number} to
 * @param {number} width
 * @param {string} axis
 * @param {Calendar} calendar
 */
export function timeAxis(from, to, width, axis, calendar) {
  return axis === "utc" || axis === "local" ? clockAxis(from, to, width, axis, calendar) : spanAxis(from, to, width, axis === "own" ? "each connection's first packet" : "the start of the capture");
}

/**
 * In the unit that suits what is in view; far from the start marks count from a round instant.
 * @param {number} from
 * @param {number} to
 * @param {number} width
 * @param {string} origin
 */
function spanAxis(from, to, width, origin) {
  const span = to - from;
  const step = tickStep(span, Math.max(2, Math.floor(width / 95)), false);
  const unit = unitFor(step >= 1e9 ? step : Math.max(1, span / 20));
  const decimals = Math.max(0, Math.ceil(Math.log10(unit.ns / step) - 1e-9));
  const far = Math.abs(from) > span * 200;
  const coarse = 10 ** Math.ceil(Math.log10(span) + 1);
  const base = far ? Math.floor(from / coarse) * coarse : 0;
  const values = [];
  for (let i = Math.ceil(from / step); i * step <= to; i += 1) values.push(i * step || 0);
  return {
    tickvals: values,
    ticktext: values.map((at) => {
      const [whole, rest] = ((at - base) / unit.ns).toFixed(decimals).split(".");
      return rest ? `${grouped(whole)}.${rest}` : grouped(whole);
    }),
    title: far ? `${unit.name} after ${exact(base)} since ${origin}` : `${unit.name} since ${origin}`,
  };
}

/**
 * The time of day, exact to the nanosecond, which a Date is not.
 * @param {number} at
 * @param {bigint} startAt
 * @param {string} axis
 * @param {number} decimals
 */
export function clockTime(at, startAt, axis, decimals) {
  const instant = startAt + BigInt(Math.round(at));
  const seconds = instant / 1000000000n - (instant < 0n && instant % 1000000000n !== 0n ? 1n : 0n);
  const date = new Date(Number(seconds) * 1000);
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  const parts = axis === "utc"
    ? { day: [date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate()], time: [date.getUTCHours(), date.getUTCMinutes(), date.getUTCSeconds()] }
    : { day: [date.getFullYear(), date.getMonth() + 1, date.getDate()], time: [date.getHours(), date.getMinutes(), date.getSeconds()] };
  const fraction = String(instant - seconds * 1000000000n).padStart(9, "0").slice(0, decimals);
  return { day: parts.day.map(two).join("-"), time: parts.time.map(two).join(":") + (decimals ? `.${fraction}` : "") };
}

/**
 * @param {number} from
 * @param {number} to
 * @param {number} width
 * @param {string} axis
 * @param {Calendar} calendar
 */
function clockAxis(from, to, width, axis, calendar) {
  const step = tickStep(to - from, Math.max(2, Math.floor(width / 120)), true);
  const decimals = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(step) - 1e-9)));
  // Marks are round on the clock: in local time, midnight is not where it is in UTC.
  const values = [];
  for (const [first, last] of calendar.pieces(from, to)) {
    const startAt = calendar.startFor(first);
    const offset = axis === "local" ? new Date(Number(startAt / 1000000n)).getTimezoneOffset() * 60e9 : 0;
    const base = Number((startAt - BigInt(offset)) % BigInt(step));
    for (let i = Math.ceil((first + base) / step); i * step - base <= last; i += 1) values.push(i * step - base || 0);
  }
  const zone = axis === "utc" ? "UTC" : Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
  return {
    tickvals: values,
    ticktext: values.map((at) => clockTime(at, calendar.startFor(at), axis, decimals).time),
    title: `${clockTime(Math.max(0, from), calendar.startFor(Math.max(0, from)), axis, 0).day}, ${zone}`,
  };
}
