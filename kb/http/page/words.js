/** How the page says things: dates, sizes, languages, states. */

const DAY = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium" });
const TIME = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "short" });
const LANGUAGE = new Intl.DisplayNames("en", { type: "language" });

export const LANGUAGES = ["bg", "de", "en", "hr", "mk", "ru", "sl", "sr"];

/** State to `[words, tone]`. */
const STATES = {
  pending: ["In progress", "warn"],
  indexed: ["Searchable", "good"],
  duplicate: ["Same as another", ""],
  quarantined: ["Waits for review", "warn"],
  blocked: ["Blocked", "bad"],
  language_refused: ["Language not accepted", ""],
  needs_ocr: ["Needs text recognition", "warn"],
  unsupported: ["Format not supported", ""],
  too_large: ["Too large", ""],
  encrypted: ["Encrypted", ""],
  corrupt: ["Damaged", "bad"],
  empty: ["Empty", ""],
  failed: ["Failed", "bad"],
  removed: ["Removed", ""],
  erased: ["Erased", ""],
  queued: ["Queued", ""],
  running: ["In progress", "warn"],
  done: ["Done", "good"],
};

export const DOCUMENT_STATES = Object.keys(STATES).slice(0, 15);

export function stateWords(state) {
  return STATES[state] || [state, ""];
}

export function day(value) {
  return value ? DAY.format(new Date(value)) : "";
}

export function time(value) {
  return value ? TIME.format(new Date(value)) : "";
}

export function language(code) {
  if (!code || code === "und") return "language unknown";
  try {
    return LANGUAGE.of(code);
  } catch {
    return code;
  }
}

/** For the `lang` attribute; an unknown language is the empty string, not the page's. */
export function langOf(code) {
  return !code || code === "und" ? "" : code;
}

export function count(n, one, many = `${one}s`) {
  return `${n.toLocaleString("en-GB")} ${n === 1 ? one : many}`;
}

export function size(bytes) {
  if (bytes == null) return "";
  const units = ["bytes", "KB", "MB", "GB"];
  let at = 0;
  for (; bytes >= 1000 && at < 3; at++) bytes /= 1000;
  return `${at ? bytes.toFixed(1) : bytes} ${units[at]}`;
}

/** When a version holds, in words. */
export function validity(from, until) {
  if (!from) return "not in force";
  if (!until) return `in force since ${day(from)}`;
  if (new Date(until) > new Date()) return `in force until ${day(until)}`;
  const say = day(from) === day(until) ? time : day;
  return `in force ${say(from)} to ${say(until)}`;
}

/** What a file is called, whatever its path. */
export function fileName(source) {
  return (source || "").split("/").pop() || source || "";
}
