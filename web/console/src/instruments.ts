// The instruments' data, derived from events alone.
import { signal } from "@preact/signals";
import { Agent } from "./model/agent.js";
import { Faults } from "./model/faults.js";
import type { Happening, LastingWatcher, Watcher } from "./model/feed.js";
import { MOST, newest, readKept, type Kept } from "./model/keptinstruments.js";
import { Log } from "./model/log.js";
import { Recording } from "./model/recording.js";
import { Secrets } from "./model/secrets.js";
import { Sound } from "./model/sound.js";
import { Tools } from "./model/tools.js";
import { Turns } from "./model/turns.js";
import { Wave } from "./model/wave.js";
import { WholeCall } from "./model/wholecall.js";
import { ticks } from "./ui/ticks.js";

/** All instruments; the controller passes them each event. */
export class Instruments implements LastingWatcher {
  readonly secrets = new Secrets();
  readonly sound = new Sound();
  readonly wave = new Wave(this.sound);
  readonly recording = new Recording(this.sound);
  readonly call = new WholeCall(this.recording);
  readonly tools = new Tools();
  readonly turns = new Turns();
  readonly agent = new Agent();
  readonly log = new Log(this.secrets);
  readonly faults: Faults;

  /** Rise when there is something new to show, at most once a tick. `logged` includes every event in the log. */
  readonly changed = signal(0);
  readonly logged = signal(0);

  /** Sound comes first, because the others read playback times from it. */
  private readonly watchers: readonly Watcher[] = [this.sound, this.wave, this.recording, this.call, this.tools, this.turns, this.agent, this.log];
  private waiting: "nothing" | "logged" | "changed" = "nothing";

  /** `soon` calls its argument before the next frame is painted. `request` is fetch with the operator's token. */
  constructor(
    private readonly soon: (show: () => void) => void = (show) => ticks.ask(show),
    request?: typeof fetch,
  ) {
    this.faults = new Faults(request);
  }

  keep(): string {
    const tools = this.secrets.mask(this.tools.keep()) as Kept["tools"];
    const kept: Kept = {
      origin: Date.now() - performance.now(),
      secrets: this.secrets.count,
      tools: newest(tools, MOST.tools),
      turns: newest(this.turns.keep(), MOST.turns),
      log: newest(this.log.after(0), MOST.log),
    };
    return JSON.stringify(kept);
  }

  restore(kept: string): void {
    if (this.log.length > 0) {
      return; // The browser restored the page from its cache.
    }
    const found = readKept(parsed(kept), Date.now() - performance.now());
    if (found !== null) {
      this.secrets.skip(found.secrets);
      this.tools.restore(found.tools);
      this.turns.restore(found.turns);
      this.log.restore(found.log);
      this.show("changed");
    }
  }

  take(happening: Happening): void {
    for (const watcher of this.watchers) {
      watcher.take(happening);
    }
    this.faults.take(happening);
    if (happening.kind !== "uplink" && happening.kind !== "downlink") {
      this.show(isReport(happening) ? "logged" : "changed");
    }
  }

  private show(what: "logged" | "changed"): void {
    if (this.waiting === "nothing") {
      this.soon(() => {
        this.logged.value++;
        if (this.waiting === "changed") {
          this.changed.value++;
        }
        this.waiting = "nothing";
      });
    }
    this.waiting = this.waiting === "changed" ? "changed" : what;
  }
}

/** Frequent reports that only the log shows. */
function isReport(happening: Happening): boolean {
  return (happening.kind === "noticed" && happening.name === "played") || (happening.kind === "sent" && happening.message.type === "playback");
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return null;
  }
}
