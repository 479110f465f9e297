/** A queue that allocates only to exceed its largest size so far. */
export class Fifo<T> {
  #slots: (T | undefined)[] = new Array<T | undefined>(64).fill(undefined);
  #first = 0;
  #count = 0;

  push(value: T): void {
    if (this.#count === this.#slots.length) {
      this.#grow();
    }
    this.#slots[(this.#first + this.#count++) % this.#slots.length] = value;
  }

  /** Returns the oldest entry; undefined if empty. */
  peek(): T | undefined {
    return this.#slots[this.#first];
  }

  /** Removes the oldest entry. */
  drop(): void {
    if (this.#count > 0) {
      this.#slots[this.#first] = undefined;
      this.#first = (this.#first + 1) % this.#slots.length;
      this.#count--;
    }
  }

  #grow(): void {
    const wider = new Array<T | undefined>(2 * this.#count).fill(undefined);
    for (let i = 0; i < this.#count; i++) {
      wider[i] = this.#slots[(this.#first + i) % this.#count];
    }
    this.#slots = wider;
    this.#first = 0;
  }
}
