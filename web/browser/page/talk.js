// The page under test: it opens sessions for the test and reports every event.
import { VoiceSession, listMicrophones } from "/client/index.js";

/** All events of the library except `level`, which comes 25 times a second. */
const EVENTS = [
  "state", "connected", "agentState", "message", "sent", "sounding", "played", "silenced", "underrun", "microphone", "devices",
  "reconnecting", "reconnected", "error", "disconnected",
];

class Talk {
  /** @type {VoiceSession | null} */
  session = null;
  /** @type {Int16Array<ArrayBuffer>[]} */
  downlink = [];
  listMicrophones = listMicrophones;

  async downlinkText() {
    const reader = new FileReader();
    const url = await new Promise((read) => {
      reader.onload = () => read(reader.result);
      reader.readAsDataURL(new Blob(this.downlink));
    });
    return url.slice(url.indexOf(",") + 1);
  }

  /**
   * Opens a session. `context`: the rate in Hz of an AudioContext of the page's own.
   * @param {import("@voicegw/client").ConnectOptions} options
   * @param {number} [context]
   */
  async open(options, context) {
    const audioContext = context === undefined ? {} : { audioContext: new AudioContext({ sampleRate: context }) };
    const session = new VoiceSession({ ...options, ...audioContext });
    this.session = session;
    for (const type of EVENTS) {
      session.on(/** @type {"state"} */ (type), (event) => window.tell(type, plain(event)));
    }
    try {
      await session.open();
    } catch (error) {
      return plain(error);
    }
    return null;
  }
}

/**
 * An event as JSON can carry it.
 * @param {unknown} value
 * @returns {unknown}
 */
function plain(value) {
  if (value instanceof Error) {
    const { name, message, cause, ...fields } = /** @type {Error & Record<string, unknown>} */ (value);
    return { ...fields, name: value.name, message: value.message, cause: String(value.cause) };
  }
  if (typeof value === "object" && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, plain(field)]));
  }
  return value;
}

window.talk = new Talk();
