// What opens a door stays out of everything that is shown or saved.

/** Fields that hold a secret wherever they stand. */
const FIELDS = new Set(["ticket", "token", "resume_token", "api_key", "authorization"]);

// Secrets that stand in the middle of other text: the gateway's confirmation tokens, and
// tickets in a list of subprotocols.
const IN_TEXT = /\bcf_[A-Z2-7]{16,}|\bvoicegw\.(?:ticket|key)\.[\w-]+/g;

/** The client library has put stars in place of it already. */
const STARS = /^\*+$/;

/** So many secrets are told apart; they come one per question and session. */
const MAX_KNOWN = 1000;

/**
 * Replaces secrets by `(hidden 1)`, `(hidden 2)` and so on: the same secret always by the
 * same number, so that a question and its answer can still be seen to belong together.
 */
export class Secrets {
  private readonly known = new Map<string, number>();
  /** Numbers that stand for secrets of the page before. */
  private before = 0;

  /** How many numbers stand for a secret. */
  get count(): number {
    return this.before + this.known.size;
  }

  /** So many numbers are in use already. */
  skip(count: number): void {
    this.before = count;
  }

  /** A copy of JSON-like data without its secrets. What cannot stand in JSON is left out. */
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
