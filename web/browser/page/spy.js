// Runs before the page's own scripts. It tracks the page's devices, so that a test can see their release, and records
// the loudspeaker on the audio clock.
(() => {
  /** @type {Spy} */
  const spy = { contexts: [], streams: [], wishes: [], taps: [], sound: [], microphone: [], uplink: [], arrivals: [], plain: false, unplugged: false };
  window.spy = spy;

  if (!isSecureContext) {
    return; // Neither worklets nor microphones are available.
  }

  // Loads the tap before the page's own modules, so that it is there in time.
  const add = AudioWorklet.prototype.addModule;
  /** @type {WeakMap<AudioWorklet, Promise<void>>} */
  const taps = new WeakMap();
  /** @param {AudioWorklet} worklet */
  const tapped = (worklet) => {
    const tap = taps.get(worklet) ?? add.call(worklet, "/page/tap.js");
    taps.set(worklet, tap);
    return tap;
  };
  AudioWorklet.prototype.addModule = async function (...module) {
    await tapped(this);
    await add.apply(this, module);
  };

  const connect = /** @type {(this: AudioNode, to: AudioNode | AudioParam, ...rest: number[]) => AudioNode} */ (AudioNode.prototype.connect);
  /** @type {(from: AudioNode, into: Spy["sound"]) => Promise<void>} */
  const listen = async (from, into) => {
    const state = { context: from.context, listens: false };
    spy.taps.push(state);
    await tapped(from.context.audioWorklet);
    const tap = new AudioWorkletNode(from.context, "tap");
    tap.port.onmessage = ({ data }) => {
      if (data === null) {
        state.listens = true;
      } else {
        into.push(data);
      }
    };
    connect.call(from, tap);
    connect.call(tap, from.context.destination);
  };
  /** @type {Function} */
  const listening = function (/** @type {AudioNode} */ to, /** @type {number[]} */ ...rest) {
    // @ts-expect-error: `this` is the node.
    const from = /** @type {AudioNode} */ (this);
    if (to instanceof AudioDestinationNode || to instanceof MediaStreamAudioDestinationNode) {
      // If the tap does not load, neither do the page's modules.
      listen(from, spy.sound).catch(() => undefined);
    } else if (from instanceof MediaStreamAudioSourceNode) {
      listen(from, spy.microphone).catch(() => undefined);
    }
    return connect.call(from, to, ...rest);
  };
  AudioNode.prototype.connect = /** @type {typeof AudioNode.prototype.connect} */ (listening);

  window.AudioContext = class extends AudioContext {
    constructor(/** @type {AudioContextOptions | undefined} */ options) {
      super(options);
      spy.contexts.push(this);
    }
  };

  // The uplink's first sample on the session's input clock.
  let begins = 0;
  /** @type {(to: number) => void} */
  const arrived = (to) => {
    if (spy.uplink.length === 0) {
      begins = to;
    }
    let sent = begins + spy.uplink.reduce((sum, frame) => sum + frame.length, 0);
    // Anything sent beyond it was lost with its connection.
    for (let frame = spy.uplink.at(-1); frame !== undefined && sent - frame.length / 2 > to; frame = spy.uplink.at(-1)) {
      sent -= frame.length;
      spy.uplink.pop();
    }
  };

  window.WebSocket = class extends WebSocket {
    constructor(/** @type {string | URL} */ url, /** @type {string | string[] | undefined} */ protocols) {
      super(url, protocols);
      /** @type {(type: string, item?: string, samples?: number) => void} */
      const note = (type, item, samples) => {
        const context = spy.contexts.at(-1);
        const frame = context === undefined ? -1 : Math.round(context.currentTime * context.sampleRate);
        spy.arrivals.push({ type, ...(item === undefined ? {} : { item }), ...(samples === undefined ? {} : { samples }), frame, at: performance.now() });
      };
      this.addEventListener("message", ({ data }) => {
        const { type, item_id: item, samples, input_ms: heardMs = 0, input_rate: rate } = typeof data === "string" ? JSON.parse(data) : { type: "audio", samples: data.byteLength / 2 };
        note(type, item, samples);
        if (type === "session.started") {
          arrived((heardMs * rate) / 1000);
        }
      });
      this.addEventListener("close", () => note("closed"));
    }

    /**
     * @override
     * @param {Parameters<WebSocket["send"]>[0]} data
     */
    send(data) {
      if (data instanceof ArrayBuffer) {
        spy.uplink.push(new Int16Array(data.slice(0)));
      }
      super.send(data);
    }
  };

  const devices = navigator.mediaDevices;
  const ask = devices.getUserMedia.bind(devices);
  devices.getUserMedia = async (wish = {}) => {
    spy.wishes.push(JSON.parse(JSON.stringify(wish)));
    if (spy.unplugged) {
      throw new DOMException("Requested device not found", "NotFoundError");
    }
    const audio = /** @type {MediaTrackConstraints} */ (wish.audio);
    const off = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };
    const stream = await ask(spy.plain ? { audio: { ...audio, ...off } } : wish);
    spy.streams.push(stream);
    return stream;
  };
  const list = devices.enumerateDevices.bind(devices);
  devices.enumerateDevices = async () => (await list()).filter((device) => !spy.unplugged || device.kind !== "audioinput");
  spy.plug = (plugged) => {
    spy.unplugged = !plugged;
    for (const track of plugged ? [] : spy.streams.flatMap((stream) => stream.getTracks()).filter((track) => track.readyState === "live")) {
      track.stop();
      track.dispatchEvent(new Event("ended"));
    }
    devices.dispatchEvent(new Event("devicechange"));
  };
})();
