/**
 * Places in texts. The API counts code points and UTF-8 bytes, JavaScript counts UTF-16 units.
 */

/** A function from code point offsets of a text to its UTF-16 offsets. */
export function fromCodePoints(text) {
  const pairs = []; // code point offsets of characters that take two units
  let points = 0;
  for (let unit = 0; unit < text.length; unit++, points++) {
    if (isPair(text, unit)) {
      pairs.push(points);
      unit++;
    }
  }
  return (point) => point + before(pairs, point);
}

/** A function from UTF-8 byte offsets of a text to its UTF-16 offsets. */
export function fromBytes(text) {
  const bytes = new TextEncoder().encode(text);
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  return (offset) => decoder.decode(bytes.subarray(0, offset)).length;
}

function isPair(text, unit) {
  const code = text.charCodeAt(unit);
  return code >= 0xd800 && code < 0xdc00 && unit + 1 < text.length;
}

function before(sorted, value) {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Spans `{start, end}` in code points as `[start, end]` in UTF-16 units. */
export function unitSpans(text, spans) {
  const unit = fromCodePoints(text);
  return spans.map(({ start, end }) => [unit(start), unit(end)]);
}

/**
 * The part of a passage with most marks, cut at spaces.
 *
 * @returns {{start: number, end: number}} UTF-16 offsets; the whole text where it is short
 */
export function excerpt(text, spans, size = 420) {
  if (text.length <= size * 1.25) return { start: 0, end: text.length };
  let best = { start: 0, held: -1 };
  for (const [first] of spans.length ? spans : [[0, 0]]) {
    const start = Math.max(0, first - 80);
    const held = spans.filter(([from, to]) => from >= start && to <= start + size).length;
    if (held > best.held) best = { start, held };
  }
  let { start } = best;
  if (start > 0) {
    const stop = text.slice(0, start + 60).search(/[.!?\n]\s+\S[^.!?\n]*$/);
    start = stop > start - 120 && stop >= 0 ? stop + 1 : text.indexOf(" ", start) + 1;
  }
  let end = Math.min(text.length, start + size);
  if (end < text.length) end = Math.max(text.lastIndexOf(" ", end), start + size / 2);
  return { start, end };
}
