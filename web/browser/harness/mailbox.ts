/** How long anything is waited for, in ms. Only a failing test waits that long. */
export const PATIENCE = 60_000;

/** So many entries are in the error of somebody who waited in vain. */
const SHOWN = 40;

/** Keeps what has come, in order, and lets a test wait for what it wants. */
export class Mailbox<T> {
  readonly all: T[] = [];
  private read = 0;
  private readonly waiting = new Set<() => void>();

  /** `shown` is how an entry looks in the error of somebody who waited in vain; an empty text leaves it out. */
  constructor(private readonly shown: (entry: T) => string) {}

  put(entry: T): void {
    this.all.push(entry);
    for (const look of [...this.waiting]) {
      look();
    }
  }

  /** The next entry that is wanted, behind the one that was returned last; others are passed over. */
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

  /** What has come until now is not waited for any more. */
  skip(): void {
    this.read = this.all.length;
  }

  /** Waits until a condition holds; it is looked at whenever something has come. */
  async until(what: string, holds: () => boolean): Promise<void> {
    if (holds()) {
      return;
    }
    await new Promise<void>((resolve, reject) => {
      const late = setTimeout(() => {
        this.waiting.delete(look);
        reject(new Error(`waited ${PATIENCE / 1000} s for ${what}; there came: ${this.all.map(this.shown).filter(Boolean).slice(-SHOWN).join("\n  ")}`));
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
