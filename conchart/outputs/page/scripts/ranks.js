/* Percentiles by nearest rank: each is one of the values, the least that no fewer than so many per cent do not exceed.
   SQL calls it percentile_disc, or quantile_disc. */

/* Digits that durations are sorted by; fewer values than this are not worth it. */
const RADIX = 2048;

/**
 * Durations in their order: digit by digit, several times as fast as by comparing a million of them.
 * @param {Float64Array} durations whole numbers, none negative; they are written over
 */
export function inOrder(durations) {
  /** @type {Float64Array} */
  let sorted = durations;
  if (sorted.length < RADIX) return sorted.sort();
  /** @type {Float64Array} */
  let spare = new Float64Array(sorted.length);
  const most = sorted.reduce((high, value) => Math.max(high, value), 0);
  const starts = new Uint32Array(RADIX + 1);
  for (let unit = 1; unit <= most; unit *= RADIX) {
    const digit = (/** @type {number} */ value) => {
      const quotient = Math.floor(value / unit);
      return quotient - Math.floor(quotient / RADIX) * RADIX;
    };
    starts.fill(0);
    for (let i = 0; i < sorted.length; i += 1) starts[digit(sorted[i]) + 1] += 1;
    for (let i = 0; i < RADIX; i += 1) starts[i + 1] += starts[i];
    for (let i = 0; i < sorted.length; i += 1) spare[starts[digit(sorted[i])]++] = sorted[i];
    [sorted, spare] = [spare, sorted];
  }
  return sorted;
}

/**
 * Which of so many values, in their order, a percentile is.
 * @param {number} percent a whole number
 * @param {number} length at least 1
 */
export const rankOf = (percent, length) => Math.max(1, Math.ceil((percent * length) / 100)) - 1;

/**
 * @param {ArrayLike<number>} sorted at least one value
 * @param {number} percent a whole number
 */
export const nearestRank = (sorted, percent) => sorted[rankOf(percent, sorted.length)];

/**
 * What would stand at a place of an array if a stretch of it were sorted; puts its values in another order (Hoare's FIND).
 * @param {Float64Array} values
 * @param {number} from
 * @param {number} to
 * @param {number} place
 */
export function found(values, from, to, place) {
  let [low, high] = [from, to - 1];
  while (low < high) {
    const pivot = values[(low + high) >> 1];
    let [i, j] = [low, high];
    while (i <= j) {
      while (values[i] < pivot) i += 1;
      while (values[j] > pivot) j -= 1;
      if (i > j) break;
      const moved = values[i];
      values[i] = values[j];
      values[j] = moved;
      i += 1;
      j -= 1;
    }
    if (place <= j) high = j;
    else if (place >= i) low = i;
    else break;
  }
  return values[place];
}
