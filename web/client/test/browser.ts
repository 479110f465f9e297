// The parts of a browser that the microphone and the loudspeaker use, controlled by the test.
import { vi } from "vitest";

export class FakeTrack {
  readyState: "live" | "ended" = "live";
  enabled = true;
  muted = false;
  onended: (() => void) | null = null;
  onmute: (() => void) | null = null;
  onunmute: (() => void) | null = null;

  constructor(
    readonly deviceId: string,
    readonly label: string,
  ) {}

  getSettings(): { deviceId: string; sampleRate: number } {
    return { deviceId: this.deviceId, sampleRate: 16000 };
  }

  stop(): void {
    this.readyState = "ended";
  }

  /** Unplugged, or permission revoked. */
  end(): void {
    this.readyState = "ended";
    this.onended?.();
  }
}

export class FakeStream {
  constructor(readonly track: FakeTrack) {}
  getTracks(): FakeTrack[] {
    return [this.track];
  }
  getAudioTracks(): FakeTrack[] {
    return [this.track];
  }
}

export class FakeNode {
  readonly to = new Set<unknown>();
  connect<T>(node: T): T {
    this.to.add(node);
    return node;
  }
  disconnect(to?: unknown): void {
    if (to !== undefined) {
      if (!this.to.delete(to)) {
        throw new DOMException("it is not connected to that", "InvalidAccessError");
      }
      return;
    }
    this.to.clear();
  }
}

export class FakeWorkletNode extends FakeNode {
  readonly posted: unknown[] = [];
  readonly port = {
    onmessage: null as ((event: { data: unknown }) => void) | null,
    postMessage: (message: unknown): void => void this.posted.push(message),
  };
  constructor(
    readonly context: FakeContext,
    readonly name: string,
  ) {
    super();
    context.worklets.push(this);
  }
  tell(data: unknown): void {
    this.port.onmessage?.({ data });
  }
}

/** Counts its listeners. */
class Watched extends EventTarget {
  listeners = 0;
  override addEventListener(...args: Parameters<EventTarget["addEventListener"]>): void {
    this.listeners++;
    super.addEventListener(...args);
  }
  override removeEventListener(...args: Parameters<EventTarget["removeEventListener"]>): void {
    this.listeners--;
    super.removeEventListener(...args);
  }
}

export class FakeContext extends Watched {
  readonly worklets: FakeWorkletNode[] = [];
  readonly sources: FakeNode[] = [];
  readonly destination = new FakeNode();
  readonly sink = Object.assign(new FakeNode(), { stream: {} });
  readonly gain = Object.assign(new FakeNode(), { gain: { value: 1, targets: [] as number[], setTargetAtTime: (to: number) => void this.gain.gain.targets.push(to) } });
  readonly sampleRate: number;
  state: "running" | "suspended" | "interrupted" | "closed" = "running";
  currentTime = 0;
  sinkId = "";
  baseLatency = 0.01;
  outputLatency = 0.02;
  /** Whether resume has an effect. */
  allowed = true;
  resumed = 0;
  /** Refuses devices of another rate, as Firefox does. */
  strict = false;

  constructor(options: { sampleRate?: number } = {}) {
    super();
    this.sampleRate = options.sampleRate ?? 48000;
  }

  createMediaStreamSource(): FakeNode {
    if (this.strict) {
      throw new DOMException("another sample-rate", "NotSupportedError");
    }
    const source = Object.assign(new FakeNode(), { context: this });
    this.sources.push(source);
    return source;
  }
  /** The first is the speaker's own; later ones are requested by the page. */
  readonly streams: FakeNode[] = [];
  readonly analysers: FakeNode[] = [];
  createMediaStreamDestination(): FakeNode {
    const made = this.streams.length === 0 ? this.sink : Object.assign(new FakeNode(), { stream: {} });
    this.streams.push(made);
    return made;
  }
  createAnalyser(): FakeNode {
    const made = Object.assign(new FakeNode(), { frequencyBinCount: 1024, getByteFrequencyData: (into: Uint8Array) => void into.fill(7) });
    this.analysers.push(made);
    return made;
  }
  createGain(): FakeNode {
    return this.gain;
  }
  async resume(): Promise<void> {
    this.resumed++;
    if (this.allowed) {
      this.become("running");
    }
  }
  async setSinkId(id: string): Promise<void> {
    this.sinkId = id;
  }
  async close(): Promise<void> {
    this.become("closed");
  }
  become(state: FakeContext["state"]): void {
    if (state !== this.state) {
      this.state = state;
      this.dispatchEvent(new Event("statechange"));
    }
  }
}

export class FakeElement {
  srcObject: unknown = null;
  paused = true;
  onplaying: (() => void) | null = null;
  onpause: (() => void) | null = null;
  sinkId = "";
  /** Requested devices. */
  readonly sinks: string[] = [];
  setSinkId?: (id: string) => Promise<void> = async (id) => {
    this.sinks.push(id);
    if (!browser.outputs.includes(id) && id !== "") {
      throw new DOMException("no such device", "NotFoundError");
    }
    this.sinkId = id;
  };
  constructor() {
    browser.elements.push(this);
  }
  async play(): Promise<void> {
    if (browser.refuseElement) {
      throw new DOMException("not now", "NotAllowedError");
    }
    this.paused = false;
    this.onplaying?.();
  }
  pause(): void {
    this.paused = true;
    this.onpause?.();
  }
}

/** The test's control of the browser, and a record of the library's actions. */
export class FakeBrowser {
  readonly asked: (string | undefined)[] = [];
  readonly streams: FakeStream[] = [];
  readonly contexts: FakeContext[] = [];
  readonly elements: FakeElement[] = [];
  /** Only one microphone at a time. */
  exclusive = false;
  /** The old microphone ends when another one opens. */
  replacing = false;
  /** A microphone in use by another program. */
  busy = "";
  denied = false;
  /** The error of the next requests; undefined: a denial. */
  refusal: DOMException | undefined;
  /** Microphones are silent. */
  silent = false;
  /** The number of requests still to refuse. */
  refusals = 0;
  refuseElement = false;
  /** Fulfils the held request. */
  release: (() => void) | null = null;
  private held: Promise<void> = Promise.resolve();
  readonly page = Object.assign(new Watched(), { visibilityState: "visible" });
  readonly permission = Object.assign(new Watched(), { state: "granted" });
  readonly session = { type: "auto" };
  readonly devices = Object.assign(new Watched(), {
    getUserMedia: (wish: { audio: { deviceId?: { exact: string } } }) => this.give(wish.audio.deviceId?.exact),
    enumerateDevices: async () => [
      ...this.inputs.map((deviceId) => ({ kind: "audioinput", deviceId, label: `the ${deviceId}` })),
      ...this.outputs.map((deviceId) => ({ kind: "audiooutput", deviceId, label: `the ${deviceId}` })),
    ],
  });

  constructor(
    public inputs: string[],
    public outputs: string[],
  ) {}

  /** The number of listeners on the page's objects. */
  get listeners(): number {
    return this.devices.listeners + this.permission.listeners + this.page.listeners;
  }

  /** Holds requests until release. */
  hold(): void {
    this.held = new Promise((resolve) => {
      this.release = () => resolve();
    });
  }

  plug(inputs: string[], outputs = this.outputs): void {
    this.inputs = inputs;
    this.outputs = outputs;
    for (const { track } of this.streams) {
      if (track.readyState === "live" && !inputs.includes(track.deviceId)) {
        track.end();
      }
    }
    this.devices.dispatchEvent(new Event("devicechange"));
  }

  private async give(id: string | undefined): Promise<FakeStream> {
    this.asked.push(id);
    const there = this.inputs;
    await this.held;
    const found = id === undefined ? there[0] : there.find((input) => input === id);
    if (this.refusal !== undefined) {
      throw this.refusal;
    }
    if (this.denied || this.refusals-- > 0) {
      throw new DOMException("denied", "NotAllowedError");
    }
    if (found === undefined || !this.inputs.includes(found)) {
      throw new DOMException("none", id === undefined ? "NotFoundError" : "OverconstrainedError");
    }
    const open = this.streams.filter(({ track }) => track.readyState === "live");
    if (this.busy === found || (this.exclusive && open.length > 0)) {
      throw new DOMException("in use", "NotReadableError");
    }
    if (this.replacing) {
      open.forEach(({ track }) => track.end());
    }
    const stream = new FakeStream(new FakeTrack(found, `the ${found}`));
    stream.track.muted = this.silent;
    this.streams.push(stream);
    return stream;
  }
}

export let browser = new FakeBrowser([], []);

/** A fresh browser with these devices; vi.unstubAllGlobals removes it. */
export function freshBrowser(inputs = ["built-in", "headset"], outputs = ["speakers", "headset"]): void {
  const fresh = new FakeBrowser(inputs, outputs);
  browser = fresh;
  class Context extends FakeContext {
    constructor(options?: { sampleRate?: number }) {
      super(options);
      fresh.contexts.push(this);
    }
  }
  class MediaElement {
    setSinkId(): void {}
  }
  vi.stubGlobal("isSecureContext", true);
  vi.stubGlobal("navigator", { mediaDevices: fresh.devices, permissions: { query: async () => fresh.permission }, audioSession: fresh.session });
  vi.stubGlobal("window", fresh.page);
  vi.stubGlobal("document", fresh.page);
  vi.stubGlobal("AudioContext", Context);
  vi.stubGlobal("AudioWorkletNode", FakeWorkletNode);
  vi.stubGlobal("Audio", FakeElement);
  vi.stubGlobal("HTMLMediaElement", MediaElement);
}

/** Runs all pending promises. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 20; i++) {
    await Promise.resolve();
  }
}
