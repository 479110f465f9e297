// Checks the console's look in one state: screenshots, layout, and axe.
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import type { Locator, Page } from "playwright-core";
import type { AxeResults, RunOptions } from "axe-core";

/** The folder of the screenshots; git ignores it. */
const OUT = join(import.meta.dirname, "../out");
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

const WINDOWS = [
  { width: 1440, height: 900 },
  { width: 390, height: 844 },
  { width: 320, height: 640 },
] as const;
const SCHEMES = ["light", "dark"] as const;

/**
 * The layouts that axe examines: each layout, 200 and 400 % zoom, both palettes. AXE=all examines all of them in
 * both.
 */
const EXAMINED = new Set(["1440 light", "1440 dark", "390 light", "390 dark"]);
const EXAMINED_BESIDES = [
  { window: { width: 1024, height: 768 }, schemes: ["light"] },
  { window: { width: 720, height: 450 }, schemes: ["dark"] },
  { window: { width: 360, height: 225 }, schemes: ["light"] },
  { window: { width: 320, height: 256 }, schemes: [] },
] as const;
const ALL = process.env["AXE"] === "all";

/** Checks one page in one state after another. */
export class Looks {
  /** Where the conversation begins, by the width of the window. */
  private steadyAt: Map<number, number> | null = null;

  constructor(private readonly page: Page) {
    mkdirSync(OUT, { recursive: true });
  }

  /**
   * Takes screenshots of the state in all windows and schemes. Throws if something is wider than the window, axe
   * finds a problem, a steady part moved, or an element of `inSight` is not fully visible.
   */
  async take(state: string, inSight: Locator[] = []): Promise<void> {
    const before = this.page.viewportSize()!;
    for (const window of WINDOWS) {
      await this.page.setViewportSize(window);
      for (const scheme of SCHEMES) {
        await this.show(scheme);
        await this.page.screenshot({ path: join(OUT, `${state}-${window.width}-${scheme}.png`), animations: "disabled" });
        if (ALL || EXAMINED.has(`${window.width} ${scheme}`)) {
          await this.examine(`${state}, ${window.width} pixels wide, ${scheme}`);
        }
      }
      await this.fits(state, window.width);
      await this.stays(state, window.width);
      for (const thing of inSight) {
        await this.isInSight(state, window.width, thing);
      }
    }
    for (const { window, schemes } of EXAMINED_BESIDES) {
      await this.page.setViewportSize(window);
      for (const scheme of ALL ? SCHEMES : schemes) {
        await this.show(scheme);
        await this.examine(`${state}, ${window.width} x ${window.height}, ${scheme}`);
      }
      await this.fits(state, window.width);
    }
    await this.page.setViewportSize(before);
    await this.page.emulateMedia({ colorScheme: "light" });
  }

  private async show(scheme: (typeof SCHEMES)[number]): Promise<void> {
    await this.page.emulateMedia({ colorScheme: scheme });
    await this.page.evaluate(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
  }

  /** From now on, nothing above the conversation may appear or disappear. */
  steady(): void {
    this.steadyAt = new Map();
  }

  private async examine(where: string): Promise<void> {
    if (!(await this.page.evaluate(() => "axe" in window))) {
      await this.page.evaluate(AXE);
    }
    const { violations } = await this.page.evaluate(async () => {
      const { axe } = window as unknown as { axe: { run(options: RunOptions): Promise<AxeResults> } };
      return axe.run({ resultTypes: ["violations"] });
    });
    if (violations.length > 0) {
      const texts = violations.map(({ id, impact, help, nodes }) => `${impact}: ${id}: ${help}: ${nodes.slice(0, 3).map(({ html }) => html.slice(0, 160)).join(" | ")}`);
      throw new Error(`axe, ${where}:\n${texts.join("\n")}`);
    }
  }

  private async fits(state: string, width: number): Promise<void> {
    const wide = await this.page.evaluate((width) => {
      // Content of scroll containers may be wider, and screen-reader text has no place.
      const scrolls = (element: Element | null): boolean => element !== null && (/auto|scroll/.test(getComputedStyle(element).overflowX) || scrolls(element.parentElement));
      return [...document.querySelectorAll("body *")]
        .filter((e) => e.checkVisibility() && e.getBoundingClientRect().right > width + 0.5 && e.closest(".unseen") === null && !scrolls(e.parentElement))
        .map((e) => e.outerHTML.slice(0, 100))
        .concat(document.documentElement.scrollWidth > width ? ["the page itself"] : []);
    }, width);
    if (wide.length > 0) {
      throw new Error(`${state}: wider than a window of ${width} pixels:\n${wide.join("\n")}`);
    }
  }

  private async isInSight(state: string, width: number, thing: Locator): Promise<void> {
    const hidden = await thing.evaluate((element) => {
      const { left, right, top, bottom } = element.getBoundingClientRect();
      const [x, y] = [(left + right) / 2, (top + bottom) / 2];
      const ends = [[x, top + 2], [x, bottom - 2], [left + 2, y], [right - 2, y]] as const;
      return ends.some(([x, y]) => !element.contains(document.elementFromPoint(x, y)));
    });
    if (hidden) {
      throw new Error(`${state}: in a window of ${width} pixels not all of this is in sight: ${await thing.innerText()}`);
    }
  }

  private async stays(state: string, width: number): Promise<void> {
    if (this.steadyAt === null) {
      return;
    }
    const top = await this.page.evaluate(() => document.getElementById("log")!.getBoundingClientRect().top);
    const before = this.steadyAt.get(width) ?? top;
    this.steadyAt.set(width, before);
    if (top !== before) {
      throw new Error(`${state}: in a window of ${width} pixels the conversation begins at ${top}, and before at ${before}`);
    }
  }
}
