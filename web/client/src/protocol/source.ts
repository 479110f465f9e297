// Formats JSON without changing its numbers. A person must see exactly what they approve, and JSON.parse
// rounds long numbers.

const TOKEN = /"(?:[^"\\]|\\.)*"|[{}[\],:]|[^\s{}[\],:"]+/g;

/**
 * Returns a field's value as indented JSON with its numbers as written; empty if the field is absent. json
 * must be valid.
 */
export function fieldSource(json: string, field: string): string {
  const tokens = json.match(TOKEN) ?? [];
  let depth = 0;
  let from = -1;
  let to = -1;
  tokens.forEach((token, i) => {
    if (depth === 1 && tokens[i + 1] === ":" && JSON.parse(token) === field) {
      from = i + 2;
      to = -1;
    }
    depth += step(token);
    if (from >= 0 && to < 0 && i >= from && (depth === 0 || (depth === 1 && tokens[i + 1] !== ":"))) {
      to = depth === 0 ? i : i + 1;
    }
  });
  return from < 0 ? "" : indented(tokens.slice(from, to));
}

/** How a token changes the depth. */
function step(token: string): number {
  if (token === "{" || token === "[") {
    return 1;
  }
  return token === "}" || token === "]" ? -1 : 0;
}

function indented(tokens: readonly string[]): string {
  let text = "";
  let depth = 0;
  const line = (): string => `\n${"  ".repeat(depth)}`;
  tokens.forEach((token, i) => {
    const before = tokens[i - 1];
    depth += step(token);
    if (step(token) < 0) {
      text += before !== undefined && step(before) > 0 ? token : line() + token;
    } else if (token === ",") {
      text += token + line();
    } else if (token === ":") {
      text += ": ";
    } else {
      text += before !== undefined && step(before) > 0 ? line() : "";
      text += token.startsWith('"') ? JSON.stringify(JSON.parse(token)) : token;
    }
  });
  return text;
}
