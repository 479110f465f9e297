// Continuous samples in blocks, so that the oldest can be dropped.

export const BLOCK_MS = 1000;

/** Samples without a gap. */
export class Stretch {
  private readonly blocks: Int16Array[] = [];
  private filled = 0;
  /** Samples dropped from the start. */
  private dropped = 0;

  /** rate in Hz. */
  constructor(readonly rate: number) {}

  get end(): number {
    return this.filled;
  }

  get begin(): number {
    return this.dropped;
  }

  get ms(): number {
    return ((this.filled - this.dropped) * 1000) / this.rate;
  }

  push(pcm: Int16Array): void {
    const size = (this.rate * BLOCK_MS) / 1000;
    for (let i = 0; i < pcm.length; ) {
      const at = (this.filled - this.dropped) % size;
      if (at === 0) {
        this.blocks.push(new Int16Array(size));
      }
      const count = Math.min(pcm.length - i, size - at);
      this.blocks.at(-1)!.set(pcm.subarray(i, i + count), at);
      this.filled += count;
      i += count;
    }
  }

  /** Drops the oldest second; false without one. */
  drop(): boolean {
    if (this.blocks.length < 2) {
      return false;
    }
    this.dropped += this.blocks.shift()!.length;
    return true;
  }

  /** Copies samples [from, to) to out; unavailable ones leave it unchanged. */
  read(from: number, to: number, out: Int16Array, outFrom: number): void {
    const size = (this.rate * BLOCK_MS) / 1000;
    const first = Math.max(from, this.dropped);
    const last = Math.min(to, this.filled);
    for (let i = first; i < last; ) {
      const at = i - this.dropped;
      const block = this.blocks[Math.floor(at / size)]!;
      const count = Math.min(last - i, size - (at % size));
      out.set(block.subarray(at % size, (at % size) + count), outFrom + i - from);
      i += count;
    }
  }
}
