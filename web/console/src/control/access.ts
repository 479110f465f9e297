// The page's permission to inspect: to see what operators see, and to inject faults.
import { signal } from "@preact/signals";

/**
 * shut: no link was opened. refused: the link was used, expired or from an earlier run. ended: the gateway no
 * longer knows the token.
 */
export type AccessState = "shut" | "refused" | "ended" | "open";

const KEPT = "voicegw.console";
const CODE = /^#code=([\w-]{1,128})$/;

/**
 * Holds the operator's token. The link that `voicegw serve` prints has a code in its fragment, which is not
 * sent in requests. The code is removed from the address and exchanged for a token, which is stored in this
 * tab, out of reach of other pages and ports.
 */
export class Access {
  readonly state = signal<AccessState>("shut");
  /** Rises when the permission changes, so that earlier requests can be repeated. */
  readonly turns = signal(0);
  private token: string | null = kept();

  constructor(private readonly ask: typeof fetch = (...args) => fetch(...args)) {
    if (this.token !== null) {
      this.state.value = "open";
    }
  }

  /** Exchanges the code of the link that opened the page, or of one opened later in the same tab. */
  async enter(): Promise<void> {
    addEventListener("hashchange", () => void this.exchange());
    await this.exchange();
  }

  /** The key for the WebSocket; undefined without permission. */
  get key(): string | undefined {
    return this.token ?? undefined;
  }

  /** fetch with the operator's token. */
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
      // The gateway is unreachable; other parts of the page report this.
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

/** If the browser stores nothing, a reload needs a new link. */
function keep(token: string | null): void {
  try {
    if (token === null) {
      sessionStorage.removeItem(KEPT);
    } else {
      sessionStorage.setItem(KEPT, token);
    }
  } catch {
    // See above.
  }
}
