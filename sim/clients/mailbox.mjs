// Waiting for what a client reports, never longer than a limit: a test that
// waits for ever says nothing, and one of the clients never rejects by itself.

const limitMS = 20_000;

// Mailbox keeps everything that was reported, in order.
export class Mailbox {
  all = [];
  #waiting = new Set();
  #ended = null;

  // name tells an entry's name, for the message of a wait that failed.
  constructor(name = (entry) => entry.type) {
    this.name = name;
  }

  push(entry) {
    this.all.push(entry);
    for (const check of [...this.#waiting]) {
      check();
    }
  }

  // end says that nothing more will come, and why.
  end(why) {
    this.#ended ??= why;
    for (const check of [...this.#waiting]) {
      check();
    }
  }

  // wait resolves with the first entry that fits, of those from index from on.
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

  // type waits for an entry of that name.
  type(name, from = 0) {
    return this.wait(name, (entry) => this.name(entry) === name, from);
  }

  // names are the names of all entries from an index on, repetitions taken together.
  names(from = 0) {
    return this.all.slice(from).map(this.name).filter((name, i, names) => name !== names[i - 1]);
  }

  #summary() {
    return `there came: ${this.names().join(', ') || 'nothing'}`;
  }
}

// within is a promise that fails after the limit. begin is given what settles it.
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

// soon is a promise that must settle within the limit.
export function soon(what, promise, ms = limitMS) {
  return within(what, (done, fail) => promise.then(done, fail), undefined, ms);
}
