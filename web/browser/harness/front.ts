// A proxy between the browser and the real gateway. It serves the test's files, passes everything else on, and can
// cut connections as a broken network does.
import { createServer, request as httpRequest, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type AddressInfo, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { serveTestFile } from "./files.ts";

export class Front {
  /** The gateway's host:port. */
  target = "";
  /** Refuses all connections, as between two networks. */
  away = false;
  private readonly open = new Set<Duplex>();

  private constructor(
    private readonly server: Server,
    readonly url: string,
  ) {}

  static async open(): Promise<Front> {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const front = new Front(server, `http://127.0.0.1:${(server.address() as AddressInfo).port}/`);
    server.on("request", (request, response) => front.pass(request, response));
    server.on("upgrade", (request: IncomingMessage, socket, head) => front.tunnel(request, socket, head));
    return front;
  }

  /** Cuts every WebSocket without a close frame. */
  cut(): void {
    for (const socket of this.open) {
      socket.destroy();
    }
  }

  /** Cuts, and refuses connections for ms. */
  async cutFor(ms: number): Promise<void> {
    this.away = true;
    this.cut();
    await new Promise((over) => setTimeout(over, ms));
    this.away = false;
  }

  async close(): Promise<void> {
    this.cut();
    this.server.closeAllConnections();
    await new Promise((closed) => this.server.close(closed));
  }

  private pass(request: IncomingMessage, response: ServerResponse): void {
    if (!serveTestFile(request, response)) {
      passOn(request, response, this.target);
    }
  }

  private tunnel(request: IncomingMessage, browser: Duplex, head: Buffer): void {
    if (this.away) {
      browser.destroy();
      return;
    }
    const [host, port] = this.target.split(":");
    const gateway: Socket = connect(Number(port), host, () => {
      const lines = request.rawHeaders.flatMap((name, i, all) => (i % 2 === 0 ? [`${name}: ${all[i + 1]}`] : []));
      gateway.write([`GET ${request.url} HTTP/1.1`, ...lines, "", ""].join("\r\n"));
      gateway.write(head);
      gateway.pipe(browser).pipe(gateway);
    });
    for (const [one, other] of [[gateway, browser], [browser, gateway]] as const) {
      this.open.add(one);
      one.on("error", () => other.destroy()).on("close", () => {
        this.open.delete(one);
        other.destroy();
      });
    }
  }
}

/** Proxies a request to another server (host:port). */
export function passOn(request: IncomingMessage, response: ServerResponse, target: string): void {
  const { method, url: path, headers } = request;
  const onward = httpRequest(`http://${target}`, { method, path, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    answer.pipe(response);
  });
  onward.on("error", () => response.destroy());
  response.on("close", () => onward.destroy());
  request.pipe(onward);
}
