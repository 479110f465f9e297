// Drives applications that were built with the packed packages, in Chromium, against a real
// gateway at another address: what is typed is answered in speech, and hanging up ends it.
//
//     node drive.mjs <voicegw> <folder>…
//
// A folder is served as it is, as any server of files does; one that Next.js has built, by Next.js.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { basename, dirname, join, normalize } from "node:path";
import { chromium } from "playwright-core";

const [program, ...folders] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css" };
const PATIENCE = 60_000;

/** A server of files and nothing else. */
async function serveFiles(folder) {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://x").pathname).replace(/\/$/, "/index.html");
    try {
      const content = await readFile(join(folder, path));
      response.writeHead(200, { "content-type": TYPES[path.slice(path.lastIndexOf("."))] ?? "text/plain" }).end(content);
    } catch {
      response.writeHead(404).end();
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { origin: `http://127.0.0.1:${server.address().port}`, close: () => server.close() };
}

/** Starts a program, until it has said where it listens. */
function run(line, options, where) {
  const child = spawn(line[0], line.slice(1), { stdio: ["ignore", "pipe", "pipe"], ...options });
  return new Promise((resolve, reject) => {
    let said = "";
    const hear = (text) => {
      said += text;
      const found = where.exec(said);
      if (found) {
        resolve({ found: found[1], close: () => child.kill() });
      }
    };
    child.once("error", reject).once("exit", (code) => reject(new Error(`${line[0]} ended with ${code}: ${said}`)));
    child.stdout.setEncoding("utf8").on("data", hear);
    child.stderr.setEncoding("utf8").on("data", hear);
  });
}

async function serveNext(folder) {
  const next = join(dirname(folder), "node_modules/next/dist/bin/next");
  const line = [process.execPath, next, "start", "--hostname", "127.0.0.1", "--port", "0"];
  const { found, close } = await run(line, { cwd: folder, env: { ...process.env, NEXT_TELEMETRY_DISABLED: "1" } }, /(http:\/\/127\.0\.0\.1:[1-9]\d*)/);
  return { origin: found, close };
}

/** The gateway, with the simulator as its provider; pages of these origins may come. */
async function serveGateway(data, origins) {
  const line = [program, "serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--log-format", "json", "--sim", "always", ...origins.flatMap((origin) => ["--origin", origin])];
  const { found, close } = await run(line, {}, /"msg":"serving","addr":"([^"]+)"/);
  return { address: found, close };
}

/**
 * A conversation on a page. What goes wrong there, and a second connection, is a failure. On the example's page,
 * text that is typed afterwards begins another call.
 */
async function talk(page, url, example) {
  const trouble = [];
  let connections = 0;
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => {
    const { url } = message.location();
    // Browsers ask for an icon by themselves.
    if (message.type() === "error" && !url.endsWith("/favicon.ico")) {
      trouble.push(`${message.text()} ${url}`);
    }
  });
  page.on("websocket", () => connections++);
  const state = (wanted) => page.locator("#state", { hasText: wanted }).waitFor({ timeout: PATIENCE });
  await page.goto(url, { waitUntil: "networkidle" }); // the button of a rendered page does nothing before
  await page.click("#talk");
  await state(/^(connected|listening)$/);
  await page.fill("#text", "Hello");
  await page.press("#text", "Enter");
  await state(/^speaking$/);
  await page.locator("#lines", { hasText: /Hello\s*((assistant|Agent): )?\w+/ }).waitFor({ timeout: PATIENCE });
  const lines = await page.locator("#lines p").allInnerTexts();
  await page.click("#talk");
  await state(/^(client_ended|disconnected)$/);
  assert.equal(connections, 1);
  if (example) {
    await page.fill("#text", "Hello again");
    await page.press("#text", "Enter");
    await state(/^speaking$/);
    await page.click("#talk");
    await state(/^disconnected$/);
    assert.equal(connections, 2);
  }
  assert.deepEqual(trouble, []);
  return lines;
}

const open = [];
const data = await mkdtemp(join(tmpdir(), "voicegw-apps-"));
try {
  const pages = [];
  for (const folder of folders) {
    const served = await (existsSync(join(folder, ".next")) ? serveNext : serveFiles)(folder);
    open.push(served);
    pages.push({ name: basename(folder.replace(/\/dist$/, "")), origin: served.origin });
  }
  const gateway = await serveGateway(data, pages.map(({ origin }) => origin));
  open.push(gateway);
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
  });
  open.push(browser);
  for (const { name, origin } of pages) {
    const context = await browser.newContext();
    const lines = await talk(await context.newPage(), `${origin}/?gateway=ws://${gateway.address}/v1/voice`, name === "plain");
    await context.close();
    console.log(`${name} was answered: ${lines.join(" / ")}`);
  }
} finally {
  await Promise.all(open.map((one) => one.close()));
  await rm(data, { recursive: true, force: true, maxRetries: 5 });
}
