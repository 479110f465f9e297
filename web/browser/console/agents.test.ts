// The agents page: creates, changes, tries and deletes an agent, with its errors.
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Browser } from "playwright-core";
import { openChromium } from "../harness/chromium.ts";
import { ConsolePage } from "../harness/consolepage.ts";
import { recording } from "../harness/folder.ts";
import { Gateway } from "../harness/gateway.ts";
import { Looks } from "../harness/looks.ts";

let browser: Browser;
beforeAll(async () => {
  browser = await openChromium(recording(() => 0, 1));
});
afterAll(() => browser.close());

test("an agent from its creation to its deletion", async () => {
  const gateway = await Gateway.open();
  const console = await ConsolePage.open(browser, gateway);
  console.visitor.expect(/Failed to load resource/); // refused changes
  const { page } = console;
  const sheet = page.getByRole("dialog", { name: "Agents" });
  const field = (name: string) => sheet.getByLabel(name, { exact: true });
  const looks = new Looks(page);

  await page.getByRole("button", { name: "Agents", exact: true }).focus();
  await page.keyboard.press("Enter");
  await sheet.getByText("default").first().waitFor();
  await looks.take("agents-list");
  await sheet.getByRole("button", { name: "New agent" }).focus();
  await page.keyboard.press("Enter");

  // All problems at once, each at its field.
  await field("Id").fill("Sales Desk");
  await field("Language").fill("german!");
  await field("Voice: all calls").fill("many");
  await console.press("Create", sheet);
  await sheet.getByText("Not saved: 5 fields need a change.").waitFor();
  await console.focusOn("Id"); // the first problem
  for (const name of ["Id", "Name", "Playbook", "Language", "Voice: all calls"]) {
    expect(await field(name).getAttribute("aria-invalid"), name).toBe("true");
  }
  await looks.take("agents-problems");
  await page.emulateMedia({ forcedColors: "active" });
  await looks.take("agents-forced-colours");
  await page.emulateMedia({ forcedColors: "none" });

  await field("Id").fill("sales");
  await field("Name").fill("Sales");
  await field("Playbook").fill("You sell bicycles.");
  await field("Language").fill("en");
  await field("Voice: all calls").fill("3");
  await field("All tools").uncheck();
  await field("kb_search").check();
  await console.press("Create", sheet);
  await sheet.getByText("Created. New conversations can use it.").waitFor();
  await looks.take("agents-form");

  // Another operator saves first.
  const other = await ConsolePage.open(browser, gateway);
  await other.press("Agents");
  const others = other.page.getByRole("dialog", { name: "Agents" });
  await others.getByRole("button", { name: /^Sales/ }).click();
  await others.getByLabel("Description", { exact: true }).fill("Theirs");
  await other.press("Save", others);
  await others.getByText("Saved. New conversations use it.").waitFor();
  await other.leave();
  await field("Description").fill("Mine");
  await console.press("Save", sheet);
  await sheet.getByText("someone else changed this agent").waitFor();
  await looks.take("agents-conflict");
  await console.press("Overwrite theirs with mine", sheet);
  await sheet.getByText("Saved. New conversations use it.").waitFor();

  // An agent that others switch to is not deleted.
  await console.press("All agents", sheet);
  await console.press("New agent", sheet);
  await field("Id").fill("desk");
  await field("Name").fill("Desk");
  await field("Playbook").fill("You greet.");
  await field("sales").check();
  await console.press("Create", sheet);
  await sheet.getByText("Created. New conversations can use it.").waitFor();
  await console.press("All agents", sheet);
  await sheet.getByRole("button", { name: /^Sales/ }).click();
  await console.press("Delete", sheet);
  await console.press("Yes, delete", sheet);
  await sheet.getByText(/These agents switch to "sales": desk/).waitFor();
  await looks.take("agents-in-use");
  expect(await sheet.locator(".agents-said").getAttribute("data-trouble")).toBe("true");

  // A try-out is a call with this agent.
  await console.press("Talk to it", sheet);
  await console.says("Listening");
  expect(await sheet.isVisible()).toBe(false);
  await console.press("Hang up");
  await console.says("Ended");
  await console.leave();
  await gateway.close();
});

test("the agent of a running call is switched", async () => {
  const gateway = await Gateway.open();
  const console = await ConsolePage.open(browser, gateway);
  const { page } = console;
  const sheet = page.getByRole("dialog", { name: "Agents" });
  await console.press("Agents");
  await console.press("New agent", sheet);
  await sheet.getByLabel("Id", { exact: true }).fill("billing");
  await sheet.getByLabel("Name", { exact: true }).fill("Billing");
  await sheet.getByLabel("Playbook", { exact: true }).fill("You answer questions about invoices.");
  await console.press("Create", sheet);
  await sheet.getByText("Created. New conversations can use it.").waitFor();
  await console.press("All agents", sheet);
  await sheet.getByRole("button", { name: /^default/ }).click();
  await console.press("Type to it", sheet);
  await console.type("What time is it?");
  await console.says("Speaking");
  await console.press("Agents");
  await sheet.getByRole("button", { name: /^Billing/ }).click();
  await console.press("Switch the call to it", sheet);
  await sheet.getByText("It is on the call now.").waitFor();
  await new Looks(page).take("agents-switched");
  await page.keyboard.press("Escape");
  await console.line("Switched from default to billing: asked for in the console");
  await console.type("And now?");
  await console.says("Speaking");
  await console.press("Hang up");
  await console.says("Ended");
  await console.leave();
  await gateway.close();
});
