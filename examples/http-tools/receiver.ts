// A receiver for the tool order-cancel. SECRET=whsec_... node receiver.ts 127.0.0.1:9090 (Node 22.18 or later)
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer, type IncomingHttpHeaders } from "node:http";

const key = Buffer.from((process.env.SECRET ?? "").replace(/^whsec_/, ""), "base64");
if (key.length < 24) throw new Error("set SECRET to the tool's signing_secret");
const cancelled = new Map<string, unknown>(); // answers by operation, whose id is signed: a repeated request gets the same answer

/** Reports whether the gateway signed the request within the last five minutes. */
function signed(headers: IncomingHttpHeaders, body: Buffer): boolean {
  const at = Number(headers["webhook-timestamp"]);
  if (!(Math.abs(Date.now() / 1000 - at) <= 300)) return false;
  const text = Buffer.concat([Buffer.from(`${headers["webhook-id"]}.${at}.`), body]);
  const want = Buffer.from("v1," + createHmac("sha256", key).update(text).digest("base64"));
  return String(headers["webhook-signature"]).split(" ").some((one) => {
    const got = Buffer.from(one);
    return got.length === want.length && timingSafeEqual(got, want);
  });
}

const server = createServer(async (request, response) => {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request) {
    parts.push(part);
    if ((size += part.length) > 1 << 20) return request.destroy();
  }
  const body = Buffer.concat(parts);
  const answer = (status: number, value: unknown) =>
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
  const order = /^\/orders\/([0-9]+)\/cancel$/.exec(request.url ?? "");
  if (!signed(request.headers, body)) return answer(401, { message: "the signature is wrong" });
  if (!order) return answer(404, { message: "there is no such order" });
  const once = String(request.headers["webhook-id"]);
  if (!cancelled.has(once)) {
    cancelled.set(once, { order: { number: order[1], status: "cancelled", reason: JSON.parse(body.toString()).reason ?? null } });
  }
  answer(200, cancelled.get(once));
});
const [host, port] = (process.argv[2] ?? "").split(":");
server.listen(Number(port), host);
