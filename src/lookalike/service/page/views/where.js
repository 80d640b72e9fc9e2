// Conditions as people type them: `lang = en, year >= 2020`, or JSON as the service takes it.

const ONE = /^\s*([^=<>!,]+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*$/;

export function condition(text) {
  if (text.trim().startsWith("{")) {
    try { return JSON.parse(text); } catch { throw new Error("The condition begins like JSON, and is none."); }
  }
  const found = {};
  for (const piece of text.split(",")) {
    const match = ONE.exec(piece);
    if (!match) throw new Error(`The condition ${piece.trim() || "between two commas"} cannot be read; expected: field = value, or <, <=, >, >=, !=.`);
    const [, field, sign, given] = match;
    const plain = value(given);
    if (sign === "=") found[field] = plain;
    else found[field] = { ...(typeof found[field] === "object" ? found[field] : {}), [sign]: plain };
  }
  return found;
}

function value(text) {
  const quoted = /^"(.*)"$/.exec(text);
  if (quoted) return quoted[1];
  if (text === "true" || text === "false") return text === "true";
  if (text === "null") return null;
  return /^-?\d+(\.\d+)?$/.test(text) ? Number(text) : text;
}
