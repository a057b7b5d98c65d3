// How numbers are written, and how packed arrays come back.

/** Six significant digits, as short as they can be. */
function short(number) {
  if (number === null || number === undefined || Number.isNaN(number)) return "unknown";
  return Number.isFinite(number) ? String(Number(number.toPrecision(6))) : "∞";
}

/** A count in full, as long as a double holds it exactly. */
function whole(count) {
  if (count === null || Number.isNaN(count)) return "not counted";
  return Number.isSafeInteger(count) ? count.toLocaleString("en") : short(count);
}

/** 1200000 as 1.2M: for the ticks of an axis. */
function rounded(count) {
  const [unit, mark] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]].find(([size]) => Math.abs(count) >= size) ?? [1, ""];
  return String(Number((count / unit).toPrecision(3))) + mark;
}

/** The smallest of 1, 2 or 5 times a power of ten that cuts `span` into at most `most` parts. */
function niceStep(span, most) {
  const rough = span / most;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough * (1 - 1e-9));
}

/** The bytes behind base64 of a deflated stream. */
async function inflate(text) {
  const deflated = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([deflated]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

const KINDS = { float64: Float64Array, uint8: Uint8Array, uint16: Uint16Array, int16: Int16Array, int32: Int32Array };

/** Several arrays packed one after the other: {data, arrays: [[name, kind, length], …]} -> {name: typed array}. */
async function unpack(packed) {
  const buffer = await inflate(packed.data);
  const result = {};
  let offset = 0;
  for (const [name, kind, length] of packed.arrays) {
    result[name] = new KINDS[kind](buffer, offset, length);
    offset += length * KINDS[kind].BYTES_PER_ELEMENT;
  }
  return result;
}
