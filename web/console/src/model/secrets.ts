// Keeps secrets out of everything shown or saved.

/** Fields that always hold a secret. */
const FIELDS = new Set(["ticket", "token", "resume_token", "api_key", "authorization"]);

// Secrets within text: the gateway's confirmation tokens, and tickets and keys in a list of subprotocols.
const IN_TEXT = /\bcf_[A-Z2-7]{16,}|\bvoicegw\.(?:ticket|key)\.[\w-]+/g;

/** The client library has already replaced the secret. */
const STARS = /^\*+$/;

/** The most secrets numbered; one per question and session. */
const MAX_KNOWN = 1000;

/**
 * Replaces each secret with its number, as in `(hidden 1)`, so that a question and its answer can still be
 * matched.
 */
export class Secrets {
  private readonly known = new Map<string, number>();
  /** Numbers used by the previous page. */
  private before = 0;

  /** How many numbers are in use. */
  get count(): number {
    return this.before + this.known.size;
  }

  /** Reserves numbers that are already in use. */
  skip(count: number): void {
    this.before = count;
  }

  /** Returns a copy of JSON-like data without secrets. Values that JSON cannot hold are omitted. */
  mask(value: unknown): unknown {
    if (typeof value === "string") {
      return value.replace(IN_TEXT, (secret) => this.name(secret));
    }
    if (Array.isArray(value)) {
      return value.map((entry) => this.mask(entry));
    }
    if (typeof value !== "object" || value === null) {
      return value;
    }
    return Object.fromEntries(
      Object.entries(value).map(([field, inner]) => [field, typeof inner === "string" && FIELDS.has(field) ? this.hide(inner) : this.mask(inner)]),
    );
  }

  private hide(secret: string): string {
    return secret === "" || STARS.test(secret) ? "(hidden)" : this.name(secret);
  }

  private name(secret: string): string {
    let number = this.known.get(secret);
    if (number === undefined) {
      number = this.count + 1;
      if (this.known.size < MAX_KNOWN) {
        this.known.set(secret, number);
      }
    }
    return `(hidden ${number})`;
  }
}
