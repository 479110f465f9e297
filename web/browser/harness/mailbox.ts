/** The timeout of every wait, in ms. Only a failing test waits that long. */
export const PATIENCE = 60_000;

/** The number of entries in a timeout error. */
const SHOWN = 40;

/** Stores entries in order and lets a test wait for one. */
export class Mailbox<T> {
  readonly all: T[] = [];
  private read = 0;
  private readonly waiting = new Set<() => void>();

  /** `shown` formats an entry for a timeout error; an empty text omits it. */
  constructor(private readonly shown: (entry: T) => string) {}

  put(entry: T): void {
    this.all.push(entry);
    for (const look of [...this.waiting]) {
      look();
    }
  }

  /** Returns the next wanted entry after the one returned last, skipping others. */
  async next<W extends T>(what: string, wanted: (entry: T) => entry is W): Promise<W>;
  async next(what: string, wanted: (entry: T) => boolean): Promise<T>;
  async next(what: string, wanted: (entry: T) => boolean): Promise<T> {
    let found: T | undefined;
    await this.until(what, () => {
      while (this.read < this.all.length && found === undefined) {
        const entry = this.all[this.read++]!;
        found = wanted(entry) ? entry : undefined;
      }
      return found !== undefined;
    });
    return found!;
  }

  /** Skips all entries so far. */
  skip(): void {
    this.read = this.all.length;
  }

  /** Waits until a condition holds; checks it on each new entry. */
  async until(what: string, holds: () => boolean): Promise<void> {
    if (holds()) {
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => {
        this.waiting.delete(look);
        reject(new Error(`waited ${PATIENCE / 1000} s for ${what}; received: ${this.all.map(this.shown).filter(Boolean).slice(-SHOWN).join("\n  ")}`));
      }, PATIENCE);
      const look = () => {
        if (holds()) {
          clearTimeout(late);
          this.waiting.delete(look);
          resolve();
        }
      };
      this.waiting.add(look);
    });
  }
}
