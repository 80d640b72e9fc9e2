// Filters as people type them: `lang = en, year >= 2020`, or JSON as the service takes it.

const SIGNS = ["==", "!=", "<>", "<=", ">=", "=", "<", ">", "≠", "≤", "≥"];
const WORDS = ["not in", "in", "has", "contains", "starts with", "starts"];
const SERVICE = { "==": "=", "<>": "!=", "≠": "!=", "≤": "<=", "≥": ">=", contains: "has", "starts with": "starts" };
const QUOTES = { '"': '"', "'": "'", "“": "”", "‘": "’", "`": "`" };
const PAIRS = { "[": "]", "(": ")" };
const FORM = "expected: field = value, for example lang = en. Also: != < <= > >=, in (a, b), not in (a, b), has, starts; join filters with a comma or “and”";

/** The filter as the service takes it; an error says what is allowed. */
export function condition(text) {
  if (text.trim().startsWith("{")) {
    try { return JSON.parse(text); } catch { throw new Error(`The filter begins with { and is not valid JSON; ${FORM}, or JSON such as {"lang": "en"}.`); }
  }
  const found = pieces(text).map(one);
  return found.length === 1 ? found[0] : { and: found };
}

/** The text in pieces, each with one operation: commas and “and” separate them, but not in quotes or brackets. */
function pieces(text) {
  const found = [];
  let from = 0;
  const end = (at, next) => { found.push(text.slice(from, at)); from = next; };
  for (let at = 0; at < text.length; at++) {
    const closed = skipped(text, at);
    if (closed > at) at = closed - 1;
    else if (text[at] === ",") end(at, at + 1);
    else {
      const word = /^(\s+and\s+|\s*&&?\s*|\s+or\s+|\s*\|\|\s*)/i.exec(text.slice(at));
      if (!word) continue;
      if (operation(text.slice(at + word[0].length)) !== null) {
        if (/or|\|/i.test(word[0])) throw new Error(`“or” is not allowed here; use field in (a, b), or JSON such as {"or": [{"lang": "en"}, {"lang": "de"}]}.`);
        end(at, at + word[0].length);
      }
      at += word[0].length - 1;
    }
  }
  end(text.length, text.length);
  return found;
}

/** Where quotes or brackets that open here are behind; here, if none do, or if they are never closed. */
function skipped(text, at) {
  // A quote opens a value; in the middle of a word it is an apostrophe.
  const opens = at === 0 || /[\s=<>≠≤≥,([:]/.test(text[at - 1]);
  if (QUOTES[text[at]] && opens) {
    for (let to = at + 1; to < text.length; to++) {
      if (text[to] === "\\") to++;
      else if (text[to] === QUOTES[text[at]]) return to + 1;
    }
  }
  if (PAIRS[text[at]] && opens) {
    for (let to = at + 1; to < text.length; to++) {
      const inner = skipped(text, to);
      if (inner > to) to = inner - 1;
      else if (text[to] === PAIRS[text[at]]) return to + 1;
    }
  }
  return at;
}

/** The first operation of a piece: `[field, operation, value]`, each as typed; null without one. */
function operation(piece) {
  for (let at = 0; at < piece.length; at++) {
    const closed = skipped(piece, at);
    if (closed > at) { at = closed - 1; continue; }
    if (piece[at] === ",") return null;
    const sign = SIGNS.find((one) => piece.startsWith(one, at));
    const word = at > 0 && /\s/.test(piece[at - 1]) ? WORDS.find((one) => new RegExp(`^${one.replace(" ", "\\s+")}(?=[\\s(\\["'])`, "i").test(piece.slice(at))) : undefined;
    if (sign === undefined && word === undefined) continue;
    const length = sign?.length ?? new RegExp(`^${word.replace(" ", "\\s+")}`, "i").exec(piece.slice(at))[0].length;
    return [piece.slice(0, at).trim(), sign ?? word, piece.slice(at + length).trim()];
  }
  const colon = /^\s*([\w.-]+)\s*:(?!\/\/)\s*([^,]+)/.exec(piece);
  return colon && [colon[1], "=", colon[2].trim()];
}

function one(piece) {
  const parts = operation(piece);
  const typed = piece.trim() || "an empty filter";
  if (parts === null || !parts[0] || !parts[2]) throw new Error(`The filter cannot be read at “${typed}”; ${FORM}.`);
  const [field, sign, given] = [unquoted(parts[0]) ?? parts[0], SERVICE[parts[1]] ?? parts[1], parts[2]];
  if (sign === "in" || sign === "not in") return { [field]: { [sign]: listed(given).flatMap(values) } };
  const meant = values(given);
  if (sign === "=") return { [field]: meant.length === 1 ? meant[0] : { in: meant } };
  if (sign === "!=") return { [field]: meant.length === 1 ? { "!=": meant[0] } : { "not in": meant } };
  if (sign === "starts") return { [field]: { starts: unquoted(given) ?? given } };
  if (sign === "has" && meant.length > 1) return { or: meant.map((value) => ({ [field]: { has: value } })) };
  return { [field]: { [sign]: meant[0] } };
}

/** The values of a list: `(a, b)`, `[a, b]` or one. */
function listed(given) {
  if (!PAIRS[given[0]] || given.at(-1) !== PAIRS[given[0]]) return [given];
  const inner = given.slice(1, -1), found = [];
  let from = 0;
  for (let at = 0; at <= inner.length; at++) {
    const closed = at < inner.length ? skipped(inner, at) : at;
    if (closed > at) at = closed - 1;
    else if (at === inner.length || inner[at] === ",") { found.push(inner.slice(from, at).trim()); from = at + 1; }
  }
  return found.filter((value) => value !== "");
}

/** What is between quotes; null if there are none. */
function unquoted(given) {
  if (QUOTES[given[0]] && skipped(given, 0) === given.length) return given.slice(1, -1).replace(/\\(.)/g, "$1");
  if (given[0] === '"' || given[0] === "“") throw new Error(`The quotes in ${given} do not enclose the whole value; ${FORM}.`);
  return null;
}

/** What a value may mean: quoted, it is text; 2020 and true are a number and a truth value, or the same as text. */
function values(given) {
  const quoted = unquoted(given);
  if (quoted !== null) return [quoted];
  if (given === "null") return [null];
  if (given === "true" || given === "false") return [given === "true", given];
  const exact = /^-?\d+(\.\d+)?$/.test(given) && Math.abs(Number(given)) <= Number.MAX_SAFE_INTEGER;
  return exact ? [Number(given), given] : [given];
}
