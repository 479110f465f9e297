// Reads answers of unknown shape; missing or invalid values become empty.

export type Fields = Readonly<Record<string, unknown>>;

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function number(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

export function strings(value: unknown): readonly string[] {
  return list(value).filter((entry): entry is string => typeof entry === "string" && entry !== "");
}

/** The address of a gateway's image, relative to the page; empty for other addresses. */
export function pictureUrl(url: string): string {
  const path = url.replace(/^\/+/, "");
  return /^v1\/images\/[\w-]+$/.test(path) ? path : "";
}
