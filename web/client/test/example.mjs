// Plays the example page, served from a folder into which the package was installed, against a
// real gateway on another port, in Chromium: what is typed is answered in speech.
//
//     node example.mjs <folder> <voicegw>
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join, normalize } from "node:path";
import { chromium } from "playwright-core";

const [folder, program] = process.argv.slice(2);
const TYPES = { ".html": "text/html", ".js": "text/javascript" };
const PATIENCE = 60_000;

/** A server of files and nothing else, as any is. */
function serveFiles() {
  const server = createServer(async (request, response) => {
    const path = normalize(new URL(request.url, "http://x").pathname).replace(/\/$/, "/index.html");
    try {
      const content = await readFile(join(folder, path));
      response.writeHead(200, { "content-type": TYPES[path.slice(path.lastIndexOf("."))] ?? "text/plain" }).end(content);
    } catch {
      response.writeHead(path === "/favicon.ico" ? 204 : 404).end();
    }
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** The gateway, with the simulator as its provider; pages of one origin may come. */
function serveGateway(origin) {
  const line = ["serve", "--listen", "127.0.0.1:0", "--data-dir", join(folder, "data"), "--log-format", "json", "--sim", "always", "--origin", origin];
  const child = spawn(program, line, { stdio: ["ignore", "ignore", "pipe"] });
  return new Promise((resolve, reject) => {
    let said = "";
    child.once("error", reject).once("exit", (code) => reject(new Error(`the gateway ended with ${code}: ${said}`)));
    child.stderr.setEncoding("utf8").on("data", (text) => {
      said += text;
      const found = /"msg":"serving","addr":"([^"]+)"/.exec(said);
      if (found) {
        resolve({ child, address: found[1] });
      }
    });
  });
}

async function talk(page, url) {
  const trouble = [];
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("console", (message) => message.type() === "error" && trouble.push(message.text()));
  await page.goto(url);
  await page.click("#talk");
  await page.locator("#state", { hasText: /^connected$/ }).waitFor({ timeout: PATIENCE });
  await page.fill("#text", "Hello");
  await page.press("#text", "Enter");
  await page.locator("#state", { hasText: /^speaking$/ }).waitFor({ timeout: PATIENCE });
  await page.locator("#lines", { hasText: /user: Hello.*assistant: \w+/s }).waitFor({ timeout: PATIENCE });
  const lines = await page.locator("#lines p").allInnerTexts();
  assert.deepEqual(trouble, []);
  return lines;
}

const files = await serveFiles();
const page = `127.0.0.1:${files.address().port}`;
let gateway;
let browser;
try {
  gateway = await serveGateway(`http://${page}`);
  browser = await chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"],
  });
  const lines = await talk(await browser.newPage(), `http://${page}/?gateway=ws://${gateway.address}/v1/voice`);
  console.log(`the example was answered: ${lines.join(" / ")}`);
} finally {
  await browser?.close();
  gateway?.child.removeAllListeners("exit").kill();
  files.close();
}
