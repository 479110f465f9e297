// Whether this page may look inside: what operators see, and what they may break.
import { signal } from "@preact/signals";

/**
 * shut: nobody has opened the page's link. refused: the link was used, too old or of another
 * run. ended: it was open, and the gateway does not know its token any more.
 */
export type AccessState = "shut" | "refused" | "ended" | "open";

const KEPT = "voicegw.console";
const CODE = /^#code=([\w-]{1,128})$/;

/**
 * The page's right to what operators see. The link that `voicegw serve` prints has a code
 * behind its #, which no request carries. It is taken out of the address at once and exchanged
 * for a token; that one is kept in this tab, which no other page and no other port can read.
 */
export class Access {
  readonly state = signal<AccessState>("shut");
  /** Rises when the page has got another right: what was asked before may be answered now. */
  readonly turns = signal(0);
  private token: string | null = kept();

  constructor(private readonly ask: typeof fetch = (...args) => fetch(...args)) {
    if (this.token !== null) {
      this.state.value = "open";
    }
  }

  /** Reads the link's code, if the page was opened with one; also when a link is opened in the same tab. */
  async enter(): Promise<void> {
    addEventListener("hashchange", () => void this.exchange());
    await this.exchange();
  }

  /** What the WebSocket shows; undefined for a page that may not look inside. */
  get key(): string | undefined {
    return this.token ?? undefined;
  }

  /** fetch, with what operators show. */
  readonly request: typeof fetch = async (input, init = {}) => {
    const token = this.token;
    const headers = new Headers(init.headers);
    if (token !== null) {
      headers.set("authorization", `Bearer ${token}`);
    }
    const response = await this.ask(input, { ...init, headers });
    if (response.status === 401 && token !== null && token === this.token) {
      this.have(null, "ended");
    }
    return response;
  };

  private async exchange(): Promise<void> {
    const code = CODE.exec(location.hash)?.[1];
    if (code === undefined) {
      return;
    }
    history.replaceState(null, "", location.pathname + location.search);
    try {
      const response = await this.ask("v1/console/login", { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ code }) });
      const answer = (await response.json()) as { token?: unknown };
      if (response.ok && typeof answer.token === "string") {
        return this.have(answer.token, "open");
      }
    } catch {
      // The gateway is away: the page says so elsewhere.
    }
    if (this.token === null) {
      this.have(null, "refused");
    }
  }

  private have(token: string | null, state: AccessState): void {
    this.token = token;
    keep(token);
    this.state.value = state;
    this.turns.value++;
  }
}

function kept(): string | null {
  try {
    return sessionStorage.getItem(KEPT);
  } catch {
    return null;
  }
}

/** A browser may keep nothing for a page; then a reload needs another link. */
function keep(token: string | null): void {
  try {
    if (token === null) {
      sessionStorage.removeItem(KEPT);
    } else {
      sessionStorage.setItem(KEPT, token);
    }
  } catch {
    // As above.
  }
}
