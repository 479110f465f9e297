// The real gateway in a process of its own, with the simulator as its provider.
import { spawn, type ChildProcess } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { atEnd, ownFolder } from "./folder.ts";
import { Front } from "./front.ts";
import { PATIENCE } from "./mailbox.ts";

export interface GatewayOptions {
  /** The simulator's script (docs/simulator.md), as YAML. Default: the simulator's own. */
  scenario?: string;
  faults?: string;
  /** Settings of docs/configuration.md, such as "sim.speed". */
  settings?: Record<string, string | number | boolean>;
}

/** A line of the audit log. */
export interface AuditRecord {
  toolId: string;
  mode: "text" | "voice";
  ok: boolean;
  [field: string]: unknown;
}

/** A line of the gateway's own log. */
export interface LogLine {
  msg: string;
  [field: string]: unknown;
}

export class Gateway {
  private said = "";
  /** The log of earlier processes. */
  private saidBefore = "";
  private child: ChildProcess | undefined;
  private ended: Promise<number | null> = Promise.resolve(null);
  private readonly folder = ownFolder();

  private constructor(
    private readonly options: GatewayOptions,
    /** The network between the browser and the gateway. */
    readonly front: Front,
  ) {}

  static async open(options: GatewayOptions = {}): Promise<Gateway> {
    const gateway = new Gateway(options, await Front.open());
    await gateway.start();
    return gateway;
  }

  /** The console's address; a restart does not change it. */
  get url(): string {
    return this.front.url;
  }

  /** Returns a one-time console code. */
  async code(): Promise<string> {
    const asked = spawn(program(), ["console", "--url", `http://${this.front.target}`, "--data-dir", join(this.folder, "data")], { stdio: ["ignore", "pipe", "inherit"] });
    let out = "";
    asked.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    const exit = await new Promise((done) => asked.once("close", done));
    if (exit !== 0) {
      throw new Error(`voicegw console ended with ${exit}`);
    }
    return out.trim().replace(/^.*#/, "#");
  }

  /** Stops the process and the proxy in front of it. */
  async close(): Promise<void> {
    await this.front.close();
    await this.stop();
  }

  /** Starts the process, also after stop. */
  async start(): Promise<void> {
    const { scenario, faults, settings } = this.options;
    // No test cuts the power or needs a slow disk: store.sync.
    const line = ["serve", "--listen", "127.0.0.1:0", "--data-dir", join(this.folder, "data"), "--log-format", "json", "--set", "store.sync=interval", "--set", "drain_timeout=1s", "--set", "sim.use=always", "--set", "limits.exempt_loopback=true", "--set", "hosts=gateway.test"];
    for (const [name, text] of Object.entries({ scenario, faults })) {
      if (text !== undefined) {
        writeFileSync(join(this.folder, `${name}.yaml`), text);
        line.push("--set", `sim.${name}=${join(this.folder, `${name}.yaml`)}`);
      }
    }
    line.push(...Object.entries(settings ?? {}).flatMap(([key, value]) => ["--set", `${key}=${value}`]));
    const child = spawn(program(), line, { stdio: ["ignore", "ignore", "pipe"] });
    this.child = child;
    atEnd(() => child.kill("SIGKILL"));
    this.ended = new Promise((ended) => child.once("exit", ended).once("error", () => ended(null)));
    this.front.target = await new Promise<string>((serving, failed) => {
      const late = setTimeout(() => failed(new Error(`the gateway does not serve: ${this.said}`)), PATIENCE);
      void this.ended.then((code) => failed(new Error(`the gateway ended with ${code}: ${this.said}`)));
      child.stderr.setEncoding("utf8").on("data", (text: string) => {
        this.said += text;
        const found = /"msg":"serving","addr":"([^"]+)"/.exec(this.said);
        if (found) {
          clearTimeout(late);
          serving(found[1]!);
        }
      });
    });
  }

  /** Sends SIGTERM and expects a clean exit. Does nothing if the process is not running. */
  async stop(): Promise<void> {
    if (this.child === undefined) {
      return;
    }
    this.child.kill("SIGTERM");
    const code = await this.ended;
    this.child = undefined;
    if (code !== 0) {
      throw new Error(`the gateway ended with ${code}: ${this.said}`);
    }
    this.forget();
  }

  /** Kills the process with SIGKILL. */
  async kill(): Promise<void> {
    this.child?.kill("SIGKILL");
    await this.ended;
    this.child = undefined;
    this.forget();
  }

  /** Runs `voicegw drain`, which returns when no session is left. The process keeps running. */
  async drain(): Promise<void> {
    const asked = spawn(program(), ["drain", "--url", `http://${this.front.target}`, "--data-dir", join(this.folder, "data")], { stdio: ["ignore", "ignore", "pipe"] });
    let problem = "";
    asked.stderr.setEncoding("utf8").on("data", (text: string) => (problem += text));
    const code = await new Promise((done) => asked.once("close", done));
    if (code !== 0) {
      throw new Error(`voicegw drain ended with ${code}: ${problem}`);
    }
  }

  /** Returns the log lines with this message, including those of earlier processes. */
  logged(msg: string): LogLine[] {
    const lines = (this.saidBefore + this.said).split("\n").filter((line) => line.startsWith("{") && line.endsWith("}"));
    return lines.map((line) => JSON.parse(line) as LogLine).filter((line) => line.msg === msg);
  }

  private forget(): void {
    this.saidBefore += this.said;
    this.said = "";
  }

  /** Returns the tool calls so far. */
  async audit(): Promise<AuditRecord[]> {
    const reader = spawn(program(), ["audit", "--json", "--data-dir", join(this.folder, "data")], { stdio: ["ignore", "pipe", "pipe"] });
    let out = "";
    let problem = "";
    reader.stdout.setEncoding("utf8").on("data", (text: string) => (out += text));
    reader.stderr.setEncoding("utf8").on("data", (text: string) => (problem += text));
    const code = await new Promise((done) => reader.once("close", done));
    if (code !== 0) {
      throw new Error(`voicegw audit ended with ${code}: ${problem}`);
    }
    return out.split("\n").filter(Boolean).map((line) => JSON.parse(line) as AuditRecord);
  }
}

function program(): string {
  const path = process.env["VOICEGW"];
  if (!path) {
    throw new Error("VOICEGW does not name the program; run scripts/test-web.sh");
  }
  return path;
}
