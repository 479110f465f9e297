/**
 * A conversation by voice that a page embeds with one tag.
 *
 *     <script type="module" src="…/@voicegw/client/dist/element.js"></script>
 *     <voicegw-call url="wss://gateway.example.org/v1/voice" ticket-url="/ticket"></voicegw-call>
 */
import { VoiceSession, type ConfirmationRequest, type ConnectOptions, type TranscriptMessage, type VoiceError } from "./index.js";

/** The options that are attributes: texts, under their names with hyphens. */
const ATTRIBUTES = ["url", "agent", "provider", "voice", "conversationId"] as const;
/** The events of the session that the element has, too, with what they tell as `detail`. */
const EVENTS = ["connected", "agentState", "transcript", "error", "disconnected"] as const;
/** So many lines are shown. */
const LINES = 200;
// What steers the direction of text, or is not seen at all: what is approved must not read like something else.
const UNSEEN = /[\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

const PAGE = `<style>
:host { display: block; max-width: 30rem; font: inherit }
#lines { max-height: 20rem; overflow: auto }
form { display: flex; gap: .5em }
#text { flex: 1; min-width: 0; font: inherit }
pre { white-space: pre-wrap; overflow-wrap: anywhere }
[hidden] { display: none }
</style>
<button id="talk" part="button"></button> <span id="state" part="state" role="status"></span>
<div id="lines" part="lines" role="log"></div>
<div id="questions" part="questions"></div>
<form id="type" part="form" hidden><input id="text" part="text" autocomplete="off"></form>`;

// On a server there are no elements, and the class is only a name there.
const Base = (globalThis.HTMLElement ?? Object) as typeof HTMLElement;

/** The element. Its attributes are read when a conversation begins; see the README. */
export class VoicegwCall extends Base {
  /** More options for the conversations that begin from now on, such as `tools` and a `ticket` function. */
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

  /** An element that is only moved stays in the page. */
  disconnectedCallback(): void {
    queueMicrotask(() => this.isConnected || void this.#session?.disconnect());
  }

  /** Begins a conversation, as the button does: from a click or a key press. What goes wrong is an event `error`. */
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
    for (const name of EVENTS) {
      session.on(name, (detail: unknown) => this.dispatchEvent(new CustomEvent(name, { detail })));
    }
    session.on("state", () => this.#show());
    session.on("agentState", () => this.#show());
    session.on("error", (error) => {
      this.#show(error);
      if (error.gatewayCode === "store_unavailable") {
        // Nothing was recorded: the same tokens work again.
        this.#part("questions").querySelectorAll("button").forEach((button) => (button.disabled = false));
      }
    });
    session.on("disconnected", ({ error }) => this.#show(error));
    session.on("transcript", (line) => this.#say(line));
    session.on("confirmation.request", (question) => this.#ask(session, question));
    session.on("confirmation.ended", ({ token }) => this.#questionOf(token)?.remove());
    this.#show();
    // Why it could not be opened is told by `disconnected`, too.
    await session.open().catch(() => undefined);
  }

  get #running(): boolean {
    return this.#session !== undefined && this.#session.state !== "disconnected";
  }

  #part<E extends HTMLElement>(id: string): E {
    return this.shadowRoot!.getElementById(id) as E;
  }

  #show(error?: VoiceError): void {
    if (this.shadowRoot === null) {
      return;
    }
    const running = this.#running;
    this.#part("talk").textContent = this.getAttribute(running ? "label-end" : "label") ?? (running ? "Hang up" : "Talk");
    this.#part("type").hidden = !running;
    this.#part<HTMLInputElement>("text").placeholder = this.getAttribute("placeholder") ?? "Or type";
    const session = this.#session;
    const state = session?.state === "connected" ? session.agentState : (session?.state ?? "");
    this.#part("state").textContent = error === undefined ? state : `${error.message} ${error.advice}`;
  }

  #say({ id, role, text }: TranscriptMessage): void {
    let line = this.#lines.get(id);
    if (line === undefined) {
      line = Object.assign(document.createElement("p"), { className: role });
      line.setAttribute("part", role);
      this.#lines.set(id, line);
      this.#part("lines").append(line);
      if (this.#lines.size > LINES) {
        const [oldest, first] = this.#lines.entries().next().value!;
        first.remove();
        this.#lines.delete(oldest);
      }
    }
    line.textContent = text;
    line.scrollIntoView({ block: "nearest" });
  }

  #ask(session: VoiceSession, { token, tool, preview, args_source }: ConfirmationRequest): void {
    const question = Object.assign(document.createElement("div"), { token });
    question.setAttribute("part", "question");
    const answer = (approved: boolean): void => {
      question.querySelectorAll("button").forEach((button) => (button.disabled = true));
      approved ? session.approve(token) : session.decline(token);
    };
    const button = (name: string, fallback: string, approved: boolean): HTMLElement =>
      Object.assign(document.createElement("button"), { textContent: this.getAttribute(name) ?? fallback, onclick: () => answer(approved) });
    const text = (tag: string, content: string): HTMLElement => Object.assign(document.createElement(tag), { textContent: visible(content) });
    question.append(text("p", preview), text("pre", `${tool} ${args_source}`), button("label-approve", "Approve", true), button("label-decline", "Decline", false));
    this.#questionOf(token)?.remove();
    this.#part("questions").append(question);
  }

  #questionOf(token: string): Element | undefined {
    return [...this.#part("questions").children].find((one) => (one as Element & { token: string }).token === token);
  }
}

/** A ticket from the page's own backend, which says it as `{"ticket": …}`. */
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
