// Serves the scripts of the test page, the spy's worklet and the built library, which a gateway does not have. Worklets
// need a real server.
import { createReadStream, existsSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join, normalize } from "node:path";

const here = join(import.meta.dirname, "..");

const FOLDERS: Readonly<Record<string, string>> = {
  "/page/": join(here, "page"),
  "/client/": join(here, "../client/dist"),
};

/** Answers a request for one of them; false for other requests. */
export function serveTestFile(request: IncomingMessage, response: ServerResponse): boolean {
  const path = normalize(new URL(request.url ?? "/", "http://any").pathname);
  if (path === "/favicon.ico") {
    response.writeHead(204).end(); // Chromium requests it for documents without an icon.
    return true;
  }
  const found = Object.entries(FOLDERS).find(([beginning]) => path.startsWith(beginning));
  const file = found === undefined ? "" : join(found[1], path.slice(found[0].length));
  if (!existsSync(file)) {
    return false;
  }
  response.writeHead(200, { "Content-Type": "text/javascript; charset=utf-8", "Access-Control-Allow-Origin": "*" });
  createReadStream(file).pipe(response);
  return true;
}
