// Waits with a time limit for reports of a client: one of the clients never rejects.

const limitMS = 20_000;

// Mailbox stores all reports in order.
export class Mailbox {
  all = [];
  #waiting = new Set();
  #ended = null;

  // name returns an entry's name, for the error of a failed wait.
  constructor(name = (entry) => entry.type) {
    this.name = name;
  }

  push(entry) {
    this.all.push(entry);
    for (const check of [...this.#waiting]) {
      check();
    }
  }

  // end reports that no more entries will arrive, and why.
  end(why) {
    this.#ended ??= why;
    for (const check of [...this.#waiting]) {
      check();
    }
  }

  // wait resolves with the first entry that fits, from index from on.
  wait(what, fits, from = 0) {
    return within(what, (done, fail) => {
      let at = from;
      const check = () => {
        for (; at < this.all.length; at++) {
          if (fits(this.all[at])) {
            this.#waiting.delete(check);
            done(this.all[at]);
            return;
          }
        }
        if (this.#ended) {
          this.#waiting.delete(check);
          fail(new Error(`${what}: ended before (${this.#ended}); ${this.#summary()}`));
        }
      };
      this.#waiting.add(check);
      check();
    }, () => this.#summary());
  }

  // type waits for an entry with this name.
  type(name, from = 0) {
    return this.wait(name, (entry) => this.name(entry) === name, from);
  }

  // names returns the names of all entries from an index on, without adjacent repetitions.
  names(from = 0) {
    return this.all.slice(from).map(this.name).filter((name, i, names) => name !== names[i - 1]);
  }

  #summary() {
    return `received: ${this.names().join(', ') || 'nothing'}`;
  }
}

// within returns a promise that fails after the limit. begin receives its resolve and reject functions.
export function within(what, begin, detail = () => '', ms = limitMS) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(`${what}: nothing for ${ms} ms; ${detail()}`)), ms);
    const settle = (how) => (value) => {
      clearTimeout(timer);
      how(value);
    };
    begin(settle(resolve), settle(reject));
  });
}

// soon returns a promise that fails unless the given one settles within the limit.
export function soon(what, promise, ms = limitMS) {
  return within(what, (done, fail) => promise.then(done, fail), undefined, ms);
}
