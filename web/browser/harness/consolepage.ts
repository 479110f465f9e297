// The console, with its elements found by role and name.
import type { Browser, Locator } from "playwright-core";
import { Visitor, type VisitorOptions } from "./chromium.ts";
import { eventually } from "./eventually.ts";
import { Mailbox } from "./mailbox.ts";

export class ConsolePage {
  /** The call: its activity and its buttons. */
  readonly call: Locator;
  /** The lines of the conversation. */
  readonly log: Locator;
  /** The open approval requests. */
  readonly questions: Locator;

  /** The titles of the call's activity, in order. */
  private readonly said = new Mailbox<string>((words) => words);

  private constructor(readonly visitor: Visitor) {
    this.call = this.page.getByRole("region", { name: "Call with the voice agent" });
    this.log = this.page.getByRole("group", { name: "Conversation" });
    this.questions = this.page.getByRole("alertdialog");
  }

  /** Opens the console of a gateway. `host` replaces the host name. */
  static async open(browser: Browser, gateway: { url: string; code?(): Promise<string> }, { host, ...options }: VisitorOptions & { host?: string } = {}): Promise<ConsolePage> {
    const url = gateway.url.replace("127.0.0.1", host ?? "127.0.0.1");
    const console = new ConsolePage(await Visitor.come(browser, url, options));
    await console.page.exposeFunction("say", (title: string) => console.said.put(title));
    await console.page.addInitScript(reportTitles);
    await console.page.goto(url + ((await gateway.code?.()) ?? ""));
    await console.page.getByText(/^Ready/).first().waitFor();
    return console;
  }

  get page() {
    return this.visitor.page;
  }

  async reload(): Promise<void> {
    await this.page.reload();
    this.said.skip();
  }

  /** Presses a button once it is enabled. */
  async press(name: string, within: Locator | this["page"] = this.page): Promise<void> {
    await within.getByRole("button", { name, exact: true }).click();
  }

  /**
   * Waits for a title of the call's activity ("Listening", "Speaking") after the one waited for last, however briefly
   * it shows.
   */
  async says(title: string): Promise<void> {
    await this.said.next(`the call saying ${title}`, (said) => said.startsWith(`${title}. `));
  }

  /** Whether the call has shown this title since the page opened. */
  hasSaid(title: string): boolean {
    return this.said.all.some((said) => said.startsWith(`${title}. `));
  }

  /** Waits until the call shows this title. */
  async now(title: string): Promise<void> {
    await this.said.until(`the call saying ${title} now`, () => this.said.all.at(-1)?.startsWith(`${title}. `) === true);
  }

  /** Waits for a line with the text. */
  async line(text: string | RegExp): Promise<Locator> {
    const line = this.log.getByRole("listitem").filter({ hasText: text }).first();
    await this.appears(line, `a line with ${text}`);
    return line;
  }

  /** Waits for the approval request whose preview contains the text, until it accepts presses. */
  async question(preview: string | RegExp): Promise<Locator> {
    const question = this.questions.getByRole("group", { name: preview });
    await this.appears(question, `a question with ${preview}`);
    // The console ignores presses in a request's first moments, because they were meant for something else.
    await this.page.waitForFunction((at) => performance.now() > at + 550, await this.page.evaluate(() => performance.now()));
    return question;
  }

  /** Returns the text of each line. */
  async lines(): Promise<string[]> {
    const all = await this.log.getByRole("listitem").allInnerTexts();
    return all.map((text) => text.replace(/\s+/g, " ").trim());
  }

  async write(text: string): Promise<void> {
    await this.page.getByRole("textbox", { name: "Write to the text agent" }).fill(text);
    await this.press("Send to the text agent");
  }

  async type(text: string): Promise<void> {
    await this.page.getByRole("textbox", { name: "Type to the voice agent" }).fill(text);
    await this.press("Send to the voice agent");
  }

  async tab(name: string): Promise<Locator> {
    await this.page.getByRole("tab", { name, exact: true }).click();
    return this.page.getByRole("tabpanel", { name, exact: true });
  }

  /** Presses a button that saves a file and returns its path. */
  async save(name: string | RegExp, within: Locator): Promise<string> {
    const saving = this.page.waitForEvent("download");
    await within.getByRole("button", { name }).click();
    return (await saving).path();
  }

  /** Returns the name of the focused element. */
  async focused(): Promise<string> {
    return this.page.evaluate(() => {
      const active = document.activeElement;
      const field = active instanceof HTMLTextAreaElement || active instanceof HTMLInputElement;
      return (active?.getAttribute("aria-label") ?? (field ? active.labels?.[0] : active)?.textContent ?? "").trim();
    });
  }

  /** Waits until the element with this name has the focus, which moves after the page is drawn. */
  async focusOn(name: string): Promise<void> {
    await eventually(`the focus on ${name}`, () => this.focused(), (focused) => focused === name);
  }

  /** Waits until a panel contains a text; the error has the panel's contents. */
  async shows(panel: Locator, text: string | RegExp): Promise<void> {
    await panel.getByText(text).first().waitFor().catch(async (cause: unknown) => {
      throw new Error(`waited for ${text}; there is:\n${await panel.innerText()}\nthe lines are:\n${(await this.lines()).join("\n")}`, { cause });
    });
  }

  private async appears(what: Locator, name: string): Promise<void> {
    await what.waitFor().catch(async (cause: unknown) => {
      throw new Error(`waited for ${name}; the lines are:\n${(await this.lines()).join("\n")}`, { cause });
    });
  }

  async leave(): Promise<void> {
    await this.visitor.leave();
  }
}

/** Runs in the page: reports each new title of the call and its advice. */
function reportTitles(): void {
  let last = "";
  new MutationObserver(() => {
    const status = document.querySelector("[aria-label='Call with the voice agent'] .status");
    const words = `${status?.querySelector("strong")?.textContent ?? ""}. ${status?.lastElementChild?.textContent ?? ""}`;
    if (words !== last) {
      last = words;
      (window as unknown as { say(words: string): void }).say(words);
    }
  }).observe(document, { subtree: true, childList: true, characterData: true });
}
