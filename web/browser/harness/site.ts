// Two gateways with one store behind a balancer, and the simulator, each in its own process. Either gateway can
// continue the other's sessions.
import { spawn, type ChildProcess } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { Balancer } from "./balancer.ts";
import { atEnd, ownFolder } from "./folder.ts";
import { Front } from "./front.ts";
import { Gateway } from "./gateway.ts";
import { PATIENCE } from "./mailbox.ts";

export interface SiteOptions {
  /** The simulator's script (docs/simulator.md), as YAML. */
  scenario: string;
  /** The simulator's sending speed: 1 is real time. */
  speed: number;
}

export class Site {
  private constructor(
    readonly gateways: readonly Gateway[],
    /** The network between the browser and the balancer. */
    readonly front: Front,
    private readonly balancer: Balancer,
    private readonly helpers: readonly Helper[],
  ) {}

  static async open({ scenario, speed }: SiteOptions): Promise<Site> {
    const folder = ownFolder();
    const script = join(folder, "scenario.yaml");
    writeFileSync(script, scenario);
    mkdirSync(join(folder, "store"));
    const [store, storeAt] = await Helper.start(needed("NATS_SERVER"), ["-js", "-a", "127.0.0.1", "-p", "-1", "-sd", join(folder, "store")], /client connections on (\S+:\d+)/);
    const [simulator, simulatorAt] = await Helper.start(needed("VOICEGW"), ["sim", "--listen", "127.0.0.1:0", "--scenario", script, "--speed", `${speed}`], /serves on (\S+:\d+)\./);
    const settings = {
      "sim.use": "never",
      drain_timeout: "20s",
      "store.url": `nats://${storeAt}`,
      "cluster.secret": "a-secret-that-all-gateways-have-in-common",
      "providers.gemini.api_key": "simulated",
      "providers.gemini.base_url": `http://${simulatorAt}`,
      "providers.openai.api_key": "simulated",
      "providers.openai.base_url": `http://${simulatorAt}/v1`,
    };
    const gateways = await Promise.all([node(settings), node(settings)]);
    const balancer = await Balancer.open(gateways.map((gateway) => ({ get address() { return gateway.front.target; } })));
    const front = await Front.open();
    front.target = balancer.address;
    return new Site(gateways, front, balancer, [simulator, store]);
  }

  /** The address of the page and its sessions. */
  get url(): string {
    return this.front.url;
  }

  /** The gateway that runs a session, and the other one. */
  running(session: string): [runs: Gateway, other: Gateway] {
    const [one, two] = this.gateways as [Gateway, Gateway];
    const lines = (gateway: Gateway) => gateway.logged("session started").concat(gateway.logged("a session was taken over")).filter((line) => line["session_id"] === session);
    const runs = [one, two].filter((gateway) => lines(gateway).length > 0);
    if (runs.length !== 1) {
      throw new Error(`${runs.length} gateways have run the session ${session}, want 1`);
    }
    return runs[0] === one ? [one, two] : [two, one];
  }

  /** Stops everything that still runs; ignores a gateway that was killed or has ended. */
  async close(): Promise<void> {
    await this.front.close();
    await this.balancer.close();
    await Promise.all(this.gateways.map((gateway) => gateway.close()));
    await Promise.all(this.helpers.map((helper) => helper.stop()));
  }
}

/** A process that a test needs in addition to the gateways. */
class Helper {
  private constructor(
    private readonly child: ChildProcess,
    private readonly ended: Promise<unknown>,
  ) {}

  /** Starts it and waits until it prints its address, which is returned too. */
  static async start(program: string, line: readonly string[], serving: RegExp): Promise<[Helper, address: string]> {
    const child = spawn(program, line, { stdio: ["ignore", "pipe", "pipe"] });
    atEnd(() => child.kill("SIGKILL"));
    const ended = new Promise((end) => child.once("exit", end).once("error", end));
    let said = "";
    const address = await new Promise<string>((serves, failed) => {
      const late = setTimeout(() => failed(new Error(`${program} does not serve: ${said}`)), PATIENCE);
      void ended.then((how) => failed(new Error(`${program} ended with ${String(how)}: ${said}`)));
      const hear = (text: string) => {
        said += text;
        const found = serving.exec(said);
        if (found) {
          clearTimeout(late);
          serves(found[1]!);
        }
      };
      child.stdout.setEncoding("utf8").on("data", hear);
      child.stderr.setEncoding("utf8").on("data", hear);
    });
    return [new Helper(child, ended), address];
  }

  async stop(): Promise<void> {
    this.child.kill("SIGTERM");
    await this.ended;
  }
}

/** Starts a gateway that the others can reach. */
async function node(settings: Record<string, string>): Promise<Gateway> {
  for (;;) {
    const address = `127.0.0.1:${await freePort()}`;
    try {
      return await Gateway.open({ settings: { ...settings, "cluster.listen": address, "cluster.url": `http://${address}` } });
    } catch (cause) {
      if (!String(cause).includes("address already in use")) {
        throw cause;
      }
    }
  }
}

/** A free port of this machine; another program may take it. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

/** The path of a program, from the environment. */
function needed(name: "VOICEGW" | "NATS_SERVER"): string {
  const path = process.env[name];
  if (!path) {
    throw new Error(`${name} does not name the program; run scripts/test-web.sh`);
  }
  return path;
}
