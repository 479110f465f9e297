/**
 * A voice call as a custom element.
 *
 *     <script type="module" src="…/@voicegw/client/dist/element.js"></script>
 *     <voicegw-call url="wss://gateway.example.org/v1/voice" ticket-url="/ticket"></voicegw-call>
 */
import { VoiceSession, type AgentState, type ConfirmationRequest, type ConnectOptions, type Disconnected, type SessionStarted, type TranscriptMessage, type VoiceError } from "./index.js";

/** The options that are attributes, with hyphens in their names. */
const ATTRIBUTES = ["url", "agent", "provider", "voice", "conversationId"] as const;
/** Events of the session that the element also dispatches, with their data as `detail`. */
const EVENTS = ["connected", "agentState", "transcript", "error", "disconnected"] as const;
/** The most lines shown. */
const LINES = 200;
// Bidirectional controls and invisible characters, which could make an approval read like something else.
const UNSEEN = /[\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

const PAGE = `<style>
:host { display: block; max-width: 30rem; font: inherit }
button, input { font: inherit }
#lines { max-height: 20rem; overflow: auto }
form { display: flex; gap: .5em }
#text { flex: 1; min-width: 0 }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
#asked { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
[hidden] { display: none }
</style>
<button id="talk" part="button talk"></button> <button id="mute" part="button mute" hidden></button> <span id="state" part="state" role="status"></span>
<p id="error" part="error" role="alert" hidden></p>
<div id="lines" part="lines" role="log" aria-live="off" tabindex="0"></div>
<div id="questions" part="questions"></div>
<p id="asked" role="alert"></p>
<form id="type" part="form" hidden><input id="text" part="text" autocomplete="off"><button id="send" part="button send"></button></form>`;

// Servers have no elements; the class is only a name there.
const Base = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;

/** The element's attributes, for JSX: the text options of `connect`, and the words shown. */
export interface VoicegwCallAttributes {
  url?: string;
  agent?: string;
  provider?: string;
  voice?: string;
  "conversation-id"?: string;
  "ticket-url"?: string;
  label?: string;
  "label-end"?: string;
  "label-mute"?: string;
  "label-unmute"?: string;
  "label-send"?: string;
  "label-approve"?: string;
  "label-decline"?: string;
  "label-question"?: string;
  "label-user"?: string;
  "label-agent"?: string;
  "label-lines"?: string;
  placeholder?: string;
}

/** The element's events, including those of every HTML element. */
export interface VoicegwCallEventMap extends Omit<HTMLElementEventMap, "error"> {
  connected: CustomEvent<SessionStarted>;
  agentState: CustomEvent<AgentState>;
  transcript: CustomEvent<TranscriptMessage>;
  error: CustomEvent<VoiceError>;
  disconnected: CustomEvent<Disconnected>;
}

declare global {
  interface HTMLElementTagNameMap {
    "voicegw-call": VoicegwCall;
  }
}

export interface VoicegwCall {
  addEventListener<K extends keyof VoicegwCallEventMap>(type: K, listener: (this: VoicegwCall, event: VoicegwCallEventMap[K]) => void, options?: boolean | AddEventListenerOptions): void;
  addEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | AddEventListenerOptions): void;
  removeEventListener<K extends keyof VoicegwCallEventMap>(type: K, listener: (this: VoicegwCall, event: VoicegwCallEventMap[K]) => void, options?: boolean | EventListenerOptions): void;
  removeEventListener(type: string, listener: EventListenerOrEventListenerObject, options?: boolean | EventListenerOptions): void;
}

/** The element <voicegw-call>. A conversation reads the attributes when it begins; see the README. */
export class VoicegwCall extends Base {
  /** Further options for new conversations, such as `tools` and a `ticket` function. */
  options: ConnectOptions = {};
  #session: VoiceSession | undefined;
  readonly #lines = new Map<string, HTMLElement>();

  /** The conversation, also after its end; undefined before the first. */
  get session(): VoiceSession | undefined {
    return this.#session;
  }

  connectedCallback(): void {
    if (this.shadowRoot === null) {
      this.attachShadow({ mode: "open" }).innerHTML = PAGE;
      this.#part("talk").onclick = () => (this.#running ? void this.#session?.disconnect() : void this.connect());
      this.#part("mute").onclick = () => {
        const session = this.#session!;
        session.muted = !session.muted;
        this.#show();
      };
      this.#part("type").onsubmit = (event) => {
        event.preventDefault();
        const text = this.#part<HTMLInputElement>("text");
        if (text.value.trim() !== "") {
          this.#session?.sendText(text.value);
          text.value = "";
        }
      };
    }
    this.#show();
  }

  /** An element that was only moved is still in the page. */
  disconnectedCallback(): void {
    queueMicrotask(() => this.isConnected || void this.#session?.disconnect());
  }

  /**
   * Begins a conversation, as the button does. Call it from a click or a key press. Errors are dispatched as
   * `error`.
   */
  async connect(): Promise<void> {
    if (this.#running) {
      return;
    }
    const ticketUrl = this.getAttribute("ticket-url");
    const attributes = ATTRIBUTES.map((name) => [name, this.getAttribute(name.replace(/[A-Z]/g, (c) => `-${c.toLowerCase()}`))] as const);
    const session = new VoiceSession({
      ...Object.fromEntries(attributes.filter(([, value]) => value !== null)),
      ...(ticketUrl !== null && { ticket: () => ticketOf(ticketUrl) }),
      ...this.options,
    });
    this.#session = session;
    this.#lines.clear();
    this.#part("lines").replaceChildren();
    this.#part("questions").replaceChildren();
    this.#tell(undefined);
    for (const name of EVENTS) {
      session.on(name, (detail: unknown) => this.dispatchEvent(new CustomEvent(name, { detail })));
    }
    session.on("state", () => this.#show());
    session.on("agentState", () => this.#show());
    session.on("microphone", () => this.#show());
    session.on("error", (error) => {
      this.#tell(error);
      if (error.gatewayCode === "store_unavailable") {
        // The gateway recorded no answer, so the tokens are still valid.
        this.#part("questions").querySelectorAll("button").forEach((button) => (button.disabled = false));
      }
    });
    session.on("disconnected", ({ error }) => error && this.#tell(error));
    session.on("transcript", (line) => this.#say(line));
    session.on("confirmation.request", (question) => this.#ask(session, question));
    session.on("confirmation.ended", ({ token }) => this.#settle(token));
    this.#show();
    // `disconnected` reports the error too.
    await session.open().catch(() => undefined);
  }

  get #running(): boolean {
    return this.#session !== undefined && this.#session.state !== "disconnected";
  }

  #part<E extends HTMLElement>(id: string): E {
    return this.shadowRoot!.getElementById(id) as E;
  }

  /** Returns the page's own word, or the default. */
  #word(name: string, ours: string): string {
    return this.getAttribute(name) ?? ours;
  }

  #tell(error: VoiceError | undefined): void {
    const told = this.#part("error");
    told.hidden = error === undefined;
    told.textContent = error === undefined ? "" : `${error.message} ${error.advice}`;
  }

  #show(): void {
    if (this.shadowRoot === null) {
      return;
    }
    const running = this.#running;
    const session = this.#session;
    const microphone = running ? session!.microphone.state : "off";
    const muted = microphone === "muted" || microphone === "silenced";
    const state = session?.state === "connected" ? session.agentState : (session?.state ?? "");
    this.#part("talk").textContent = running ? this.#word("label-end", "Hang up") : this.#word("label", "Talk");
    const mute = this.#part("mute");
    mute.hidden = microphone !== "live" && !muted;
    mute.textContent = session?.muted === true ? this.#word("label-unmute", "Unmute") : this.#word("label-mute", "Mute");
    mute.setAttribute("part", muted ? "button mute muted" : "button mute");
    this.#part("state").textContent = muted ? `${state}, muted` : state;
    this.#part("state").setAttribute("part", `state ${state}`);
    this.#part("type").hidden = !running;
    this.#part("send").textContent = this.#word("label-send", "Send");
    const hint = this.#word("placeholder", "Or type");
    Object.assign(this.#part("text"), { placeholder: hint, ariaLabel: hint });
    this.#part("lines").ariaLabel = this.#word("label-lines", "Conversation");
  }

  #say({ id, role, text }: TranscriptMessage): void {
    let line = this.#lines.get(id);
    if (line === undefined) {
      line = piece("p", `line ${role}`, piece("b", "name", role === "user" ? this.#word("label-user", "You:") : this.#word("label-agent", "Agent:")), " ", piece("span", "words"));
      this.#lines.set(id, line);
      this.#part("lines").append(line);
      if (this.#lines.size > LINES) {
        const [oldest, first] = this.#lines.entries().next().value!;
        first.remove();
        this.#lines.delete(oldest);
      }
    }
    line.lastElementChild!.textContent = text;
    line.scrollIntoView({ block: "nearest" });
  }

  /** Shows a confirmation request and announces it to screen readers. The keyboard focus does not move. */
  #ask(session: VoiceSession, { token, tool, preview, args_source }: ConfirmationRequest): void {
    const answer = (approved: boolean): void => {
      question.focus(); // a disabled button would lose the focus
      question.querySelectorAll("button").forEach((button) => (button.disabled = true));
      approved ? session.approve(token) : session.decline(token);
    };
    const button = (name: string, fallback: string, approved: boolean): HTMLElement =>
      Object.assign(piece("button", `button ${approved ? "approve" : "decline"}`, this.#word(name, fallback)), { onclick: () => answer(approved) });
    const question: HTMLElement = piece(
      "div",
      "question",
      piece("p", "preview", visible(preview)),
      piece("pre", "arguments", visible(`${tool} ${args_source}`)),
      button("label-approve", "Approve", true),
      " ",
      button("label-decline", "Decline", false),
    );
    Object.assign(question, { token, tabIndex: -1, role: "group", ariaLabel: visible(preview) });
    this.#questionOf(token)?.remove();
    this.#part("questions").append(question);
    this.#part("asked").textContent = `${this.#word("label-question", "Needs your approval:")} ${visible(preview)}`;
  }

  /** Removes an answered request. The focus moves to the next one, or to the first button. */
  #settle(token: string): void {
    const question = this.#questionOf(token);
    const held = question?.contains(this.shadowRoot!.activeElement) === true;
    question?.remove();
    const next = this.#part("questions").querySelector<HTMLElement>("div");
    if (next === null) {
      this.#part("asked").textContent = "";
    }
    if (held) {
      (next ?? this.#part("talk")).focus();
    }
  }

  #questionOf(token: string): Element | undefined {
    return [...this.#part("questions").children].find((one) => (one as Element & { token: string }).token === token);
  }
}

/** Creates an element that the page can style by its part names. */
function piece(tag: string, part: string, ...content: (Node | string)[]): HTMLElement {
  const made = document.createElement(tag);
  made.setAttribute("part", part);
  made.append(...content);
  return made;
}

/** Fetches a ticket from the page's own backend, which answers `{"ticket": …}`. */
async function ticketOf(url: string): Promise<string> {
  const response = await fetch(url, { method: "POST" });
  if (!response.ok) {
    throw new Error(`${url} answered ${response.status}`);
  }
  return ((await response.json()) as { ticket: string }).ticket;
}

function visible(text: string): string {
  return text.replace(UNSEEN, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

if (globalThis.customElements?.get("voicegw-call") === undefined) {
  globalThis.customElements?.define("voicegw-call", VoicegwCall);
}
