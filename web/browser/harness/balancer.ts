// A TCP balancer in front of several gateways. It polls their readiness and passes new connections to the ready ones
// in turn.
import { request } from "node:http";
import { connect, createServer, type AddressInfo, type Server, type Socket } from "node:net";

/** Interval and timeout of the readiness checks, in ms. */
const ASK_EVERY_MS = 100;
const ASK_TIMEOUT_MS = 1000;

/** A gateway. Its address (host:port) may change on a restart. */
export interface Backend {
  readonly address: string;
}

export class Balancer {
  private readonly ready = new Set<Backend>();
  private readonly open = new Set<Socket>();
  private readonly asking: ReturnType<typeof setInterval>;
  private next = 0;

  private constructor(
    private readonly server: Server,
    private readonly backends: readonly Backend[],
  ) {
    this.asking = setInterval(() => backends.forEach((backend) => this.ask(backend)), ASK_EVERY_MS);
    backends.forEach((backend) => this.ready.add(backend));
  }

  static async open(backends: readonly Backend[]): Promise<Balancer> {
    const server = createServer();
    await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
    const balancer = new Balancer(server, backends);
    server.on("connection", (client) => balancer.pass(client));
    return balancer;
  }

  /** The balancer's host:port. */
  get address(): string {
    return `127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    clearInterval(this.asking);
    this.open.forEach((socket) => socket.destroy());
    await new Promise((closed) => this.server.close(closed));
  }

  private ask(backend: Backend): void {
    const asked = request(`http://${backend.address}/readyz`, { agent: false, timeout: ASK_TIMEOUT_MS }, (answer) => {
      answer.resume();
      this.mark(backend, answer.statusCode === 200);
    });
    asked.on("timeout", () => asked.destroy()).on("error", () => this.mark(backend, false)).end();
  }

  private mark(backend: Backend, ready: boolean): void {
    if (ready) {
      this.ready.add(backend);
    } else {
      this.ready.delete(backend);
    }
  }

  /** Passes a connection to the next ready gateway that accepts it, or refuses it. */
  private pass(client: Socket): void {
    this.keep(client);
    const turn = this.next++;
    const those = this.backends.map((_, i) => this.backends[(turn + i) % this.backends.length]!).filter((backend) => this.ready.has(backend));
    this.dial(client, those);
  }

  private dial(client: Socket, [backend, ...others]: readonly Backend[]): void {
    if (backend === undefined || client.destroyed) {
      client.resetAndDestroy();
      return;
    }
    const [host, port] = backend.address.split(":");
    const gateway = connect({ host, port: Number(port), allowHalfOpen: false });
    const refused = () => {
      this.mark(backend, false);
      this.dial(client, others);
    };
    gateway.once("error", refused).once("connect", () => {
      gateway.off("error", refused);
      this.keep(gateway);
      client.pipe(gateway).pipe(client);
      client.once("close", () => gateway.destroy());
      gateway.once("close", () => client.destroy());
    });
  }

  private keep(socket: Socket): void {
    this.open.add(socket);
    socket.on("error", () => socket.destroy()).once("close", () => this.open.delete(socket));
  }
}
